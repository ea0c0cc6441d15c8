"""Holds over the API: POST /bookings/reserve, extend, DELETE, and `reservation_id` of a booking."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

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
    refused,
    shown,
    span,
    whole,
)
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
from tests.world import NOW, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

UNKNOWN = "0190a5b8-0000-7000-8000-00000000000f"


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
                "quantity": 1,
                "place": None,
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


def test_hold_in_a_named_calendar(tenant: Tenant, ada: Any, bob: Any) -> None:
    answer = reserve(tenant, calendar_id=bob["calendars"][0]["id"])

    assert (answer.status, answer.data["resource"]["name"]) == (201, "Bob")


def test_unknown_keys_are_ignored(tenant: Tenant, ada: Any) -> None:
    resource = tenant.get(f"/resources/{ada['id']}").data

    answer = reserve(tenant, resource_id=ada["id"], event=5, what=None, customer="nobody")

    hold = {
        "reservation_id": str(Hold.objects.get().id),
        **shown("09:00", "10:00"),
        "quantity": 1,
        "place": None,
    }
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
