"""Hostile inputs against the running service: each is refused as it should be, and leaves nothing.

After each group of inputs: every row as before, the listing of bookings answers, a good booking is
made, and the log knows of no surprise.
"""

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from bookings.serializers.bodies import ACTIONS
from tests import corpus
from tests.corpus import INVALID, MALFORMED, NOT_FOUND
from tests.description import Operation, description, examples_of
from tests.example_requests import EXAMPLE_PROJECT, filled
from tests.live import CUSTOMER, LiveAnswer, LiveApp, Rows
from tests.services import Service

PUSH = "/v2/calendars/notifications/"  # what a provider's message has besides is not ours to refuse
BODY_OPERATIONS = [
    operation
    for operation in description().operations
    if "application/json" in operation.content.get("requestBody", {}).get("content", {})
    if not operation.path.startswith(PUSH)
]
BY_NAME = {str(operation): operation for operation in description().operations}
MEMORY = 20 * 2**20

Ids = dict[str, str]


class HostileInputs:
    """A service of its own with an app, one of everything in it, and a stranger's app."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.rows = Rows(service)
        self.app = LiveApp(service)
        self.owner = self.app.owner()
        self.ids = self.app.make_ids(EXAMPLE_PROJECT)
        self.stranger = LiveApp(service)
        self.stranger_ids = self.stranger.make_ids(EXAMPLE_PROJECT)
        self.bookings = 0

    def send(
        self, operation: Operation, body: Any, headers: dict[str, str | bytes] | None = None
    ) -> LiveAnswer:
        path = filled(operation.path, self.ids)
        return self.owner.call(operation.method, path, body, headers)

    def body_for(self, operation: Operation, place: str) -> Any:
        """The example of the operation that has the place, else the last; ids are filled in."""
        content = operation.content["requestBody"]["content"]["application/json"]
        bodies = [
            json.loads(filled(json.dumps(example), self.ids))
            for example in examples_of(content).values()
        ]
        return next((body for body in bodies if has_place(body, place)), bodies[-1])

    def check_health(self, before: dict[str, str]) -> None:
        """Nothing was stored or changed, nothing is broken, nothing was a surprise."""
        assert changes(before, self.rows.snapshot()) == []
        listing = self.app.get("/v2/bookings?include=attributes,event,customers,meta,logs")
        assert listing.status == 200
        self.bookings += 1
        good = {
            "resource_id": self.ids["resource_id"],
            "what": "Good",
            "start": f"2032-01-01 {self.bookings // 60:02}:{self.bookings % 60:02}:00",
            "end": f"2032-01-01 {self.bookings // 60:02}:{self.bookings % 60:02}:30",
            "customer": CUSTOMER,
        }
        assert self.app.post("/v2/bookings", good).code == "201"
        self.check_log()

    def check_log(self) -> None:
        log = self.service.log("web")
        assert "UNEXPECTED" not in log, log[-3000:]
        assert "Traceback" not in log, log[-3000:]


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [table for table in before if before[table] != after[table]]


@pytest.fixture(scope="module")
def hostile_inputs(start_service: Callable[..., Service]) -> HostileInputs:
    return HostileInputs(start_service())


@pytest.fixture
def checked_inputs(hostile_inputs: HostileInputs) -> Iterator[HostileInputs]:
    """The hostility; after the test the service is as it was before."""
    before = hostile_inputs.rows.snapshot()
    yield hostile_inputs
    hostile_inputs.check_health(before)


# --- Places in a body -----------------------------------------------------------------------------
def steps_of(place: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in place.split(".") if step]


def has_place(body: Any, place: str) -> bool:
    for step in steps_of(place):
        if not isinstance(body, dict | list):
            return False
        if step not in (body if isinstance(body, dict) else range(len(body))):
            return False
        body = body[step]
    return True


def with_value(body: Any, place: str, value: Any) -> Any:
    """A copy of the body with the value at the place; what is missing on the way is made.

    A constraint has one key: it is made anew.
    """
    if (end := place.find("constraints.0.")) >= 0:
        inside = with_value({}, place[end + len("constraints.0.") :], value)
        return with_value(body, place[: end + len("constraints")], [inside])
    steps = steps_of(place)
    if not steps:
        return value
    holder = {"": copy.deepcopy(body)}
    where: Any = holder
    for step, following in zip(["", *steps[:-1]], steps, strict=True):
        if not isinstance(where[step], list if isinstance(following, int) else dict):
            where[step] = [None] if isinstance(following, int) else {}
        where = where[step]
        if isinstance(following, str):
            where.setdefault(following, None)
    where[steps[-1]] = value
    return holder[""]


FIRST_OF_MANY = "bookings.0"  # in a bulk request


def fault_of(answer: LiveAnswer, wanted: str, place: str | None = None) -> str | None:
    """What is wrong with a refusal; `place`: where its error stands, or one above others."""
    code, body = answer.code, answer.json
    if place is not None and place.startswith(FIRST_OF_MANY) and answer.status == 200:
        # Each of many is answered for itself.
        (first, *_) = answer.data
        code, body = f"{first['status']} {first.get('error', {}).get('code')}", first.get("error")
    if code != wanted:
        return f"{code} instead of {wanted}: {answer.content[:300]!r}"
    if place is not None and wanted == INVALID:
        found = body["errors"]
        if not any(key == place or key.startswith(f"{place}.") for key in found):
            return f"errors at {list(found)} instead of {place}"
    return None


def described_fault(method: str, path: str, answer: LiveAnswer) -> str | None:
    return description().answer_fault(method, path, answer.status, answer.json)


def listed(faults: dict[str, str]) -> str:
    return "\n".join(f"{name[:120]}: {fault}" for name, fault in faults.items())


# --- Whatever the endpoint ------------------------------------------------------------------------
# One parser reads all bodies: each run asks every fifth operation, --deep all of them.
PARSED = pytest.mark.parametrize(
    "operation",
    [
        pytest.param(operation, marks=() if number % 5 == 0 else pytest.mark.deep)
        for number, operation in enumerate(BODY_OPERATIONS)
    ],
    ids=str,
)


@PARSED
@pytest.mark.matrix
def test_malformed_json_is_refused_by_every_endpoint(
    checked_inputs: HostileInputs, operation: Operation
) -> None:
    faults = {}
    for raw in corpus.RAW:
        answer = checked_inputs.send(operation, raw.body, raw.headers)
        fault = fault_of(answer, raw.answer) or described_fault(
            operation.method, filled(operation.path, checked_inputs.ids), answer
        )
        if fault:
            faults[raw.name] = fault

    assert not faults, listed(faults)


TAKES_LISTS = ("PUT /v2/projects/{project_id}/resources",)


@PARSED
def test_body_that_is_no_object_is_refused_by_every_endpoint(
    checked_inputs: HostileInputs, operation: Operation
) -> None:
    faults = {}
    for text in corpus.NO_OBJECTS:
        answer = checked_inputs.send(operation, text.encode())
        fault = fault_of(answer, INVALID)
        if fault is None and str(operation) not in TAKES_LISTS:
            paths = set(answer.json["errors"])
            fault = None if paths <= {"body", "queries"} else f"errors at {paths}"
        if fault:
            faults[text] = fault

    assert not faults, listed(faults)


def test_memory_does_not_grow_with_hostile_bodies(hostile_inputs: HostileInputs) -> None:
    bookings = BY_NAME["POST /v2/bookings"]
    web = psutil.Process(hostile_inputs.service.processes["web"].pid)

    def memory() -> int:
        return sum(process.memory_info().rss for process in web.children())

    def send_all() -> None:
        for raw in corpus.RAW:
            hostile_inputs.send(bookings, raw.body, raw.headers)

    send_all()
    before = memory()
    for _ in range(5):
        send_all()

    assert memory() - before < MEMORY


# --- Every field, by its description --------------------------------------------------------------
def wrong_values(schema: Any, place: str, known: set[str]) -> Iterator[tuple[str, Any]]:
    """(place, value) of what the schema does not allow, for it and everything below.

    Components that are `known` are not looked into; those that are met are put there.
    """
    inside_too = not place or schema.get("$ref") not in known
    schema = description().resolve(schema)
    types = schema.get("type", [])
    if place and types:
        yield from wrong_at(schema, {types} if isinstance(types, str) else set(types), place)
    if not inside_too:
        return
    for part in description().parts(schema):
        # What is wrong for one alternative as a whole may be right for another.
        found = wrong_values(part, place, known)
        yield from (wrong for wrong in found if wrong[0] not in (place, ""))
    for name, inside in schema.get("properties", {}).items():
        yield from wrong_values(inside, f"{place}.{name}".strip("."), known)
    if "items" in schema:
        yield from wrong_values(schema["items"], f"{place}.0".strip("."), known)


def components_in(node: Any) -> set[str]:
    """The `$ref`s of schemas that a body's schema leads to."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            target = node.get("$ref")
            if target and target not in found:
                found.add(target)
                waiting.append(description().resolve(node))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found


# Values that are tried in place after place; without --deep each place gets every third of them.
COMMON = [*corpus.OF_TYPE.values(), *corpus.NO_LINES, *corpus.NO_ONE_LINE]
COMMON += [*corpus.NO_ID[2:], *corpus.NO_EMAIL[1:]]


def is_common(value: Any) -> bool:
    return any(type(value) is type(each) and value == each for each in COMMON)


def wrong_inputs(*, deep: bool) -> dict[str, list[tuple[str, Any]]]:
    """Operation -> its wrong values. If `deep`, each component is looked into everywhere and every
    value is tried; else each component where it is first met, and a third of the common values."""
    known: set[str] = set()
    inputs = {}
    turn = itertools.count()
    for operation in BODY_OPERATIONS:
        schema = description().body_schema(operation)
        inputs[str(operation)] = [
            (place, value)
            for place, value in wrong_values(schema, "", set() if deep else known)
            if not is_not_validated(operation, place)
            and (deep or not is_common(value) or next(turn) % 3 == 0)
        ]
        known |= components_in(schema)
    return inputs


def wrong_at(schema: Any, types: set[str], place: str) -> Iterator[tuple[str, Any]]:
    for name, value in corpus.OF_TYPE.items():
        if name not in types and not (name == "integer" and "number" in types):
            yield place, value
    if "string" in types:
        yield from ((place, value) for value in wrong_texts(schema))
    if "integer" in types:
        yield from (
            (place, value)
            for value in (
                schema.get("minimum", 0) - 1,
                schema.get("maximum", 2**62) + 1,
                2**63 - 1,
                -(2**63),
            )
            if value < 2**63
        )
    if schema.get("maxItems"):
        yield place, [None] * (schema["maxItems"] + 1)
    if schema.get("minItems"):
        yield place, []
    if "maxProperties" in schema and "properties" not in schema:
        yield place, dict.fromkeys(map(str, range(schema["maxProperties"] + 1)), 1)


def wrong_texts(schema: Any) -> Iterator[str]:
    if "maxLength" in schema:
        yield "x" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield ""
    if "enum" in schema:
        yield from ["x", "X" * 32, *(word.title() + " " for word in schema["enum"][:1])]
    if schema.get("format") == "uuid":
        yield from corpus.NO_ID
    if schema.get("format") == "email":
        yield from corpus.NO_EMAIL
    if "pattern" in schema:
        yield from corpus.NO_LINES
        if "\\u000A" not in schema["pattern"] and "u000B" not in schema["pattern"]:
            yield from corpus.NO_ONE_LINE


@pytest.mark.parametrize("operation", BODY_OPERATIONS, ids=str)
@pytest.mark.matrix
def test_values_outside_the_schema_are_refused_by_every_endpoint(
    checked_inputs: HostileInputs, operation: Operation, pytestconfig: pytest.Config
) -> None:
    faults = {}
    inputs = wrong_inputs(deep=pytestconfig.getoption("deep"))[str(operation)]
    for place, value in inputs:
        body = with_value(checked_inputs.body_for(operation, place), place, value)
        answer = checked_inputs.send(operation, body)
        if fault := fault_of(answer, INVALID, place):
            faults[f"{place} = {json.dumps(value)[:60]}"] = fault

    assert not faults, listed(faults)
    assert inputs != []


IN_ACTIONS = [[action] for action in ACTIONS]


def is_not_validated(operation: Operation, place: str) -> bool:
    """What a type of notification does not look at, what only another action reads, and a list
    whose errors stand under a key."""
    bare_list = str(operation) in TAKES_LISTS and place == "0"
    notification = "event_notifications.0.settings." in place or "reminders.0.settings." in place
    other_action = operation.path.endswith("{action}") and place.split(".")[0] != "cancel"
    # The example's first change is of the meta: it has no action whose inputs are read.
    inputs_of_none = place.startswith(FIRST_OF_MANY) and place.split(".")[2:3] in IN_ACTIONS
    return bare_list or notification or other_action or inputs_of_none


# --- The tables -----------------------------------------------------------------------------------
# What these name is looked up in the database, or would be stored there as it was sent.
STORED = {
    *("instants", "keys", "log-ins", "bulk", "customers", "ids", "names", "settings", "webhooks"),
    *("queries", "free objects"),
}


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=pytest.mark.both_databases if group in STORED else ())
        for group in corpus.WRONG
    ],
)
@pytest.mark.matrix
def test_wrong_values_are_refused(checked_inputs: HostileInputs, group: str) -> None:
    faults = {}
    for wrong in corpus.WRONG[group]:
        operation = BY_NAME[wrong.operation]
        value = json.loads(filled(json.dumps(wrong.value), checked_inputs.ids))
        body = with_value(checked_inputs.body_for(operation, wrong.place), wrong.place, value)
        answer = checked_inputs.send(operation, body)
        place = wrong.place if wrong.error is None else wrong.error
        if fault := fault_of(answer, wrong.answer, place):
            name = f"{wrong.operation} {wrong.place} = {json.dumps(wrong.value)[:80]}"
            faults[name] = fault

    assert not faults, listed(faults)


def test_unknown_paths_are_not_found(checked_inputs: HostileInputs) -> None:
    faults = {}
    for path in corpus.PATHS:
        for method in ("GET", "DELETE"):
            answer = checked_inputs.app.call(method, path)
            if fault := fault_of(answer, NOT_FOUND):
                faults[f"{method} {path[:80]}"] = fault

    assert not faults, listed(faults)


@pytest.mark.both_databases
def test_wrong_query_parameters_are_refused(checked_inputs: HostileInputs) -> None:
    paged = [
        (f"{listing}?{query}", place)
        for listing in corpus.LISTINGS
        for query, place in corpus.PAGES
    ]
    faults = {}
    for path, place in [*paged, *corpus.QUERIES]:
        answer = checked_inputs.app.get(filled(path, checked_inputs.ids))
        wanted = MALFORMED if place is None else INVALID
        if fault := fault_of(answer, wanted, place):
            faults[path[:100]] = fault

    assert not faults, listed(faults)


@pytest.mark.both_databases
def test_special_characters_in_searches_are_literal(checked_inputs: HostileInputs) -> None:
    found = {
        search[:80]: (answer.status, (answer.json or {}).get("total"))
        for search in corpus.FRUITLESS
        for answer in [checked_inputs.app.get(f"/v2/bookings?search={search}")]
    }

    assert {search: was for search, was in found.items() if was != (200, 0)} == {}


def test_wrong_headers_are_refused(checked_inputs: HostileInputs) -> None:
    faults = {}
    for headers, wanted, place in corpus.HEADERS:
        answer = checked_inputs.app.call("GET", "/v2/bookings", headers=headers)
        if fault := fault_of(answer, wanted, place):
            faults[str(headers)[:100]] = fault
    for headers in corpus.KEY_HEADERS:
        operation = BY_NAME["POST /v2/bookings"]
        answer = checked_inputs.send(operation, checked_inputs.body_for(operation, ""), headers)
        if fault := fault_of(answer, INVALID, "Idempotency-Key"):
            faults[str(headers)[:100]] = fault

    assert not faults, listed(faults)


def test_harmless_headers_are_accepted(checked_inputs: HostileInputs) -> None:
    answers = {
        str(headers)[:100]: checked_inputs.app.call("GET", "/v2/bookings", headers=headers).code
        for headers in corpus.HARMLESS_HEADERS
    }

    assert {headers: code for headers, code in answers.items() if code != "200"} == {}


# --- Strange but right ----------------------------------------------------------------------------
@pytest.mark.both_databases
@pytest.mark.parametrize("name", corpus.ODD_NAMES)
def test_unusual_names_round_trip(hostile_inputs: HostileInputs, name: str) -> None:
    given = {"name": name, "first_name": name, "timezone": "UTC", "tags": [name]}

    made = hostile_inputs.app.post("/v2/resources", given)
    listed = hostile_inputs.app.get("/v2/resources?limit=1")
    changed = hostile_inputs.app.call(
        "PUT", f"/v2/resources/{made.data['id']}", {"last_name": name}
    )

    expected = [name, name, [name]]
    for record in (made.data, listed.data[0], changed.data):
        assert [record[key] for key in ("name", "first_name", "tags")] == expected
    assert changed.data["last_name"] == name
    hostile_inputs.check_log()


@pytest.mark.both_databases
@pytest.mark.parametrize("meta", corpus.ODD_METAS, ids=range(len(corpus.ODD_METAS)))
def test_unusual_meta_round_trips(hostile_inputs: HostileInputs, meta: Any) -> None:
    path = f"/v2/bookings/{hostile_inputs.ids['booking_id']}"
    old = hostile_inputs.app.get(path).data["meta"]

    cleared = hostile_inputs.app.call("PUT", path, {"meta": dict.fromkeys(old)})
    changed = hostile_inputs.app.call("PUT", f"{path}?include=meta", {"meta": meta})

    assert cleared.status == changed.status == 200
    assert changed.data["meta"] == hostile_inputs.app.get(path).data["meta"] == meta
    hostile_inputs.check_log()


def test_number_of_inputs() -> None:
    """The corpus only grows: a table that is emptied by mistake is noticed."""
    counts = {
        "of every endpoint": len(BODY_OPERATIONS) * (len(corpus.RAW) + len(corpus.NO_OBJECTS)),
        "by description": sum(map(len, wrong_inputs(deep=False).values())),
        "tables": sum(map(len, corpus.WRONG.values())),
        "queries": len(corpus.LISTINGS) * len(corpus.PAGES) + len(corpus.QUERIES),
        "paths": len(corpus.PATHS) * 2,
        "headers": len(corpus.HEADERS) + len(corpus.KEY_HEADERS) + len(corpus.NO_AUTHORIZATION),
    }
    print(counts, sum(counts.values()))

    least = (1800, 2000, 1150, 330, 70, 35)
    assert all(count >= low for count, low in zip(counts.values(), least, strict=True)), counts
