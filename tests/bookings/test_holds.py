"""Holds over the API: POST /bookings/reserve, extend, DELETE, and `reservation_id` of a booking."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from apps_config.models import IdempotencyRecord
from availability.models import Hold
from bookings.models import Booking
from tests.availability.queries import refusal
from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    shown,
    span,
    whole,
)
from tests.world import NOW, Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

EXPIRED = {"error": "The hold has expired or was already used.", "code": "hold_expired"}
UNKNOWN = "0190a5b8-0000-7000-8000-00000000000f"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", image="https://example.com/a.png")


@pytest.fixture
def bob(tenant: Tenant) -> Any:
    return tenant.make_resource("Bob")


def reserve(caller: Caller, **given: Any) -> Answer:
    """POST /bookings/reserve of nine o'clock on Monday, unless another time is given."""
    return caller.post("/bookings/reserve", {**NINE, **given})


def hold_of(caller: Caller, **given: Any) -> str:
    """The id of a hold that is placed."""
    answer = reserve(caller, **given)
    assert answer.status == 201, answer.json
    return answer.data["reservation_id"]


def extend(caller: Caller, hold: str, **given: Any) -> Answer:
    return caller.put("/bookings/reserve/extend", {"reservation_id": hold, **given})


def release(caller: Caller, hold: str) -> Answer:
    return caller.delete(f"/bookings/reserve/{hold}")


def book(caller: Caller, **given: Any) -> Answer:
    """POST /bookings of nine o'clock on Monday, unless another time is given."""
    return caller.post("/bookings", {"what": "Check-up", "customer": MARTY, **NINE, **given})


def refused(answer: Answer) -> tuple[int, Any]:
    return answer.status, answer.error


def at_second(second: int) -> str:
    """So many seconds after NOW, as an answer writes it."""
    return (NOW + timedelta(seconds=second)).isoformat()


def taken_answer(*alternatives: str) -> tuple[int, Any]:
    """The refusal of nine to ten; `10:00` is an alternative of an hour."""
    return 409, {
        "error": "The time is taken.",
        "code": "slot_taken",
        "conflicts": [shown("09:00", "10:00")],
        "alternatives": [
            shown(f"{alternative}:00", f"{int(alternative) + 1}:00") for alternative in alternatives
        ],
    }


TAKEN = taken_answer("10", "11", "12")


# --- Placing --------------------------------------------------------------------------------------
def test_whole_record_of_a_hold(tenant: Tenant, ada: Any) -> None:
    resource = tenant.get(f"/resources/{ada['id']}").data

    answer = reserve(tenant, resource_id=ada["id"])

    hold = Hold.objects.get()
    assert (answer.status, answer.json) == (
        201,
        {
            "data": {
                "reservation_id": str(hold.id),
                **shown("09:00", "10:00"),
                "resource": resource,
                "expires_at": at_second(30),
            }
        },
    )
    assert (hold.app, hold.project, hold.main, hold.used_at, hold.client_address) == (
        tenant.app,
        None,
        None,
        None,
        "",
    )


def test_times_are_in_the_requested_zone(tenant: Tenant, ada: Any) -> None:
    body = {**NINE, "resource_id": ada["id"]}

    answer = tenant.post("/bookings/reserve", body, **{"Service-Timezone": "Asia/Kathmandu"})

    hold = answer.data
    assert (hold["start"], hold["end"], hold["expires_at"]) == (
        "2026-11-23T14:45:00+05:45",
        "2026-11-23T15:45:00+05:45",
        "2026-11-20T15:15:30+05:45",
    )


def test_wall_times_are_in_the_zone_of_the_resource(tenant: Tenant) -> None:
    resource = tenant.make_resource("Cleo", "Europe/Berlin")["id"]

    answer = reserve(
        tenant, resource_id=resource, start="2026-11-23 09:00:00", end="2026-11-23 10:00:00"
    )

    assert answer.data["start"] == "2026-11-23T08:00:00+00:00"


@pytest.mark.parametrize(
    ("own", "asked", "seconds"),
    [
        (None, {}, 30),
        (None, {"reservation_time": None}, 30),
        (90, {}, 90),
        (90, {"reservation_time": 1}, 1),
        (90, {"reservation_time": 3600}, 3600),
    ],
)
def test_duration_of_a_hold(
    tenant: Tenant, ada: Any, own: int | None, asked: dict[str, Any], seconds: int
) -> None:
    project = make_project(tenant, ada, reservation_time=own)

    answer = reserve(tenant, project_id=project, **asked)

    assert (answer.status, answer.data["expires_at"]) == (201, at_second(seconds))


def make_project(tenant: Tenant, *resources: Any, **given: Any) -> str:
    """Its id."""
    return tenant.make_project(*(resource["id"] for resource in resources), **given)["id"]


def test_hold_in_a_named_calendar(tenant: Tenant, ada: Any, bob: Any) -> None:
    answer = reserve(tenant, calendar_id=bob["calendars"][0]["id"])

    assert (answer.status, answer.data["resource"]["name"]) == (201, "Bob")


def test_unknown_keys_are_ignored(tenant: Tenant, ada: Any) -> None:
    resource = tenant.get(f"/resources/{ada['id']}").data

    answer = reserve(tenant, resource_id=ada["id"], event=5, what=None, customer="nobody")

    hold = {"reservation_id": str(Hold.objects.get().id), **shown("09:00", "10:00")}
    assert (answer.status, answer.json) == (
        201,
        {"data": {**hold, "resource": resource, "expires_at": at_second(30)}},
    )


@pytest.mark.parametrize("change", [{}, {"event": {}}, {"customer": 5}])
def test_target_is_required(tenant: Tenant, change: dict[str, Any]) -> None:
    answer = reserve(tenant, **change)

    text = "A calendar, a resource or a project is required."
    assert refused(answer) == (422, refusal(calendar_id=text))


MOST = "Ensure this value is less than or equal to 3600."
LEAST = "Ensure this value is greater than or equal to 1."


@pytest.mark.parametrize(
    ("change", "path", "text"),
    [
        ({"start": None}, "start", "This field may not be null."),
        ({"end": 5}, "end", "Must be a string."),
        ({"end": NINE["start"]}, "end", "Must be after the start."),
        ({"end": "2028-01-01T00:00:00Z"}, "end", "Must be at most 366 days after the start."),
        ({"reservation_time": 0}, "reservation_time", LEAST),
        ({"reservation_time": 3601}, "reservation_time", MOST),
        ({"reservation_time": 30.0}, "reservation_time", "Must be an integer."),
        ({"reservation_time": "30"}, "reservation_time", "Must be an integer."),
        ({"reservation_time": True}, "reservation_time", "Must be an integer."),
        ({"resource_id": "x"}, "resource_id", "Must be a UUID."),
        ({"resource_id": UNKNOWN}, "resource_id", "There is no such resource."),
        ({"project_id": UNKNOWN}, "project_id", "There is no such project."),
        ({"calendar_id": UNKNOWN}, "calendar_id", "There is no such calendar."),
        ({"settings": 5}, "settings", "Must be an object."),
        ({"settings": {"enforce_availability": 1}}, "settings.enforce_availability",
         "Must be true or false."),
    ],
)  # fmt: skip
def test_wrong_bodies_are_refused(
    tenant: Tenant, ada: Any, change: dict[str, Any], path: str, text: str
) -> None:
    answer = reserve(tenant, **{"resource_id": ada["id"], **change})

    assert (answer.status, answer.json["errors"]) == (422, {path: [text]})
    assert not Hold.objects.exists()


def test_a_body_must_be_an_object(tenant: Tenant) -> None:
    answer = tenant.post("/bookings/reserve", "nine o'clock")

    assert refused(answer) == (422, refusal(body="Must be an object."))


def test_foreign_ids_are_refused(tenant: Tenant, make_tenant: MakeTenant) -> None:
    other = make_tenant()
    theirs = other.make_resource()
    ids = {
        "resource_id": theirs["id"],
        "calendar_id": theirs["calendars"][0]["id"],
        "project_id": other.make_project(theirs["id"])["id"],
    }

    found = [refused(reserve(tenant, **{key: identifier})) for key, identifier in ids.items()]

    assert found == [
        (422, refusal(**{key: f"There is no such {key.removesuffix('_id')}."})) for key in ids
    ]


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


# --- Others are kept out --------------------------------------------------------------------------
def test_hold_blocks_others_until_it_expires(tenant: Tenant, ada: Any, clock: Any) -> None:
    hold_of(tenant, resource_id=ada["id"])

    clock.shift(29)
    early = [
        refused(book(tenant, resource_id=ada["id"])),
        refused(reserve(tenant, resource_id=ada["id"])),
    ]
    blocked = busy_times(tenant, ada["id"])
    clock.shift(1)
    free = busy_times(tenant, ada["id"])
    late = book(tenant, resource_id=ada["id"])

    assert (early, blocked) == ([TAKEN, TAKEN], ["09:00-10:00"])
    assert (free, late.status) == ([], 201)


def test_holds_of_a_deleted_project_are_released(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"])
    held = tenant.post("/bookings/reserve", {"project_id": project["id"], **NINE}).data
    tenant.delete(f"/projects/{project['id']}")

    extended = tenant.put("/bookings/reserve/extend", {"reservation_id": held["reservation_id"]})
    other = tenant.book(resource_id=ada["id"], **NINE)

    assert (extended.status, extended.error["code"], other.status) == (409, "hold_expired", 201)


def test_touching_times_are_allowed(tenant: Tenant, ada: Any) -> None:
    hold_of(tenant, resource_id=ada["id"])

    answers = [
        book(tenant, resource_id=ada["id"], **span(*times))
        for times in (("08:00", "09:00"), ("10:00", "11:00"), ("09:59", "10:01"))
    ]

    assert [answer.status for answer in answers] == [201, 201, 409]


def test_confirm_is_refused_during_a_hold(tenant: Tenant, ada: Any, clock: Any) -> None:
    request = book(tenant, resource_id=ada["id"], graph="confirm_decline").data
    hold_of(tenant, resource_id=ada["id"])

    refusal = act(tenant, request, "confirm")
    state = whole(tenant, request)["state"]
    clock.shift(30)
    done = act(tenant, request, "confirm")

    assert (refused(refusal), state) == (TAKEN, "tentative")
    assert (done.status, done.data["state"]) == (200, "confirmed")


def test_reschedule_is_refused_during_a_hold(tenant: Tenant, ada: Any, clock: Any) -> None:
    booking = book(tenant, resource_id=ada["id"], **span("15:00", "16:00")).data
    hold_of(tenant, resource_id=ada["id"])
    path = f"/bookings/{booking['id']}/reschedule"

    refusal = tenant.post(path, NINE)
    clock.shift(30)
    done = tenant.post(path, NINE)

    assert (refused(refusal), done.status) == (TAKEN, 200)


def test_bookings_that_may_overlap_ignore_holds(tenant: Tenant, ada: Any) -> None:
    hold_of(tenant, resource_id=ada["id"])

    answers = [
        book(
            tenant,
            resource_id=ada["id"],
            settings={"allow_double_bookings": True, "enforce_availability": enforced},
        )
        for enforced in (False, True)
    ]

    assert [answer.status for answer in answers] == [201, 201]


def test_events_made_by_hand_may_overlap_a_hold(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])

    tenant.make_event(ada["calendars"][0]["id"], **NINE)

    assert refused(book(tenant, resource_id=ada["id"], reservation_id=hold)) == TAKEN


def test_buffer_applies_around_a_hold(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, availability={"buffer": "15 minutes"})
    hold = hold_of(tenant, project_id=project)

    beside = book(tenant, project_id=project, **span("10:00", "11:00"))
    own = book(tenant, project_id=project, reservation_id=hold)

    assert (beside.status, beside.json["code"], beside.json["reasons"]) == (
        409,
        "not_available",
        [
            {
                "type": "buffer",
                "source": None,
                "reservation_id": hold,
                "text": "Within the buffer of 15 minutes around a hold.",
            }
        ],
    )
    assert own.status == 201


# --- Used by its holder ---------------------------------------------------------------------------
def test_hold_is_used_once(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])

    first = book(tenant, resource_id=ada["id"], reservation_id=hold)
    second = book(tenant, resource_id=ada["id"], reservation_id=hold)

    assert (first.status, first.json) == (201, {"data": answered(first.data, "confirmed")})
    assert refused(second) == (409, EXPIRED)
    assert (Hold.objects.get().used_at, Booking.objects.count()) == (NOW, 1)
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]


def test_unused_rest_of_a_hold_is_freed(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"], **span("09:00", "12:00"))

    book(tenant, resource_id=ada["id"], reservation_id=hold, **span("10:00", "11:00"))

    assert busy_times(tenant, ada["id"]) == ["10:00-11:00"]


def test_hold_with_the_nested_form_of_a_booking(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])
    event = {**NINE, "what": "A", "calendar_id": ada["calendars"][0]["id"]}

    answer = tenant.post("/bookings", {"event": event, "customer": MARTY, "reservation_id": hold})

    assert answer.status == 201


@pytest.mark.parametrize("mode", ["roundrobin_random", "roundrobin_prioritized", "exclusive"])
def test_hold_sets_the_resource_of_the_booking(
    tenant: Tenant, ada: Any, bob: Any, mode: str
) -> None:
    project = make_project(tenant, ada, bob, availability={"mode": mode})
    held = reserve(tenant, project_id=project).data

    booking = book(tenant, project_id=project, reservation_id=held["reservation_id"]).data

    assert whole(tenant, booking)["resource"]["id"] == held["resource"]["id"]


def test_holds_of_a_project_take_different_resources(tenant: Tenant, ada: Any, bob: Any) -> None:
    project = make_project(tenant, ada, bob)

    answers = [reserve(tenant, project_id=project) for _ in range(3)]

    assert [answer.status for answer in answers] == [201, 201, 409]
    names = {answer.data["resource"]["name"] for answer in answers[:2]}
    assert (names, refused(answers[2])) == ({"Ada", "Bob"}, TAKEN)


@pytest.mark.parametrize("how", ["lapsed", "used", "released"])
def test_ended_hold_is_refused(tenant: Tenant, ada: Any, clock: Any, how: str) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])
    if how == "lapsed":
        clock.shift(30)
    elif how == "used":
        book(tenant, resource_id=ada["id"], reservation_id=hold)
    else:
        release(tenant, hold)
    before = list(Hold.objects.values())

    booked = book(tenant, resource_id=ada["id"], reservation_id=hold)
    extended = extend(tenant, hold)
    deleted = release(tenant, hold)

    gone = (404, {"error": "Hold not found.", "code": "not_found", "model": "Hold"})
    assert refused(booked) == refused(extended) == (409, EXPIRED)
    assert refused(deleted) == (gone if how == "released" else (409, EXPIRED))
    assert list(Hold.objects.values()) == before


@pytest.mark.parametrize(
    ("times", "text"),
    [
        (span("09:00", "10:01"), "The hold is for another time."),
        (span("08:59", "10:00"), "The hold is for another time."),
        (span("11:00", "12:00"), "The hold is for another time."),
        (span("09:30", "09:45"), None),
    ],
)
def test_hold_is_for_its_own_time(
    tenant: Tenant, ada: Any, times: dict[str, str], text: str | None
) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])

    answer = book(tenant, resource_id=ada["id"], reservation_id=hold, **times)

    if text is None:
        assert answer.status == 201
    else:
        assert refused(answer) == (422, refusal(reservation_id=text))
        assert book(tenant, resource_id=ada["id"], reservation_id=hold).status == 201


def test_hold_is_for_its_own_resource(tenant: Tenant, ada: Any, bob: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])
    bobs = make_project(tenant, bob)
    both = make_project(tenant, ada, bob, availability={"mode": "mutual"})

    answers = [
        book(tenant, reservation_id=hold, **keys)
        for keys in ({"resource_id": bob["id"]}, {"project_id": bobs}, {"project_id": both})
    ]

    error = (422, refusal(reservation_id="The hold is for another resource."))
    assert [refused(answer) for answer in answers] == [error] * 3
    assert Hold.objects.get().used_at is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (UNKNOWN, "There is no such hold."),
        ("foreign", "There is no such hold."),
        ("companion", "There is no such hold."),
        ("nonsense", "Must be a UUID."),
        (5, "Must be a UUID."),
    ],
)
def test_unknown_holds_are_refused(
    tenant: Tenant, make_tenant: MakeTenant, ada: Any, bob: Any, value: Any, text: str
) -> None:
    other = make_tenant()
    both = make_project(tenant, bob, ada, availability={"mode": "mutual"})
    hold_of(tenant, project_id=both, **span("15:00", "16:00"))
    named = {
        "foreign": hold_of(other, resource_id=other.make_resource()["id"]),
        "companion": str(Hold.objects.exclude(main=None).get().id),
    }
    hold = named.get(value, value)
    before = list(Hold.objects.order_by("id").values())

    booked = book(tenant, resource_id=ada["id"], reservation_id=hold)
    extended = extend(tenant, hold)

    assert refused(booked) == refused(extended) == (422, refusal(reservation_id=text))
    if text != "Must be a UUID.":
        assert release(tenant, hold).status == 404
    assert list(Hold.objects.order_by("id").values()) == before
    assert not Booking.objects.exists()


def test_reservation_id_null_is_ignored(tenant: Tenant, ada: Any) -> None:
    assert book(tenant, resource_id=ada["id"], reservation_id=None).status == 201


def test_refused_booking_keeps_the_hold(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, availability={"length": "30 minutes"})
    hold = hold_of(tenant, resource_id=ada["id"])
    keys = {"project_id": project, "reservation_id": hold}

    refusal = book(tenant, **keys)
    kept = Hold.objects.get().used_at
    made = book(tenant, **keys, **span("09:00", "09:30"))

    assert (refusal.status, refusal.json["code"], kept) == (409, "not_available", None)
    assert made.status == 201


def test_draft_uses_the_hold(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])

    answer = book(tenant, resource_id=ada["id"], reservation_id=hold, action="create")

    assert (answer.data["state"], Hold.objects.get().used_at) == ("initialized", NOW)
    assert busy_times(tenant, ada["id"]) == []


# --- Mutual ---------------------------------------------------------------------------------------
@pytest.fixture
def mutual(tenant: Tenant, ada: Any, bob: Any) -> str:
    return make_project(tenant, ada, bob, availability={"mode": "mutual"})


def test_mutual_hold_blocks_all_resources(tenant: Tenant, ada: Any, bob: Any, mutual: str) -> None:
    answer = reserve(tenant, project_id=mutual)

    rows = list(Hold.objects.order_by("id").values_list("resource__name", "main__resource__name"))
    assert (answer.status, answer.data["resource"]["name"]) == (201, "Ada")
    assert rows == [("Ada", None), ("Bob", "Ada")]
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [["09:00-10:00"]] * 2


def test_mutual_hold_needs_all_resources_free(tenant: Tenant, bob: Any, mutual: str) -> None:
    tenant.book(resource_id=bob["id"], **NINE)

    assert refused(reserve(tenant, project_id=mutual)) == TAKEN
    assert not Hold.objects.exists()


def test_mutual_hold_is_used_for_all_resources(
    tenant: Tenant, ada: Any, bob: Any, mutual: str
) -> None:
    hold = hold_of(tenant, project_id=mutual)

    booking = book(tenant, project_id=mutual, reservation_id=hold)

    assert (booking.status, whole(tenant, booking.data)["resource"]["name"]) == (201, "Ada")
    assert [row.used_at for row in Hold.objects.all()] == [NOW, NOW]
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [["09:00-10:00"]] * 2


def test_mutual_hold_is_extended_and_released_together(
    tenant: Tenant, ada: Any, bob: Any, mutual: str
) -> None:
    hold = hold_of(tenant, project_id=mutual)

    extend(tenant, hold, reservation_time=100)
    ends = [row.expires_at - NOW for row in Hold.objects.all()]
    released = release(tenant, hold)

    assert (ends, released.status) == ([timedelta(seconds=100)] * 2, 204)
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [[], []]


def test_one_resource_of_a_mutual_hold_can_be_booked(
    tenant: Tenant, ada: Any, bob: Any, mutual: str
) -> None:
    hold = hold_of(tenant, project_id=mutual)

    answer = book(tenant, resource_id=bob["id"], reservation_id=hold)

    assert answer.status == 201
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [[], ["09:00-10:00"]]


# --- Extending and giving back --------------------------------------------------------------------
def test_an_extension_counts_from_now(tenant: Tenant, ada: Any, clock: Any) -> None:
    first = reserve(tenant, resource_id=ada["id"]).data
    clock.shift(20)

    answer = extend(tenant, first["reservation_id"], reservation_time=60)

    assert (answer.status, answer.json) == (200, {"data": {**first, "expires_at": at_second(80)}})
    assert Hold.objects.get().extensions == 1


@pytest.mark.parametrize("own", [None, 90])
def test_an_extension_lasts_as_long_as_a_hold(tenant: Tenant, ada: Any, own: int | None) -> None:
    hold = hold_of(tenant, project_id=make_project(tenant, ada, reservation_time=own))

    answers = [extend(tenant, hold) for _ in range(3)]

    assert [answer.data["expires_at"] for answer in answers] == [at_second(own or 30)] * 3


@pytest.mark.parametrize("by", ["event", "booking", "moved booking", "hold"])
def test_extension_of_a_taken_time_is_refused(
    tenant: Tenant, ada: Any, clock: Any, by: str
) -> None:
    double = {"allow_double_bookings": True}
    later = span("15:00", "16:00")
    earlier = tenant.book(resource_id=ada["id"], settings=double, **later).data
    clock.shift(5)
    hold = hold_of(tenant, resource_id=ada["id"])
    clock.shift(5)
    half = span("09:30", "10:30")
    take = {
        "event": lambda: tenant.make_event(ada["calendars"][0]["id"], **half),
        "booking": lambda: book(tenant, resource_id=ada["id"], settings=double, **half),
        "moved booking": lambda: tenant.post(f"/bookings/{earlier['id']}/reschedule", half),
        "hold": lambda: reserve(tenant, resource_id=ada["id"], settings=double, **half),
    }
    take[by]()

    answer = extend(tenant, hold)

    assert refused(answer) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:30", "10:30")],
            "alternatives": [],
        },
    )
    assert Hold.objects.get(id=hold).extensions == 0


def test_extension_of_a_double_booked_hold(tenant: Tenant, ada: Any, clock: Any) -> None:
    """What was there when it was made is no news."""
    double = {"allow_double_bookings": True}
    tenant.book(resource_id=ada["id"], **NINE)
    reserve(tenant, resource_id=ada["id"], settings=double)
    clock.shift(5)
    hold = hold_of(tenant, resource_id=ada["id"], settings=double)

    answer = extend(tenant, hold)

    assert answer.status == 200


def test_mutual_hold_is_not_extended_if_one_resource_is_taken(
    tenant: Tenant, bob: Any, mutual: str
) -> None:
    hold = hold_of(tenant, project_id=mutual)
    tenant.make_event(bob["calendars"][0]["id"], **NINE)

    answer = extend(tenant, hold)

    assert (answer.status, answer.json["code"]) == (409, "slot_taken")


def test_ignored_all_day_events_allow_an_extension(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(
        tenant,
        project_id=make_project(tenant, ada, availability={"ignore_all_day_events": True}),
    )
    tenant.make_event(ada["calendars"][0]["id"], MONDAY, "2026-11-24", all_day=True)

    answer = extend(tenant, hold)

    assert answer.status == 200


@pytest.mark.parametrize(
    ("body", "path", "text"),
    [
        ({}, "reservation_id", "This field is required."),
        ({"reservation_id": None}, "reservation_id", "This field may not be null."),
        ({"reservation_id": "{hold}", "reservation_time": 0}, "reservation_time", LEAST),
        ({"reservation_id": "{hold}", "reservation_time": 3601}, "reservation_time", MOST),
        ({"reservation_id": "{hold}", "reservation_time": "9"}, "reservation_time",
         "Must be an integer."),
        (["x"], "body", "Must be an object."),
    ],
)  # fmt: skip
def test_wrong_extensions_are_refused(
    tenant: Tenant, ada: Any, body: Any, path: str, text: str
) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])
    if isinstance(body, dict) and body.get("reservation_id"):
        body = {**body, "reservation_id": hold}

    answer = tenant.put("/bookings/reserve/extend", body)

    assert refused(answer) == (422, refusal(**{path: text}))
    assert Hold.objects.get().extensions == 0


def test_released_hold_frees_its_time(tenant: Tenant, ada: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])

    answer = release(tenant, hold)

    assert (answer.status, answer.content) == (204, b"")
    assert busy_times(tenant, ada["id"]) == []
    assert reserve(tenant, resource_id=ada["id"]).status == 201


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
