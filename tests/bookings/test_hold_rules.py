"""Rules for holds: those of bookings, of the moment, and of keys of resources and widgets."""

from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import IdempotencyRecord
from availability.models import Hold
from tests.availability.queries import refusal
from tests.bookings.booking_drafts import NINE, busy_times, refused, shown, span
from tests.bookings.hold_requests import (
    EXPIRED,
    TAKEN,
    at_second,
    book,
    extend,
    hold_of,
    make_project,
    release,
    reserve,
)
from tests.world import Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", image="https://example.com/a.png")


# --- Checked like a booking with the same keys ----------------------------------------------------
def test_taken_time_is_refused(tenant: Tenant, ada: Any) -> None:
    tenant.book(resource_id=ada["id"], **NINE)

    assert refused(reserve(tenant, resource_id=ada["id"])) == TAKEN
    assert not Hold.objects.exists()


CLOSED = [{"allow_hours": {"start": 10, "end": 12}}]


@pytest.mark.parametrize(
    ("named", "settings", "status"),
    [
        ("resource", {}, 201),
        ("resource", {"enforce_availability": True}, 409),
        ("project", {}, 409),
        ("project", {"enforce_availability": False}, 201),
    ],
)
def test_rules_are_enforced_as_for_a_booking(
    tenant: Tenant, named: str, settings: dict[str, bool], status: int
) -> None:
    resource = tenant.make_resource("Ada", availability_constraints=CLOSED)
    keys = {"resource_id": resource["id"]}
    if named == "project":
        keys = {"project_id": tenant.make_project(resource["id"])["id"]}

    held = reserve(tenant, settings=settings, **keys)
    release(tenant, held.data["reservation_id"]) if held.status == 201 else None
    booked = book(tenant, settings=settings, **keys)

    assert (held.status, booked.status) == (status, status)
    if status == 409:
        assert held.error == booked.error


def test_holds_with_double_bookings_may_overlap(tenant: Tenant, ada: Any) -> None:
    tenant.book(resource_id=ada["id"], **NINE)
    double = {"allow_double_bookings": True}

    first = reserve(tenant, resource_id=ada["id"], settings=double)
    second = reserve(tenant, resource_id=ada["id"], settings=double)

    assert (first.status, second.status) == (201, 201)


def test_the_limit_of_a_day_counts_the_holds_of_others(
    tenant: Tenant, ada: Any, clock: Any
) -> None:
    project = make_project(tenant, ada, settings={"max_per_day": 1})
    hold = hold_of(tenant, project_id=project)

    second = reserve(tenant, project_id=project, **span("11:00", "12:00"))
    third = book(tenant, project_id=project, **span("13:00", "14:00"))
    offered = tenant.post("/availability", {"project_id": project, "length": "1 hour"}).data
    made = book(tenant, project_id=project, reservation_id=hold)
    fourth = reserve(tenant, project_id=project, **span("15:00", "16:00"))

    refusals = [(one.status, one.json["reasons"][0]["text"]) for one in (second, third, fourth)]
    assert refusals == [(409, "Daily limit reached.")] * 3
    assert [one for one in offered if one["start"].startswith("2026-11-23")] == []
    assert made.status == 201


@pytest.mark.parametrize("end", ["lapses", "released"])
def test_a_hold_that_has_ended_leaves_the_limit_of_its_day(
    tenant: Tenant, ada: Any, clock: Any, end: str
) -> None:
    project = make_project(tenant, ada, settings={"max_per_day": 1})
    hold = hold_of(tenant, project_id=project)
    if end == "lapses":
        clock.shift(30)
    else:
        release(tenant, hold)

    answer = book(tenant, project_id=project, **span("11:00", "12:00"))

    assert answer.status == 201


@pytest.mark.parametrize("project_of_hold", ["other", None])
def test_the_limit_of_a_day_counts_holds_of_its_own_project(
    tenant: Tenant, ada: Any, project_of_hold: str | None
) -> None:
    limited = make_project(tenant, ada, settings={"max_per_day": 1})
    if project_of_hold:
        hold_of(tenant, project_id=make_project(tenant, ada, name="Cleaning"))
    else:
        hold_of(tenant, resource_id=ada["id"])

    answer = book(tenant, project_id=limited, **span("11:00", "12:00"))

    assert answer.status == 201


# --- What depends on the moment -------------------------------------------------------------------
NOTICE = {"availability": {"length": None, "from": "2 hours"}}
WINDOW = {"availability": {"length": None, "to": "7 days"}}
SOON = span("11:30", "12:30", "2026-11-20")  # two hours after NOW
NEXT = span("09:31", "10:31", "2026-11-20")  # a minute after NOW


@pytest.mark.parametrize(
    ("rules", "times", "wait"),
    [(NOTICE, SOON, 6), ({}, NEXT, 120)],
    ids=["notice", "past"],
)
def test_notice_and_window_are_checked_when_the_hold_is_created(
    tenant: Tenant, ada: Any, clock: Any, rules: dict[str, Any], times: Any, wait: int
) -> None:
    project = make_project(tenant, ada, **rules)
    hold = hold_of(tenant, project_id=project, reservation_time=600, **times)
    clock.shift(wait)

    without = book(tenant, project_id=project, **times)
    answer = book(tenant, project_id=project, reservation_id=hold, **times)

    assert (without.status, answer.status) == (409, 201)


def test_shortened_booking_window_keeps_the_hold(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, **WINDOW)
    hold = hold_of(tenant, project_id=project)
    tenant.put(f"/projects/{project}", {"availability": {"to": "1 day"}})

    without = book(tenant, project_id=project, **span("11:00", "12:00"))
    answer = book(tenant, project_id=project, reservation_id=hold)

    assert (without.json["code"], answer.status) == ("not_available", 201)


def test_notice_is_checked_again_for_a_hold_of_another_project(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, availability={"from": "1 week"})
    other = make_project(tenant, ada, name="Cleaning")
    holds = [
        hold_of(tenant, project_id=other),
        hold_of(tenant, resource_id=ada["id"], **span("11:00", "12:00")),
    ]

    answers = [
        book(tenant, project_id=project, reservation_id=holds[0]),
        book(tenant, project_id=project, reservation_id=holds[1], **span("11:00", "12:00")),
    ]

    assert [[reason["type"] for reason in answer.json["reasons"]] for answer in answers] == [
        ["notice"],
        ["notice"],
    ]


@pytest.mark.parametrize("rules", [{"length": "30 minutes"}, {"length": "1 hour"}])
def test_other_rules_are_checked_when_the_hold_is_booked(
    tenant: Tenant, ada: Any, rules: dict[str, str]
) -> None:
    project = make_project(tenant, ada)
    hold = hold_of(tenant, project_id=project)
    rule = {"block_hours": {"start": 9, "end": 12}}
    tenant.put(f"/projects/{project}", {"availability": rules, "availability_constraints": [rule]})

    answer = book(tenant, project_id=project, reservation_id=hold)

    assert (answer.status, answer.json["code"]) == (409, "not_available")


def test_hold_in_the_past_is_refused(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)

    answer = reserve(tenant, project_id=project, **span("09:00", "10:00", "2026-11-20"))

    assert (answer.status, [reason["type"] for reason in answer.json["reasons"]]) == (409, ["past"])


def test_idempotency_key_creates_one_hold(tenant: Tenant, ada: Any) -> None:
    body = {**NINE, "resource_id": ada["id"]}

    first, again = (
        tenant.post("/bookings/reserve", body, **{"Idempotency-Key": "one"}) for _ in range(2)
    )

    assert (again.status, again.json) == (201, first.json)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (Hold.objects.count(), IdempotencyRecord.objects.count()) == (1, 1)


# --- Resource keys --------------------------------------------------------------------------------
def test_resource_key_holds_its_own_time(tenant: Tenant, mutual: str, ada: Any) -> None:
    key = Caller(ada["api_token"])

    answer = reserve(key)
    hold = answer.data["reservation_id"]

    assert (answer.status, answer.data["resource"]["name"]) == (201, "Ada")
    assert (extend(key, hold).status, book(key, reservation_id=hold).status) == (200, 201)


def test_resource_key_cannot_use_holds_of_others(
    tenant: Tenant, ada: Any, bob: Any, mutual: str
) -> None:
    key = Caller(ada["api_token"])
    holds = [hold_of(tenant, resource_id=bob["id"]), hold_of(tenant, project_id=mutual, **TEN)]
    before = list(Hold.objects.order_by("id").values())

    answers = [
        (
            refused(book(key, reservation_id=hold)),
            refused(extend(key, hold)),
            release(key, hold).status,
        )
        for hold in holds
    ]

    error = (422, refusal(reservation_id="There is no such hold."))
    assert answers == [(error, error, 404)] * 2
    assert list(Hold.objects.order_by("id").values()) == before


TEN = span("10:00", "11:00")


# --- Widget keys ----------------------------------------------------------------------------------
@pytest.fixture
def widget(tenant: Tenant) -> Caller:
    return tenant.widget()


def test_fields_of_a_hold_for_a_widget_key(tenant: Tenant, widget: Caller, ada: Any) -> None:
    project = make_project(tenant, ada)

    answer = reserve(widget, project_id=project)
    extended = extend(widget, answer.data["reservation_id"])

    whole_hold = {
        "reservation_id": answer.data["reservation_id"],
        **shown("09:00", "10:00"),
        "resource": {
            "id": ada["id"],
            "name": "Ada",
            "image": "https://example.com/a.png",
            "timezone": "UTC",
        },
        "quantity": 1,
        "place": None,
        "expires_at": at_second(30),
    }
    assert (answer.status, answer.json) == (201, {"data": whole_hold})
    assert (extended.status, extended.json) == (200, {"data": whole_hold})
    assert Hold.objects.get().client_address == "127.0.0.1"


def test_widget_key_books_its_hold(tenant: Tenant, widget: Caller, ada: Any) -> None:
    project = make_project(tenant, ada)
    hold = hold_of(widget, project_id=project)

    others = book(widget, project_id=project)
    own = book(widget, project_id=project, reservation_id=hold)
    again = book(widget, project_id=project, reservation_id=hold)

    assert (refused(others), own.status, refused(again)) == (TAKEN, 201, (409, EXPIRED))


def test_widget_key_releases_its_hold(tenant: Tenant, widget: Caller, ada: Any) -> None:
    hold = hold_of(widget, project_id=make_project(tenant, ada))

    assert (release(widget, hold).status, busy_times(tenant, ada["id"])) == (204, [])


@pytest.mark.parametrize(
    ("own", "asked", "most"),
    [(None, 30, None), (None, 31, 30), (90, 90, None), (90, 91, 90), (10, 11, 10)],
)
def test_widget_key_holds_up_to_reservation_time_of_the_project(
    tenant: Tenant, widget: Caller, ada: Any, own: int | None, asked: int, most: int | None
) -> None:
    project = make_project(tenant, ada, reservation_time=own)

    placed = reserve(widget, project_id=project, reservation_time=asked)
    hold = hold_of(tenant, project_id=project, **TEN)
    extended = extend(widget, hold, reservation_time=asked)

    if most is None:
        found = (placed.status, placed.data["expires_at"], extended.data["expires_at"])
        assert found == (201, at_second(asked), at_second(asked))
    else:
        error = (422, refusal(reservation_time=f"Must be at most {most}."))
        assert refused(placed) == refused(extended) == error


def test_widget_key_without_project_holds_up_to_30_seconds(
    tenant: Tenant, widget: Caller, ada: Any
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})

    answers = [
        reserve(widget, resource_id=ada["id"], reservation_time=seconds) for seconds in (31, 30)
    ]

    assert [answer.status for answer in answers] == [422, 201]


def test_widget_key_extends_a_hold_once(tenant: Tenant, widget: Caller, ada: Any) -> None:
    hold = hold_of(widget, project_id=make_project(tenant, ada))

    first, second, servers = extend(widget, hold), extend(widget, hold), extend(tenant, hold)

    assert (first.status, servers.status) == (200, 200)
    assert refused(second) == (
        409,
        {
            "error": "The policy max_extensions does not allow this.",
            "code": "policy",
            "policy": "max_extensions",
            "limit": 1,
        },
    )


@pytest.mark.parametrize(
    "ignored",
    [
        {"settings": {"enforce_availability": False, "allow_double_bookings": True}},
        {"settings": "nonsense"},
        {"calendar_id": "nonsense"},
        {"event": "nonsense"},
    ],
)
def test_rules_are_always_enforced_for_a_widget_key(
    tenant: Tenant, widget: Caller, ignored: dict[str, Any]
) -> None:
    ada = tenant.make_resource("Ada", availability_constraints=CLOSED)
    tenant.make_event(ada["calendars"][0]["id"], **TEN)
    project = make_project(tenant, ada, settings={"enforce_availability": False})

    answers = [
        reserve(widget, project_id=project, **times, **ignored)
        for times in (NINE, TEN, span("11:00", "12:00"))
    ]

    assert [answer.status for answer in answers] == [409, 409, 201]
    text = "Outside the resource's opening hours: 10:00 to 12:00."
    assert answers[0].json["reasons"] == [{"type": "constraint", "text": text}]


def test_widget_key_does_not_see_ids_of_holds(tenant: Tenant, widget: Caller, ada: Any) -> None:
    project = make_project(tenant, ada, availability={"buffer": "1 hour"})
    hold_of(widget, project_id=project)

    answer = reserve(widget, project_id=project, **TEN)

    text = "Within the buffer of 1 hour around a hold."
    assert answer.json["reasons"] == [{"type": "buffer", "text": text}]


@pytest.mark.parametrize("kind", ["other", "foreign"])
def test_widget_key_holds_only_resources_of_the_project(
    tenant: Tenant, make_tenant: MakeTenant, widget: Caller, ada: Any, bob: Any, kind: str
) -> None:
    ids = {"other": bob["id"], "foreign": make_tenant().make_resource()["id"]}

    answer = reserve(widget, project_id=make_project(tenant, ada), resource_id=ids[kind])

    assert refused(answer) == (422, refusal(resource_id="There is no such resource."))


def test_an_address_has_five_open_holds(
    tenant: Tenant, make_tenant: MakeTenant, widget: Caller, ada: Any, clock: Any
) -> None:
    times = nine_of_six_days()
    project = make_project(tenant, ada)
    for time in times[:2]:
        hold_of(widget, project_id=project, **time)
    clock.shift(4.5)
    for time in times[2:5]:
        hold_of(widget, project_id=project, **time)
    before = list(Hold.objects.order_by("id").values())

    refusal = reserve(widget, project_id=project, **times[5])
    other_app = make_tenant()
    of_other_app = make_project(other_app, other_app.make_resource())
    others = [
        reserve(tenant, resource_id=ada["id"], **times[5]).status,
        reserve(other_app.widget(), project_id=of_other_app).status,
        elsewhere(tenant, project).status,
    ]

    error = {"error": "Too many open holds from this address.", "code": "rate_limited"}
    assert (refused(refusal), refusal.headers["Retry-After"]) == ((429, error), "26")
    assert others == [201, 201, 201]
    assert [
        *Hold.objects.filter(id__in=[one["id"] for one in before]).order_by("id").values()
    ] == before


def nine_of_six_days() -> list[dict[str, str]]:
    """On one day, they would be more than public callers may hold."""
    return [span("09:00", "10:00", f"2026-11-{day}") for day in range(23, 29)]


def elsewhere(tenant: Tenant, project: str) -> Answer:
    """A hold with a widget key from another address."""
    caller = tenant.widget()
    caller.client.defaults["REMOTE_ADDR"] = "192.0.2.7"
    return reserve(caller, project_id=project, **span("20:00", "21:00"))


@pytest.mark.parametrize("how", ["lapsed", "used", "released"])
def test_ended_holds_do_not_count_towards_the_limit(
    tenant: Tenant, widget: Caller, ada: Any, clock: Any, how: str
) -> None:
    times = nine_of_six_days()
    project = make_project(tenant, ada)
    holds = [hold_of(widget, project_id=project, **time) for time in times[:5]]
    assert reserve(widget, project_id=project, **times[5]).status == 429

    if how == "lapsed":
        clock.shift(30)
    elif how == "used":
        assert book(widget, project_id=project, reservation_id=holds[0]).status == 201
    else:
        release(widget, holds[0])

    assert reserve(widget, project_id=project, **times[5]).status == 201


def test_mutual_hold_counts_once_towards_the_limit(
    tenant: Tenant, widget: Caller, mutual: str
) -> None:
    times = nine_of_six_days()

    answers = [reserve(widget, project_id=mutual, **time) for time in times]

    assert [answer.status for answer in answers] == [201] * 5 + [429]
