"""Proof of work of public pages: ALTCHA challenges, each good for one request."""

import base64
import hashlib
import json
from typing import Any

import pytest

from apps_config.models import RequestCount
from apps_config.public_limits import HOLDS, LIMITS, OPEN_PER_EMAIL, PER_ADDRESS, PER_APP, PER_EMAIL
from common.limits import altcha
from common.limits.altcha import MAX_NUMBER, make_challenge, read_solution
from tests.bookings.booking_drafts import MARTY, NINE, span
from tests.world import NOW, Answer, Caller, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]
KEY = b"a key of tests"


def solve(made: dict[str, Any], **changes: Any) -> str:
    """The solution of a challenge as a client sends it, with `changes` to its fields."""
    salt, wanted = made["salt"], made["challenge"]
    number = next(
        number
        for number in range(made["maxnumber"] + 1)
        if hashlib.sha256(f"{salt}{number}".encode()).hexdigest() == wanted
    )
    return encode({**made, "number": number, **changes})


def encode(solution: Any) -> str:
    return base64.b64encode(json.dumps(solution).encode()).decode()


# --- The protocol ---------------------------------------------------------------------------------
def test_a_solution_names_its_challenge_and_expiry() -> None:
    challenge = make_challenge(KEY, at("2026-11-20 09:40"))

    solution = read_solution(KEY, solve(challenge))

    assert solution == (challenge["challenge"], at("2026-11-20 09:40"))
    assert (challenge["algorithm"], challenge["maxnumber"]) == ("SHA-256", altcha.MAX_NUMBER)


@pytest.mark.parametrize(
    "changes",
    [
        {"number": -1},
        {"number": MAX_NUMBER + 1},
        {"number": "7"},
        {"number": True},
        {"number": 1.0},
        {"number": 10**400},
        {"algorithm": "SHA-1"},
        {"algorithm": None},
        {"signature": "0" * 64},
        {"signature": ["a"]},
        {"signature": "ä"},
        {"challenge": "0" * 64},
        {"salt": "other?expires=9999999999&"},
    ],
)
def test_changed_solutions_are_refused(changes: dict[str, Any]) -> None:
    challenge = make_challenge(KEY, at("2026-11-20 09:40"))

    assert read_solution(KEY, solve(challenge, **changes)) is None


@pytest.mark.parametrize(
    "payload",
    ["", "nonsense", "ä", encode([]), encode(7), encode({}), "a" * 5000, encode("\ud800")],
)
def test_malformed_solutions_are_refused(payload: str) -> None:
    assert read_solution(KEY, payload) is None


def test_challenge_of_another_key_is_refused() -> None:
    assert read_solution(b"other", solve(make_challenge(KEY, NOW))) is None


def test_digits_moved_into_the_salt_are_refused() -> None:
    """That would prolong the challenge: the hash covers salt and number as one text."""
    digits = ""
    while len(digits) < 2:
        solved = json.loads(base64.b64decode(solve(make_challenge(KEY, NOW))))
        digits = str(solved["number"])

    moved = {**solved, "salt": solved["salt"] + digits[:-1], "number": int(digits[-1])}

    assert read_solution(KEY, encode(moved)) is None


# --- Requests -------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def easy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(altcha, "MAX_NUMBER", 50)


@pytest.fixture
def project(tenant: Tenant) -> str:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_challenge": "altcha"}})
    ada = tenant.make_resource("Ada")
    moves = {"public_reschedule": "id"}
    return tenant.make_project(ada["id"], booking={"what": "Check-up"}, settings=moves)["id"]


@pytest.fixture
def widget(tenant: Tenant) -> Caller:
    return tenant.widget()


def solved(caller: Caller) -> str:
    answer = caller.get("/challenge")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "private, no-store")
    # The official widget reads the members at the top.
    assert answer.json == {**answer.data, "data": answer.data}
    return solve(answer.data)


def book(caller: Caller, project: str, headers: Any = None, **given: Any) -> Answer:
    body = {"project_id": project, "customer": MARTY, **NINE, **given}
    return caller.call("POST", "/bookings", body, headers)


def refused(answer: Answer) -> Any:
    return answer.status, answer.json.get("errors")


def test_a_challenge_is_good_for_one_request(widget: Caller, project: str) -> None:
    challenge = solved(widget)

    answers = [
        book(widget, project, **times)
        for times in (
            {},
            {"challenge": "nonsense"},
            {"challenge": challenge},
            {"challenge": challenge, **span("11:00", "12:00")},
        )
    ]

    assert [answer.status for answer in answers] == [422, 422, 201, 422]
    assert [refused(answer)[1] for answer in (answers[0], answers[1], answers[3])] == [
        {"challenge": ["Required: a solved challenge (GET /v2/challenge)."]},
        {"challenge": ["Is not a solved challenge."]},
        {"challenge": ["The challenge was already used."]},
    ]
    kinds = dict(RequestCount.objects.values_list("kind", "count"))
    assert kinds["refused:public_challenge"] == 3


@pytest.mark.parametrize("value", [None, 7, [], {}, True])
def test_challenge_of_another_type_is_refused(widget: Caller, project: str, value: Any) -> None:
    assert book(widget, project, challenge=value).status == 422


def test_a_challenge_lasts_ten_minutes(widget: Caller, project: str, clock: Any) -> None:
    one, other = solved(widget), solved(widget)

    clock.shift(599)
    in_time = book(widget, project, challenge=one)
    clock.shift(1)
    late = book(widget, project, challenge=other, **span("11:00", "12:00"))

    assert in_time.status == 201
    assert refused(late) == (422, {"challenge": ["The challenge has expired."]})


def test_challenge_of_another_app_is_refused(
    widget: Caller, project: str, make_tenant: Any
) -> None:
    foreign = solved(make_tenant().widget())

    assert refused(book(widget, project, challenge=foreign)) == (
        422,
        {"challenge": ["Is not a solved challenge."]},
    )


def test_replayed_request_needs_no_new_challenge(widget: Caller, project: str) -> None:
    given = {"challenge": solved(widget), "headers": {"Idempotency-Key": "one"}}

    first, again = (book(widget, project, **given) for _ in range(2))

    assert (first.status, again.status, again.json) == (201, 201, first.json)


def test_holds_and_reschedules_need_a_challenge(widget: Caller, project: str) -> None:
    hold = {"project_id": project, **NINE}
    booking = book(widget, project, challenge=solved(widget), **span("14:00", "15:00")).data["id"]
    move = span("16:00", "17:00")

    statuses = [
        widget.post(path, {**body, **proof}).status
        for path, body in (("/bookings/reserve", hold), (f"/bookings/{booking}/reschedule", move))
        for proof in ({}, {"challenge": solved(widget)})
    ]

    assert statuses == [422, 201, 422, 200]


def test_server_keys_need_no_challenge(tenant: Tenant, project: str) -> None:
    assert book(tenant, project).status == 201


def test_requests_without_a_solution_are_not_counted(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    """Neither that of the app nor that of the network: nothing is counted before the challenge."""
    tenant.set_public_limits(**{PER_APP: 1, PER_ADDRESS: 1, PER_EMAIL: 1})

    flood = [book(widget, project, challenge=given).status for given in (None, "nonsense") * 5]
    own = book(widget, project, challenge=solved(widget))

    assert (flood, own.status) == ([422] * 10, 201)


# --- Apps that need a challenge above a limit -----------------------------------------------------
@pytest.fixture
def open_project(tenant: Tenant) -> str:
    """A project of an app that does not always need a challenge."""
    ada = tenant.make_resource("Ada")
    return tenant.make_project(ada["id"], booking={"what": "Check-up"})["id"]


def test_no_challenge_is_needed_below_the_limits(widget: Caller, open_project: str) -> None:
    answers = [
        book(widget, open_project),
        book(widget, open_project, challenge=None, **span("11:00", "12:00")),
        book(widget, open_project, challenge="nonsense", **span("13:00", "14:00")),
        book(widget, open_project, challenge=solved(widget), **span("13:00", "14:00")),
    ]

    assert [answer.status for answer in answers] == [201, 201, 422, 201]


@pytest.mark.parametrize(
    ("limit", "second"),
    [
        (PER_APP, 201),
        (PER_EMAIL, 201),
        (PER_ADDRESS, 429),
        (OPEN_PER_EMAIL, 429),
    ],
)
def test_limits_lifted_by_a_solution(
    tenant: Tenant, widget: Caller, open_project: str, limit: str, second: int
) -> None:
    tenant.set_public_limits(**{limit: 1})
    times = [span(f"{hour}:00", f"{hour + 1}:00") for hour in (11, 13, 15)]
    book(widget, open_project)

    answers = [
        book(widget, open_project, **times[0]),
        book(widget, open_project, challenge=solved(widget), **times[1]),
        book(widget, open_project, **times[2]),
    ]

    assert [answer.status for answer in answers] == [429, second, 429]
    assert tenant.get("/bookings").json["total"] == (2 if second == 201 else 1)


def test_limit_of_holds_without_a_solution(
    tenant: Tenant, widget: Caller, open_project: str, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default of 60 would take as many holds: here it is two. Waiting for a code holds too."""
    monkeypatch.setitem(LIMITS, HOLDS, LIMITS[HOLDS]._replace(default=2))  # type: ignore[arg-type]
    verifying = tenant.make_project(
        tenant.make_resource("Bob")["id"],
        name="Verified",
        booking={"what": "Check-up"},
        settings={"verify_email": True},
    )["id"]
    days = iter(range(23, 30))

    def hold(**given: Any) -> Answer:
        time = span("09:00", "10:00", f"2026-11-{next(days)}")
        return widget.post("/bookings/reserve", {"project_id": open_project, **time, **given})

    held = [hold().status, book(widget, verifying).status]
    refused = [hold(), book(widget, verifying, **span("14:00", "15:00"))]
    proved = [
        hold(challenge=solved(widget)),
        book(widget, verifying, challenge=solved(widget), **span("14:00", "15:00")),
    ]
    plain = book(widget, open_project, **span("14:00", "15:00"))
    clock.shift(60)

    assert held == [201, 202]
    assert [(answer.status, answer.error) for answer in refused] == [
        (
            429,
            {
                "error": "Too many holds at the moment. Send a solved challenge"
                " (GET /v2/challenge), or try again later.",
                "code": "rate_limited",
                "errors": {"challenge": ["Required: a solved challenge (GET /v2/challenge)."]},
            },
        )
    ] * 2
    assert [answer.status for answer in proved] == [201, 202]
    assert (plain.status, hold().status) == (201, 201)
