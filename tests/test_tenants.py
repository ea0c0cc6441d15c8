"""No operation of the API shows, changes or admits to a row of another app.

Every operation is called by everybody who may not see an app, with its ids in the path, the query
and the body: the answer is that for an id that does not exist. Two callers ask in each run, all of
them with --deep.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from django.apps import apps
from django.db import transaction
from django.utils import timezone

from apps_config.models import Account, App, Credential, Membership
from apps_config.public_limits import LIMITS
from apps_config.services import issue_key
from external_calendars.models import Grant
from tests import corpus
from tests.description import Operation, description, examples_of
from tests.example_requests import EXAMPLE_PROJECT, EXAMPLE_VALUES, filled, needed_query
from tests.live import CUSTOMER
from tests.local import LocalApp, LocalCaller
from tests.test_hostile_bodies import with_value
from tests.world import Answer

OPERATIONS = description().operations
Ids = dict[str, str]
# The signature is the key, whatever the headers say.
LINK_PAGES = ("/v2/resources/{resource_id}/password", "/v2/customers/{customer_id}/unsubscribe")
# Path parameter -> how a stranger may name something of that kind that does not exist.
IDS = {
    "resource_id": corpus.UNKNOWN_ID,
    "schedule_id": corpus.UNKNOWN_ID,
    "calendar_id": corpus.UNKNOWN_ID,
    "credential_id": corpus.UNKNOWN_ID,
    "event_id": corpus.UNKNOWN_ID,
    "member_id": corpus.UNKNOWN_ID,
    "project_id": corpus.UNKNOWN_ID,
    "booking_id": corpus.UNKNOWN_ID,
    "series_id": corpus.UNKNOWN_ID,
    "customer_id": corpus.UNKNOWN_ID,
    "group_id": corpus.UNKNOWN_ID,
    "reservation_id": corpus.UNKNOWN_ID,
    "webhook_id": corpus.UNKNOWN_ID,
    "delivery_id": corpus.UNKNOWN_ID,
    "grant_id": corpus.UNKNOWN_ID,
    "slug": "no-such-app",
    "email": "nobody@example.com",
    "new_email": "somebody@example.com",
    "owner_email": "nobody@example.com",
    "feed_address": "https://calendars.example.com/nobody.ics",
}
PUSH = {f"POST /v2/calendars/notifications/{name}" for name in ("google", "microsoft")}
# Everything that names nobody's object in its path. A new URL has to be put here, or to carry an
# id of a kind that `IDS` knows; ids in bodies and queries are found by the description.
WITHOUT_ID = {
    "lists": {
        "GET /v2/app",
        "GET /v2/apps",
        "GET /v2/resources",
        "GET /v2/users",
        "GET /v2/schedules",
        "GET /v2/calendars",
        "GET /v2/credentials",
        "GET /v2/events",
        "GET /v2/projects",
        "GET /v2/bookings",
        "GET /v2/bookings/groups",
        "GET /v2/customers",
        "GET /v2/webhooks",
        "GET /v2/deliveries",
        "GET /v2/changes",
        "GET /v2/calendars/clients",
    },
    "makes": {
        "POST /v2/apps",
        "POST /v2/resources",
        "POST /v2/users",
        "POST /v2/schedules",
        "POST /v2/calendars",
        "POST /v2/credentials",
        "POST /v2/events",
        "POST /v2/projects",
        "POST /v2/bookings",
        "POST /v2/bookings/reserve",
        "POST /v2/webhooks",
        "POST /v2/calendars/connect",
        "PUT /v2/resources/by-external-id/{external_id}",
        "PATCH /v2/resources/by-external-id/{external_id}",
        "PUT /v2/users/by-external-id/{external_id}",
        "PATCH /v2/users/by-external-id/{external_id}",
        "PUT /v2/projects/by-external-id/{external_id}",
        "PATCH /v2/projects/by-external-id/{external_id}",
        "PUT /v2/calendars/clients/{provider}",
        "PATCH /v2/calendars/clients/{provider}",
        "DELETE /v2/calendars/clients/{provider}",
    },
    "names it in the body": {"PUT /v2/bookings/reserve/extend"},
    "many at once, each with an answer of its own": {
        "POST /v2/bookings/bulk",
        "PUT /v2/bookings/bulk",
    },
    "names a person": {
        "GET /v2/customers/export",
        "POST /v2/customers/erase",
        "PUT /v2/customers/note",
    },
    "asks": {
        "POST /v2/availability",
        "POST /v2/availability/count",
        "POST /v2/availability/dates",
        "POST /v2/availability/explain",
        "POST /v2/unavailable/slots",
        "POST /v2/findtime",
        "POST /v2/findtime/bulk",
        "POST /v2/findtime/team",
    },
    "counts": {
        "GET /v2/reports/utilisation",
        "GET /v2/reports/outcomes",
        "GET /v2/reports/lead-time",
        "GET /v2/reports/sources",
        "GET /v2/reports/customers",
    },
    "is the same in every app, or for anybody": {
        "GET /v2/templates",
        "POST /v2/resources/resetpassword",
        "POST /v2/users/resetpassword",
        "GET /v2/templates/{template_slug}",
        "PUT /v2/templates/{template_slug}",
        "PATCH /v2/templates/{template_slug}",
        "GET /v2/challenge",
        "POST /v2/templates/{template_slug}/preview",
    },
    "is public": {
        *("GET /healthz", "GET /readyz", "GET /metrics", "GET /v2/openapi.json", "GET /v2"),
        *("POST /v2/auth", "GET /v2/projects/hosted/{project_slug}"),
        *("GET /v2/calendars/callback", *PUSH),
    },
}
# Query parameter -> the kind of id or address in it; and those without.
IN_QUERY = {
    "booking": "booking_id",
    "calendar_id": "calendar_id",
    "customer_email": "email",
    "email": "email",
    "owner_booking_id": "group_id",
    "project_id": "project_id",
    "resource_id": "resource_id",
    "series_id": "series_id",
    "webhook": "webhook_id",
}
SEARCHED = ("resource.id", "calendar.id", "project.id", "owner_booking.id")
WITHOUT_ID_IN_QUERY = {
    *(
        "by",
        "completed",
        "cursor",
        "end",
        "from",
        "full",
        "graph",
        "include",
        "limit",
        "orderBy",
        "outcome",
        "page",
    ),
    *("code", "error", "validationToken"),
    *("redirect", "search", "signature", "sortedBy", "start", "state", "to", "token"),
    *("type", "types", "updated_since"),
    *("external_id", "customer_external_id"),  # any app may have the same one
}
# The apps of an account, whatever the header says: an account in two apps works in both.
APPS_OF_ACCOUNT = "/v2/apps"

# --- Who asks -------------------------------------------------------------------------------------
SERVER, BOTH, BOTH_REVERSED = "server key", "member of both", "member of both, the other way round"
NEIGHBOUR = "resource key of the same app"
# The most powerful key, and a token to which both apps are open but for the header.
DEAREST = (SERVER, BOTH)
OTHERS = (
    *("widget key", "widget key of a project", "resource key", NEIGHBOUR),
    *("owner", "editor", "viewer", BOTH_REVERSED),
)
CALLERS = [*DEAREST, *(pytest.param(who, marks=pytest.mark.deep) for who in OTHERS)]


class Stranger(NamedTuple):
    """A caller, the ids that it may name, and those of an app that it may not see."""

    caller: LocalCaller
    own: Ids
    theirs: Ids
    victim: LocalCaller  # who calls the other app

    def call(self, method: str, path: str, body: Any, **headers: str) -> Answer:
        """An answer; what the call did is taken back."""
        with transaction.atomic():
            answer = self.caller.call(method, path, body, headers)
            transaction.set_rollback(True)
        return answer


class Tenants:
    """Two apps with one of everything, and the strangers of each."""

    def __init__(self) -> None:
        self.mine, self.other = LocalApp(), LocalApp()
        self.ids, self.other_ids = (make_ids(app) for app in (self.mine, self.other))
        self.member = self._token("both@example.com", Membership.OWNER, self.mine, self.other)

    def stranger(self, who: str) -> Stranger:
        if who == BOTH_REVERSED:
            caller, victim = self._with_header(self.other), self._with_header(self.mine)
            return Stranger(caller, self.other_ids, self.ids, victim)
        if who == BOTH:
            caller, victim = self._with_header(self.mine), self._with_header(self.other)
            return Stranger(caller, self.ids, self.other_ids, victim)
        if who in ("resource key", NEIGHBOUR):
            caller, own = self._resource_key(self.mine if who != NEIGHBOUR else self.other)
            return Stranger(caller, own, self.other_ids, self.other)
        return Stranger(self._caller(who), self.ids, self.other_ids, self.other)

    def _caller(self, who: str) -> LocalCaller:
        if who == SERVER:
            return self.mine
        if who == "widget key":
            return self.mine.widget()
        if who == "widget key of a project":
            app = App.objects.get(slug=self.mine.slug)
            projects = [self.ids["project_id"]]
            return LocalCaller(issue_key(Credential.WIDGET, app=app, projects=projects)[1])
        return self._token(f"{who}@example.com", who, self.mine)

    def _token(self, email: str, role: str, *members_of: LocalApp) -> LocalCaller:
        account = Account.objects.create_user(email)
        for app in members_of:
            Membership.objects.create(
                account=account, app=App.objects.get(slug=app.slug), role=role
            )
        return LocalCaller(issue_key(Credential.ACCESS, account=account)[1], email)

    def _with_header(self, app: LocalApp) -> LocalCaller:
        caller = LocalCaller()
        caller.headers = {**self.member.headers, "Service-App": app.slug}
        return caller

    def _resource_key(self, app: LocalApp) -> tuple[LocalCaller, Ids]:
        """The key of a resource that has nothing to do with the app's others, and its ids."""
        email = f"{uuid.uuid4().hex[:8]}@example.com"
        body = {"name": "Bob", "timezone": "UTC", "email": email}
        made = app.post("/v2/resources", body).data
        own = {"resource_id": made["id"], "calendar_id": made["calendars"][0]["id"]}
        return LocalCaller(made["api_token"], email), own


def make_ids(app: LocalApp) -> Ids:
    # Many requests from one address are the point of these tests.
    off = dict.fromkeys((name for name in LIMITS if name.startswith("public_")), 0)
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": off})
    ids = app.make_ids(EXAMPLE_PROJECT)
    series = {
        "resource_id": ids["resource_id"],
        "what": "Course",
        "customer": CUSTOMER,
        "start": "2031-02-04 09:00:00",
        "end": "2031-02-04 10:00:00",
        "recurrence": "FREQ=DAILY;COUNT=2",
    }
    made = app.post("/v2/bookings?include=series", series)
    grant = Grant.objects.create(
        app=App.objects.get(slug=app.slug), provider="google", access_ends_at=timezone.now()
    )
    return ids | {"series_id": made.data["series"]["id"], "grant_id": str(grant.id)}


@pytest.fixture(scope="module")
def tenants(module_transaction: None) -> Tenants:
    return Tenants()


@pytest.fixture
def stranger(tenants: Tenants, db: None, who: str) -> Iterator[Stranger]:
    """The caller; after the test no row of anyone has changed."""
    found = tenants.stranger(who)
    before = rows()
    yield found
    assert rows() == before


PACKAGES = ("apps_config", "availability", "bookings", "external_calendars", "notifications")


def rows() -> dict[str, list[Any]]:
    """Every row of every app, but for the time of a key's last use."""
    return {
        model._meta.label: [
            {name: value for name, value in row.items() if name != "last_used_at"}
            for row in model._default_manager.order_by("pk").values()
        ]
        for label in PACKAGES
        for model in apps.get_app_config(label).get_models()
    }


# --- What is compared -----------------------------------------------------------------------------
def visible_response(answer: Answer, ids: Mapping[str, str]) -> tuple[int, str]:
    """What a stranger sees, but for the ids that were asked for and that of the request."""
    text = answer.content.decode()
    if answer.json is not None:
        text = json.dumps({k: v for k, v in answer.json.items() if k != "request_id"})
    for identifier in sorted(ids.values(), key=len, reverse=True):
        text = text.replace(identifier, "<id>").replace(quote(identifier), "<id>")
    return answer.status, text


def parameters_of(operation: Operation) -> list[str]:
    return [piece.split("}")[0] for piece in operation.path.split("{")[1:]]


def query_parameters(operation: Operation) -> dict[str, Any]:
    found = [description().resolve(one) for one in operation.content.get("parameters", [])]
    return {one["name"]: one for one in found if one["in"] == "query"}


def has_id(operation: Operation) -> bool:
    return any(name in IDS for name in parameters_of(operation))


def own_body(operation: Operation, ids: Ids) -> Any:
    """The operation's example with the caller's own ids; None where it takes no JSON."""
    if "application/json" not in operation.content.get("requestBody", {}).get("content", {}):
        return None
    content = operation.content["requestBody"]["content"]["application/json"]
    (example, *_) = examples_of(content).values()
    return json.loads(filled(json.dumps(example), {**IDS, **ids}))


def with_includes(operation: Operation) -> str:
    """`?include=` with everything that the operation can add."""
    parameter = query_parameters(operation).get("include")
    if parameter is None:
        return ""
    names = parameter["description"].partition(":")[2].partition(".\n")[0].split(". ")[0]
    return "?include=" + ",".join(one.strip(" .") for one in names.split(","))


def is_theirs(who: str, operation: Operation) -> bool:
    """Whether the caller may see the other app by the path."""
    return who.startswith(BOTH) and operation.path.startswith(APPS_OF_ACCOUNT)


# --- Every operation is here ----------------------------------------------------------------------
def test_every_operation_is_classified() -> None:
    """If this fails: say in WITHOUT_ID what the new URL is, or in IDS what its ids stand for."""
    unknown = {
        f"{operation} names {name}"
        for operation in OPERATIONS
        for name in parameters_of(operation)
        if name not in IDS and name not in EXAMPLE_VALUES
    }
    classified = set().union(*WITHOUT_ID.values())

    assert unknown == set()
    assert {str(operation) for operation in OPERATIONS if not has_id(operation)} == classified


def test_every_query_parameter_is_classified() -> None:
    """If this fails: say in IN_QUERY what the new parameter names."""
    found = {name for operation in OPERATIONS for name in query_parameters(operation)}

    assert found == WITHOUT_ID_IN_QUERY | IN_QUERY.keys()


def test_includes_are_found() -> None:
    found = {str(one): with_includes(one) for one in OPERATIONS if with_includes(one)}

    assert found["GET /v2/projects"] == "?include=resources,availability_constraints,payment_key"
    assert found["GET /v2/bookings"].endswith(",seats,bulked_bookings,series,provider_event")
    assert len(found) == 40


# --- Paths ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("who", CALLERS)
def test_ids_of_another_app_are_not_found(stranger: Stranger, who: str) -> None:
    faults = {
        f"{operation} {first}": fault
        for operation in filter(has_id, OPERATIONS)
        if not is_theirs(who, operation)
        for first in own_firsts(operation, stranger.own)
        for fault in path_faults(stranger, operation, first)
    }

    assert faults == {}


def own_firsts(operation: Operation, own: Ids) -> list[Ids]:
    """Where a path names two things: also the second one below one's own first."""
    names = parameters_of(operation)
    is_below = len(names) > 1 and names[-1] != "action" and names[0] in own
    return [{}, {names[0]: own[names[0]]}] if is_below else [{}]


def path_faults(stranger: Stranger, operation: Operation, first: Ids) -> Iterator[Any]:
    body = own_body(operation, stranger.own)
    for query in dict.fromkeys(("", with_includes(operation))):
        found, expected = (
            visible_response(
                stranger.call(
                    operation.method, filled(operation.path, {**ids, **first}) + query, body
                ),
                ids,
            )
            for ids in (stranger.theirs, IDS)
        )
        # Some keys may not include everything.
        if found != expected or found[0] not in (403, 404, *((422,) if query else ())):
            yield found, expected


# --- Bodies ---------------------------------------------------------------------------------------
def uuid_places(schema: Any, place: str, known: frozenset[str]) -> Iterator[str]:
    """The places of ids in a body, one of each array."""
    target = schema.get("$ref", place)
    schema = description().resolve(schema)
    if target in known:
        return
    if schema.get("format") == "uuid":
        yield place
    inside = [(f"{place}.{name}", one) for name, one in schema.get("properties", {}).items()]
    inside += [(f"{place}.0", schema["items"])] if "items" in schema else []
    inside += [(place, part) for part in description().parts(schema)]
    for step, one in inside:
        yield from uuid_places(one, step.strip("."), known | {target})


ID_PLACES = [
    (operation, place)
    for operation in OPERATIONS
    if "requestBody" in operation.content
    for place in dict.fromkeys(
        uuid_places(description().body_schema(operation), "", frozenset())
    )
]  # fmt: skip
KINDS = {
    "resources": "resource_id",
    "resource_ids": "resource_id",
    "projects": "project_id",
    "calendar_ids": "calendar_id",
    "owner_booking_id": "group_id",
    "id": "booking_id",
}
MANY = WITHOUT_ID["many at once, each with an answer of its own"]


def is_refused(operation: Operation, answer: tuple[int, str]) -> bool:
    """Also where the answer is one of many: the first is what the test is about."""
    status, text = answer
    if str(operation) in MANY and status == 200:
        status = json.loads(text)["data"][0]["status"]
    return status in (403, 404, 422)


def kind_of(place: str) -> str:
    """`event.calendar_id` -> calendar_id, `resources.0` -> resource_id."""
    words = [word for word in place.split(".") if not word.isdigit()]
    return KINDS.get(words[-1], words[-1]) if words else "resource_id"


def test_every_id_in_a_body_is_found() -> None:
    """Also those that only this list knows: a change of the description that hides one shows."""
    found = {str(operation): set() for operation, _ in ID_PLACES}
    for operation, place in ID_PLACES:
        found[str(operation)].add(place)

    assert {kind_of(place) for _, place in ID_PLACES} <= set(IDS)
    assert found["POST /v2/bookings"] == {
        "project_id", "resource_id", "calendar_id", "reservation_id",
        "event.calendar_id", "related.owner_booking_id", "steps.0.resources.0",
    }  # fmt: skip
    assert found["POST /v2/availability"] == {
        "project_id", "steps.0.resources.0",
    }  # fmt: skip


@pytest.mark.parametrize("who", CALLERS)
def test_ids_of_another_app_in_a_body_are_refused(stranger: Stranger, who: str) -> None:
    faults = {
        f"{operation} {place}": fault
        for operation, place in ID_PLACES
        # The projects of its app are no secret to a resource.
        if not (who == NEIGHBOUR and kind_of(place) == "project_id")
        for fault in body_faults(stranger, operation, place)
    }

    assert faults == {}


def body_faults(stranger: Stranger, operation: Operation, place: str) -> Iterator[Any]:
    path, kind = filled(operation.path, {**IDS, **stranger.own}), kind_of(place)
    body = own_body(operation, stranger.own)
    found, expected = (
        visible_response(
            stranger.call(operation.method, path, with_value(body, place, ids[kind])), {}
        )
        for ids in (stranger.theirs, IDS)
    )
    if found != expected or not is_refused(operation, found):
        yield found, expected


# --- Queries and lists ----------------------------------------------------------------------------
@pytest.mark.both_databases
@pytest.mark.parametrize("who", CALLERS)
def test_queries_exclude_rows_of_another_app(stranger: Stranger, who: str) -> None:
    faults = {
        f"{operation} {query}": fault
        for operation in OPERATIONS
        if query_parameters(operation) and not operation.path.endswith(("}", "/feed.ics"))
        for query in queries_of(operation)
        if not is_theirs(who, operation) and (who, str(operation)) != (NEIGHBOUR, "GET /v2/app")
        for fault in query_faults(stranger, operation, query)
    }

    assert faults == {}


def queries_of(operation: Operation) -> Iterator[str]:
    """Templates of queries: with an id of each kind, and with everything that can be added."""
    known = query_parameters(operation)
    yield from (f"{name}={{{kind}}}" for name, kind in IN_QUERY.items() if name in known)
    if "search" in known:
        for name in SEARCHED:
            if name in known["search"]["description"]:
                yield f"search={name}:{{{name.replace('.', '_')}}}"
    yield with_includes(operation).strip("?")


def query_faults(stranger: Stranger, operation: Operation, query: str) -> Iterator[Any]:
    path = filled(operation.path, {**IDS, **stranger.own}) + (needed_query(operation) or "?")
    body = own_body(operation, stranger.own)
    answers = [
        stranger.call(operation.method, f"{path}&{query.format(**searched(ids))}", body)
        for ids in (stranger.theirs, IDS)
    ]
    found, expected = (
        visible_response(answer, ids)
        for answer, ids in zip(answers, (stranger.theirs, IDS), strict=True)
    )
    if operation.method == "GET" and found != expected:
        yield found, expected
    asked = "{" in query  # an address that was asked for comes back in links to pages
    shown = marks_in(answers[0], stranger) if not asked else []
    if shown:
        yield shown


def searched(ids: Ids) -> Ids:
    return ids | {"owner_booking_id": ids["group_id"]}


def marks_in(answer: Answer, stranger: Stranger) -> list[str]:
    """The ids and addresses of the other app in an answer."""
    shared = {*stranger.own.values(), ""}
    text = answer.content.decode()
    return [mark for mark in stranger.theirs.values() if mark in text and mark not in shared]


# --- Headers --------------------------------------------------------------------------------------
@pytest.mark.parametrize("who", [who for who in CALLERS if who not in (BOTH, NEIGHBOUR)])
def test_header_for_another_app_is_not_found(stranger: Stranger, who: str) -> None:
    if who in (BOTH_REVERSED, NEIGHBOUR):
        return  # the other app is theirs, too
    faults = {}
    for operation in OPERATIONS:
        if str(operation) in WITHOUT_ID["is public"] or operation.path in LINK_PAGES:
            continue
        path = filled(operation.path, {**IDS, **stranger.own})
        body = own_body(operation, stranger.own)
        found, expected = (
            visible_response(
                stranger.call(operation.method, path, body, **{"Service-App": slug}),
                {"slug": slug},
            )
            for slug in (stranger.theirs["slug"], "no-such-app")
        )
        if found != expected or found[0] != 404:
            faults[str(operation)] = (found, expected)

    assert faults == {}


@pytest.mark.parametrize("who", CALLERS)
def test_idempotency_key_of_another_app_replays_nothing(stranger: Stranger, who: str) -> None:
    """`who` repeats a request of the other app, with its Idempotency-Key and its ids."""
    faults = {
        str(operation): fault
        for operation in OPERATIONS
        if takes_idempotency_key(operation) and not is_theirs(who, operation)
        for fault in replay_faults(stranger, operation)
    }

    assert faults == {}


def takes_idempotency_key(operation: Operation) -> bool:
    parameters = [description().resolve(one) for one in operation.content.get("parameters", [])]
    return any(one["name"] == "Idempotency-Key" for one in parameters)


def replay_faults(stranger: Stranger, operation: Operation) -> Iterator[Any]:
    path = filled(operation.path, {**IDS, **stranger.theirs})
    body, header = own_body(operation, stranger.theirs), {"Idempotency-Key": "theirs"}
    before = visible_response(stranger.call(operation.method, path, body), {})
    with transaction.atomic():
        first = stranger.victim.call(operation.method, path, body, header)
        replayed = stranger.victim.call(operation.method, path, body, header)
        answer = stranger.call(operation.method, path, body, **header)
        transaction.set_rollback(True)
    if first.status < 300 and "Idempotent-Replayed" not in replayed.headers:
        yield "the control is not replayed"
    found = visible_response(answer, {})
    is_same = found == before if answer.status >= 300 else found[0] == before[0]
    if "Idempotent-Replayed" in answer.headers or not is_same:
        yield found, before
