"""Groups: an owner's booking and the seats in it (section 5, graphs group_*)."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from bookings.models import Booking
from bookings.services import complete_ended, expire_bookings
from tests.availability.queries import refusal
from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    entry,
    links,
    shown,
    span,
    steps,
    whole,
)
from tests.bookings.group_world import ANN, BOB, CYD, make_group, seat_in, seats_of, take_seat
from tests.world import BERLIN, NOW, STAMP, Answer, Caller, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

FULL = {"error": "Every seat of the group is taken.", "code": "group_full"}
DUE = at(f"{MONDAY} 11:00")  # an hour after the end
NO_GROUP = (422, refusal(related__owner_booking_id="There is no such group."))


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.post_resource("Ada", email="ada@example.com")


@pytest.fixture
def group(tenant: Tenant, ada: Any) -> Any:
    return make_group(tenant, ada)


def refused(answer: Answer) -> tuple[int, Any]:
    """The status and the whole error."""
    return answer.status, answer.error


def invalid(**errors: str) -> tuple[int, Any]:
    """The refusal of wrong values; `__` in a path stands for a dot."""
    return 422, refusal(**errors)


def states(tenant: Tenant, *bookings: Any) -> list[str]:
    return [tenant.get(f"/bookings/{booking['id']}").data["state"] for booking in bookings]


# --- The owner's booking --------------------------------------------------------------------------
def test_a_group_is_an_owners_booking_without_a_customer(tenant: Tenant, ada: Any) -> None:
    policies = {
        "min_cancel_time": "1 day",
        "min_booking_time": "2 hours",
        "max_booking_time": "4 weeks",
    }
    answer = tenant.book(
        graph="group_owner",
        resource_id=ada["id"],
        settings={"max_seats": 12, **policies},
        **NINE,
    )

    found = whole(tenant, answer.data)
    assert (answer.status, answer.json) == (
        *(201, {"data": answered(answer.data, "tentative", "group_owner")}),
    )
    assert found["attributes"] == {
        "event_info": {
            **shown("09:00", "10:00"),
            "what": "Meeting",
            "where": "",
            "description": "",
            "calendar_id": ada["calendars"][0]["id"],
            "invite": True,
            "participants": [],
        },
        "customer": None,
        "settings": {"allow_double_bookings": False, "enforce_availability": False, **policies},
        "group_booking": {"max_seats": 12, "current_seats": 0},
    }
    assert (found["customers"], found["available_actions"], found["customer_action_links"]) == (
        *([], ["cancel", "complete"], {}),
    )
    assert steps(tenant, answer.data) == [("initialized", "create", "tentative")]
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]


@pytest.mark.parametrize(
    ("seats", "text"),
    [
        (None, "This field is required."),
        (0, "Ensure this value is greater than or equal to 1."),
        (-1, "Ensure this value is greater than or equal to 1."),
        (1001, "Ensure this value is less than or equal to 1000."),
        (1.5, "Must be an integer."),
        ("2", "Must be an integer."),
        (True, "Must be an integer."),
    ],
)
def test_group_needs_1_to_1000_seats(tenant: Tenant, ada: Any, seats: Any, text: str) -> None:
    settings = {} if seats is None else {"settings": {"max_seats": seats}}

    answer = tenant.book(graph="group_owner", resource_id=ada["id"], **settings, **NINE)

    assert refused(answer) == invalid(settings__max_seats=text)
    assert Booking.objects.count() == 0


@pytest.mark.parametrize("seats", [1, 1000])
def test_bounds_of_max_seats_are_accepted(tenant: Tenant, ada: Any, seats: int) -> None:
    assert seats_of(tenant, make_group(tenant, ada, max_seats=seats)) == {
        **{"max_seats": seats, "current_seats": 0}
    }


def test_group_settings_are_ignored_for_other_bookings(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(
        resource_id=ada["id"], settings={"max_seats": 3, "min_cancel_time": "1 day"}, **NINE
    )

    attributes = whole(tenant, answer.data)["attributes"]
    assert (attributes["settings"], attributes["group_booking"]) == (
        {"allow_double_bookings": False, "enforce_availability": False},
        None,
    )


def test_a_group_blocks_like_any_booking(tenant: Tenant, ada: Any, group: Any) -> None:
    answer = tenant.book(resource_id=ada["id"], **span("09:30", "10:30"))

    assert refused(answer) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:00", "10:00")],
            "alternatives": [
                shown("10:00", "11:00"),
                shown("11:00", "12:00"),
                shown("12:00", "13:00"),
            ],
        },
    )


# --- Seats ----------------------------------------------------------------------------------------
def test_seat_has_time_and_texts_of_its_group(tenant: Tenant, ada: Any, group: Any) -> None:
    answer = take_seat(
        tenant, group, what="Mine", where="Elsewhere", description="Words", participants=["x@y.zz"]
    )

    found = whole(tenant, answer.data)
    owner = whole(tenant, group)
    assert (answer.status, answer.json) == (
        *(201, {"data": answered(answer.data, "confirmed", "group_customer")}),
    )
    customer = {
        "id": found["customers"][0]["id"],
        **ANN,
        **{"phone": "", "voip": "", "timezone": "", "meta": {}},
    }
    assert found == {
        **entry(answer.data, "confirmed", "group_customer"),
        **{name: owner[name] for name in ("event", "resource", "calendar")},
        "attributes": {
            "event_info": owner["attributes"]["event_info"],
            "customer": customer,
            "settings": {"allow_double_bookings": False, "enforce_availability": False},
            "group_booking": None,
        },
        "customers": [customer],
        "project": None,
        "meta": {},
        "outcome": None,
        "available_actions": ["cancel_by_customer", "cancel_by_owner", "complete"],
        "customer_action_links": links(answer.data),
        "event_notifications": [],
        "logs": [
            {
                "from_state": "initialized",
                "to_state": "confirmed",
                "action": "create",
                "actor": owner["logs"][0]["actor"],
                "source": "api",
                "message": "",
                "created_at": STAMP,
            }
        ],
    }
    assert seats_of(tenant, group) == {"max_seats": 2, "current_seats": 1}
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]


def test_the_owners_booking_can_be_included(tenant: Tenant, ada: Any, group: Any) -> None:
    seat = seat_in(tenant, group)
    other = tenant.book(resource_id=ada["id"], **span("12:00", "13:00")).data

    found = {
        row["id"]: row["owner_booking"]
        for row in tenant.get("/bookings?include=owner_booking").data
    }

    assert found == {
        seat["id"]: entry(group, "tentative", "group_owner"),
        group["id"]: None,
        other["id"]: None,
    }


SAME_TIMES = {
    "flat": {"start": f"{MONDAY}T09:00:00Z", "end": f"{MONDAY}T10:00:00Z"},
    "nested": {"event": {"start": f"{MONDAY}T10:00:00+01:00", "end": f"{MONDAY}T10:00:00Z"}},
    "naive": {"start": f"{MONDAY} 10:00:00", "end": f"{MONDAY} 11:00:00"},  # Berlin's clock
    "only one": {"end": f"{MONDAY}T10:00:00Z"},
    "none": {"start": None, "end": None},
}


@pytest.mark.parametrize("times", SAME_TIMES.values(), ids=SAME_TIMES)
def test_seat_may_repeat_the_time_of_the_group(tenant: Tenant, times: Any) -> None:
    group = make_group(tenant, tenant.make_resource("Ada", BERLIN))

    assert take_seat(tenant, group, **times).status == 201


TEN = {"start": f"{MONDAY}T10:00:00Z", "end": f"{MONDAY}T11:00:00Z"}
DIFFERS = "Must equal the group's value."
NO_TIME = "Must be a date and time such as 2026-11-20T10:30:00+01:00."
OTHER_TIMES = {
    "flat": (TEN, {"start": DIFFERS, "end": DIFFERS}),
    "nested": ({"event": TEN}, {"event__start": DIFFERS, "event__end": DIFFERS}),
    "the end alone": ({"end": TEN["end"]}, {"end": DIFFERS}),
    "naive": ({"event": {"start": f"{MONDAY} 09:00:00"}}, {"event__start": DIFFERS}),
    "mixed": (
        {"start": TEN["start"], "event": {"end": TEN["end"]}},
        {"start": DIFFERS, "event__end": DIFFERS},
    ),
    "no time": ({"start": "soon"}, {"start": NO_TIME}),
}


@pytest.mark.parametrize(("times", "errors"), OTHER_TIMES.values(), ids=OTHER_TIMES)
def test_seat_with_another_time_is_refused(
    tenant: Tenant, times: Any, errors: dict[str, str]
) -> None:
    group = make_group(tenant, tenant.make_resource("Ada", BERLIN))

    assert refused(take_seat(tenant, group, **times)) == invalid(**errors)
    assert Booking.objects.count() == 1


def test_seat_with_another_resource_or_calendar_is_refused(
    tenant: Tenant, ada: Any, group: Any
) -> None:
    bob = tenant.make_resource("Bob")
    given = {
        "resource_id": {"resource_id": bob["id"]},
        "calendar_id": {"calendar_id": bob["calendars"][0]["id"]},
        "event.calendar_id": {"event": {"calendar_id": bob["calendars"][0]["id"]}},
        "reservation_id": {"reservation_id": str(uuid.uuid4())},
        "recurrence": {"recurrence": "FREQ=DAILY;COUNT=2"},
    }

    found = {path: refused(take_seat(tenant, group, **body)) for path, body in given.items()}

    assert found == {
        "resource_id": invalid(resource_id=DIFFERS),
        "calendar_id": invalid(calendar_id=DIFFERS),
        "event.calendar_id": invalid(event__calendar_id=DIFFERS),
        "reservation_id": invalid(reservation_id="A seat can't use a hold."),
        "recurrence": invalid(recurrence="A seat can't have a recurrence."),
    }
    same = {"resource_id": ada["id"], "calendar_id": ada["calendars"][0]["id"]}
    assert take_seat(tenant, group, **same).status == 201


def test_seat_needs_a_visible_group(
    tenant: Tenant, make_tenant: MakeTenant, ada: Any, group: Any
) -> None:
    other = make_tenant()
    foreign = make_group(other, other.make_resource())
    bob = tenant.make_resource("Bob", email="bob@example.com")
    bobs = Caller(bob["api_token"], user="bob@example.com")
    own = Caller(ada["api_token"], user="ada@example.com")
    plain = tenant.book(resource_id=ada["id"], **span("12:00", "13:00")).data
    seat = seat_in(tenant, group)
    unknown = {"id": str(uuid.uuid4())}
    needed = invalid(related__owner_booking_id="This field is required.")

    assert refused(tenant.book(graph="group_customer", **NINE)) == needed
    assert refused(tenant.book(graph="group_customer", related={})) == needed
    found = [refused(take_seat(tenant, one)) for one in (foreign, plain, seat, unknown)]
    assert [*found, refused(take_seat(bobs, group))] == [NO_GROUP] * 5
    assert refused(take_seat(tenant, {"id": "x"})) == invalid(
        related__owner_booking_id="Must be a UUID."
    )
    assert take_seat(own, group, BOB).status == 201


def test_a_seat_needs_a_customer(tenant: Tenant, group: Any) -> None:
    answer = tenant.post(
        "/bookings", {"graph": "group_customer", "related": {"owner_booking_id": group["id"]}}
    )

    assert refused(answer) == invalid(customer="This field is required.")


# --- How many -------------------------------------------------------------------------------------
def test_full_group_refuses_seats(tenant: Tenant, group: Any) -> None:
    seat_in(tenant, group)
    seat_in(tenant, group, BOB)

    answer = take_seat(tenant, group, CYD)

    assert refused(answer) == (409, FULL)
    assert seats_of(tenant, group) == {"max_seats": 2, "current_seats": 2}
    assert Booking.objects.count() == 3


def test_a_cancelled_seat_is_free_again(tenant: Tenant, group: Any) -> None:
    seats = [seat_in(tenant, group), seat_in(tenant, group, BOB)]
    for seat, action in zip(seats, ["cancel_by_customer", "cancel_by_owner"], strict=True):
        assert act(tenant, seat, action).status == 200

    counts = [seats_of(tenant, group)["current_seats"]]
    counts += [
        seats_of(tenant, group)["current_seats"]
        for customer in (CYD, ANN)
        if seat_in(tenant, group, customer)
    ]

    assert states(tenant, group, *seats) == [
        *("tentative", "cancelled_by_customer", "cancelled_by_owner")
    ]
    assert counts == [0, 1, 2]
    assert refused(take_seat(tenant, group)) == (409, FULL)


def test_cancelled_seat_keeps_the_time_of_the_group(tenant: Tenant, ada: Any, group: Any) -> None:
    seat = seat_in(tenant, group)

    act(tenant, seat, "cancel_by_customer")

    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]


@pytest.mark.parametrize(("action", "state"), [("cancel", "cancelled"), ("complete", "completed")])
def test_ended_group_refuses_seats(tenant: Tenant, group: Any, action: str, state: str) -> None:
    act(tenant, group, action)

    assert refused(take_seat(tenant, group)) == (
        409,
        {
            "error": f"Cannot apply action 'create' to current state '{state}'",
            "code": "action_not_allowed",
            "state": state,
            "available_actions": [],
        },
    )


def policy(name: str, limit: str) -> dict[str, Any]:
    return {
        "error": f"The policy {name} does not allow this.",
        "code": "policy",
        "policy": name,
        "limit": limit,
    }


def test_seats_are_taken_inside_the_booking_window(tenant: Tenant, ada: Any, clock: Any) -> None:
    """No earlier than two days, no later than three hours before nine on Monday."""
    window = {"max_booking_time": "2 days", "min_booking_time": "3 hours"}
    group = make_group(tenant, ada, max_seats=10, settings=window)
    start, second = at(f"{MONDAY} 09:00"), timedelta(seconds=1)
    opens, closes = start - timedelta(days=2), start - timedelta(hours=3)
    found = []

    for moment in (opens - second, opens, closes, closes + second):
        clock.move_to(moment)
        answer = take_seat(tenant, group)
        found.append(answer.error if answer.status == 409 else answer.status)

    assert found == [
        policy("max_booking_time", "2 days"),
        *(201, 201),
        policy("min_booking_time", "3 hours"),
    ]


@pytest.mark.parametrize(
    ("opens", "closes", "is_taken"),
    [
        ("1 hour", "2 hours", False),
        ("0", "1 second", False),
        ("1 day", "24 hours", True),
        ("1 hour", "0", True),
    ],
)
def test_empty_booking_window_is_refused(
    tenant: Tenant, ada: Any, opens: str, closes: str, is_taken: bool
) -> None:
    settings = {"max_seats": 2, "max_booking_time": opens, "min_booking_time": closes}

    answer = tenant.book(graph="group_owner", resource_id=ada["id"], settings=settings, **NINE)

    if is_taken:
        assert answer.status == 201
    else:
        text = "Must not be shorter than `min_booking_time`."
        assert refused(answer) == invalid(settings__max_booking_time=text)
    assert Booking.objects.count() == is_taken


def test_server_key_adds_seats_after_the_start(tenant: Tenant, group: Any, clock: Any) -> None:
    clock.move_to(at(f"{MONDAY} 09:30"))

    assert take_seat(tenant, group).status == 201


# --- Widget keys ----------------------------------------------------------------------------------
@pytest.fixture
def classes(tenant: Tenant, ada: Any) -> str:
    """A project whose page sells seats."""
    return tenant.make_project(ada["id"], booking={"graph": "group_customer", "what": "Yoga"})["id"]


def test_group_ignores_length_notice_and_window_of_the_project(tenant: Tenant, ada: Any) -> None:
    terms = {"length": "1 hour", "from": "2 days", "to": "10 days"}
    rules = [{"allow_hours": {"start": 8, "end": 18}}]
    project = tenant.make_project(
        ada["id"], availability=terms, availability_constraints=rules, booking={"what": "Yoga"}
    )["id"]
    given = {"graph": "group_owner", "project_id": project, "settings": {"max_seats": 2}}

    soon = tenant.post("/bookings", {**given, **span("10:00", "13:00", "2026-11-20")})
    weekly = tenant.post(
        "/bookings", {**given, **span("09:00", "12:00"), "recurrence": "FREQ=WEEKLY;COUNT=12"}
    )
    moved = tenant.post(f"/bookings/{soon.data['id']}/reschedule", span("12:00", "17:00"))
    closed = tenant.post("/bookings", {**given, **span("17:00", "20:00", "2026-11-24")})
    taken_time = tenant.post("/bookings", {**given, **span("16:00", "17:30")})
    customer = tenant.book(project_id=project, **span("10:00", "13:00", "2026-11-24"))

    assert [answer.status for answer in (soon, weekly, moved)] == [201, 201, 200]
    assert [refused(answer)[0] for answer in (closed, taken_time)] == [409, 409]
    assert [answer.json["code"] for answer in (closed, taken_time, customer)] == [
        *("not_available", "slot_taken", "not_available")
    ]


def test_max_seats_cannot_be_below_taken_seats(tenant: Tenant, ada: Any, group: Any) -> None:
    seat_in(tenant, group)
    seat_in(tenant, group, BOB)
    path = f"/bookings/{group['id']}"

    too_few = tenant.put(path, {"settings": {"max_seats": 1}})
    more = tenant.put(path, {"settings": {"max_seats": 3}})
    seats = seats_of(tenant, group)
    third = take_seat(tenant, group, CYD)

    assert (too_few.status, too_few.error) == (
        409,
        {"error": "2 seats are taken.", "code": "in_use"},
    )
    assert (more.status, seats) == (200, {"max_seats": 3, "current_seats": 2})
    assert third.status == 201
    logs = whole(tenant, group)["logs"]
    assert [(log["action"], log["message"]) for log in logs] == [
        ("create", ""),
        ("update", "Changed: max_seats."),
    ]


def test_wrong_updates_of_settings_are_refused(tenant: Tenant, ada: Any, group: Any) -> None:
    other = tenant.book(resource_id=ada["id"], **span("11:00", "12:00")).data

    answers = [
        tenant.put(f"/bookings/{other['id']}", {"settings": {"max_seats": 3}}),
        tenant.put(f"/bookings/{group['id']}", {"settings": {"max_seats": 0}}),
        tenant.put(f"/bookings/{group['id']}", {"settings": {"min_cancel_time": "1 day"}}),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"settings.max_seats": ["Only a group has seats."]}),
        (422, {"settings.max_seats": ["Ensure this value is greater than or equal to 1."]}),
        (422, {"settings.min_cancel_time": ["Can't be changed here."]}),
    ]
    assert seats_of(tenant, group) == {"max_seats": 2, "current_seats": 0}


def test_staff_cancel_a_seat(tenant: Tenant, group: Any) -> None:
    seat = seat_in(tenant, group)

    answer = act(tenant, seat, "cancel")

    assert (answer.status, answer.data["state"]) == (200, "cancelled_by_owner")
    assert steps(tenant, seat)[1:] == [("confirmed", "cancel_by_owner", "cancelled_by_owner")]
    assert act(tenant, seat, "cancel").status == 409


def test_full_groups_are_listed_on_request(tenant: Tenant, ada: Any, classes: str) -> None:
    free = make_group(tenant, ada, project_id=classes, **span("11:00", "12:00"))
    full = make_group(tenant, ada, project_id=classes, max_seats=1)
    seat_in(tenant, full)
    path = "/bookings/groups?full=true&orderBy=event.start&sortedBy=asc"

    found = [caller.get(path).data for caller in (tenant, tenant.widget())]

    assert [[(row["id"], row.get("full")) for row in rows] for rows in found] == [
        [(full["id"], True), (free["id"], None)]
    ] * 2
    assert [row["id"] for row in tenant.get("/bookings/groups").data] == [free["id"]]


def test_a_widget_key_takes_a_seat(tenant: Tenant, ada: Any, classes: str) -> None:
    group = make_group(tenant, ada, project_id=classes)
    widget = tenant.widget()

    answer = take_seat(widget, group, project_id=classes, graph="instant")
    unnamed = take_seat(widget, group, BOB)
    named = take_seat(widget, group, BOB, project_id=classes)

    assert (answer.status, answer.json) == (
        *(201, {"data": answered(answer.data, "confirmed", "group_customer")}),
    )
    assert (unnamed.status, unnamed.json["code"], named.status) == (403, "forbidden", 201)
    assert refused(take_seat(widget, group, CYD, project_id=classes)) == (409, FULL)


def test_widget_key_cannot_create_groups(tenant: Tenant, ada: Any) -> None:
    owners = tenant.make_project(ada["id"], booking={"graph": "group_owner", "what": "Yoga"})["id"]
    bob = tenant.make_resource("Bob")["id"]
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})
    widget = tenant.widget()
    body = {"customer": MARTY, "what": "Yoga", "settings": {"max_seats": 5}, **NINE}

    answers = [
        widget.post("/bookings", {"graph": "group_owner", "resource_id": bob, **body}),
        widget.post("/bookings", {"project_id": owners, **body}),
    ]

    assert [refused(answer) for answer in answers] == [
        invalid(graph="A widget key can book seats but not create groups.")
    ] * 2


def test_widget_key_takes_no_seat_after_the_start(
    tenant: Tenant, ada: Any, classes: str, clock: Any
) -> None:
    group = make_group(tenant, ada, project_id=classes)
    clock.move_to(at(f"{MONDAY} 09:00") + timedelta(seconds=1))

    answer = take_seat(tenant.widget(), group, project_id=classes)

    assert refused(answer) == (409, policy("min_booking_time", "0 minutes"))


def test_widget_key_sees_groups_of_its_project(tenant: Tenant, ada: Any, classes: str) -> None:
    bob = tenant.make_resource("Bob")
    others = tenant.make_project(bob["id"], name="Others")["id"]
    of_others = make_group(tenant, bob, project_id=others)
    of_nobody = make_group(tenant, bob, **span("12:00", "13:00"))
    of_ada = make_group(tenant, ada, **span("12:00", "13:00"))
    widget = tenant.widget()

    assert refused(take_seat(widget, of_others, project_id=classes)) == invalid(project_id=DIFFERS)
    assert refused(take_seat(widget, of_nobody, project_id=classes)) == invalid(
        resource_id="There is no such resource."
    )
    assert take_seat(widget, of_ada, project_id=classes).status == 201


# --- The customer cancels -------------------------------------------------------------------------
def test_min_cancel_time_of_a_group(tenant: Tenant, ada: Any, clock: Any) -> None:
    """It goes before the project's."""
    project = tenant.make_project(ada["id"], settings={"min_cancel_time": "1 hour"})["id"]
    group = make_group(
        tenant,
        ada,
        project_id=project,
        settings={"min_cancel_time": "1 day"},
        **span("09:00", "10:00"),
    )
    seats = [seat_in(tenant, group), seat_in(tenant, group, BOB)]
    last = at(f"{MONDAY} 09:00") - timedelta(days=1)

    clock.move_to(last)
    in_time = act(tenant, seats[0], "cancel_by_customer")
    clock.move_to(last + timedelta(seconds=1))
    late = act(tenant, seats[1], "cancel_by_customer")

    assert in_time.status == 200
    assert refused(late) == (409, policy("min_cancel_time", "1 day"))
    assert act(tenant, seats[1], "cancel_by_owner").status == 200


# --- What the owner does, all do ------------------------------------------------------------------
def test_a_cancelled_group_cancels_its_seats(tenant: Tenant, ada: Any, group: Any) -> None:
    gone, kept = seat_in(tenant, group), seat_in(tenant, group, BOB)
    act(tenant, gone, "cancel_by_customer")

    answer = act(tenant, group, "cancel", {"cancel": {"message": "We are ill."}})

    assert (answer.status, answer.json) == (
        *(200, {"data": answered(group, "cancelled", "group_owner")}),
    )
    assert states(tenant, gone, kept) == ["cancelled_by_customer", "cancelled_by_owner"]
    assert [
        (log["action"], log["to_state"], log["message"]) for log in whole(tenant, kept)["logs"]
    ] == [
        ("create", "confirmed", ""),
        ("cancel_by_owner", "cancelled_by_owner", "We are ill."),
    ]
    assert busy_times(tenant, ada["id"]) == []
    assert tenant.book(resource_id=ada["id"], **NINE).status == 201


def test_a_completed_group_completes_its_seats(tenant: Tenant, group: Any) -> None:
    seats = [seat_in(tenant, group), seat_in(tenant, group, BOB)]

    act(tenant, group, "complete")

    assert states(tenant, group, *seats) == ["completed"] * 3
    assert [steps(tenant, seat)[1:] for seat in seats] == [
        [("confirmed", "complete", "completed")]
    ] * 2


@pytest.mark.parametrize("first", ["owner", "seat"])
def test_the_timer_completes_a_group_once_in_either_order(
    tenant: Tenant, group: Any, clock: Any, first: str
) -> None:
    seat = seat_in(tenant, group)
    early = Booking.objects.filter(id=(group if first == "owner" else seat)["id"])
    early.update(completes_at=DUE - timedelta(seconds=5))
    clock.move_to(DUE)

    done = [complete_ended(now=DUE) for _ in range(2)]

    assert done == ([1, 0] if first == "owner" else [2, 0])
    assert states(tenant, group, seat) == ["completed", "completed"]
    assert steps(tenant, seat)[1:] == [("confirmed", "complete", "completed")]
    assert steps(tenant, group)[1:] == [("tentative", "complete", "completed")]


# --- Moves ----------------------------------------------------------------------------------------
def test_seat_cannot_be_moved_by_itself(tenant: Tenant, group: Any) -> None:
    seat = seat_in(tenant, group)

    answer = tenant.post(f"/bookings/{seat['id']}/reschedule", span("12:00", "13:00"))

    assert refused(answer) == (
        409,
        {
            "error": "The policy seat_moves_with_its_group does not allow this.",
            "code": "policy",
            "policy": "seat_moves_with_its_group",
            "limit": None,
        },
    )


def test_a_group_moves_with_all_its_seats(tenant: Tenant, ada: Any, group: Any) -> None:
    bob = tenant.make_resource("Bob")
    gone, seat = seat_in(tenant, group), seat_in(tenant, group, BOB)
    act(tenant, gone, "cancel_by_customer")

    answer = tenant.post(
        f"/bookings/{group['id']}/reschedule",
        {**span("12:00", "14:00"), "resource_id": bob["id"], "message": "Bigger room."},
    )

    assert (answer.status, answer.json) == (
        *(200, {"data": answered(group, "tentative", "group_owner")}),
    )
    found = whole(tenant, seat)
    assert (found["event"], found["resource"]["id"]) == (whole(tenant, group)["event"], bob["id"])
    assert {key: found["event"][key] for key in ("start", "end")} == shown("12:00", "14:00")
    assert [
        (log["from_state"], log["action"], log["to_state"], log["message"])
        for log in found["logs"][1:]
    ] == [("confirmed", "reschedule", "confirmed", "Bigger room.")]
    rows = Booking.objects.in_bulk([group["id"], seat["id"], gone["id"]], field_name="id")
    assert {
        str(row.id): (row.reschedules, row.completes_at, str(row.resource_id))
        for row in rows.values()
    } == {
        group["id"]: (1, at(f"{MONDAY} 15:00"), bob["id"]),
        seat["id"]: (1, at(f"{MONDAY} 15:00"), bob["id"]),
        gone["id"]: (0, None, ada["id"]),
    }
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [[], ["12:00-14:00"]]
    assert take_seat(tenant, group, CYD, **span("12:00", "14:00")).status == 201


@pytest.mark.parametrize("action", ["cancel_by_customer", "complete"])
def test_ended_seats_keep_time_and_texts_of_their_group(
    tenant: Tenant, ada: Any, group: Any, clock: Any, action: str
) -> None:
    ended, seat = seat_in(tenant, group), seat_in(tenant, group, BOB)
    act(tenant, ended, action)
    kept = ("start", "end", "what", "where", "description", "calendar_id")
    before = {key: whole(tenant, ended)["event"][key] for key in kept}
    clock.shift(60)
    since = timezone.now().isoformat().replace("+00:00", "Z")

    moved = tenant.post(f"/bookings/{group['id']}/reschedule", span("12:00", "13:00"))
    tenant.put(f"/bookings/{group['id']}", {"what": "Pilates", "where": "Hall 2"})

    found = whole(tenant, ended)
    assert moved.status == 200
    assert {key: found["event"][key] for key in kept} == before
    assert found["resource"]["id"] == ada["id"]
    # The event of the answer is another one, so the seat has changed.
    changed = tenant.get(f"/bookings?updated_since={since}&sortedBy=asc").data
    assert {row["id"] for row in changed} == {group["id"], seat["id"], ended["id"]}
    events = tenant.get(f"/events?start={MONDAY}T00:00:00Z&end={MONDAY}T23:59:59Z").data
    assert [(event["what"], event["start"][11:16]) for event in events] == [("Pilates", "12:00")]
    copy = found["event"]["id"]
    answers = [tenant.delete(f"/events/{copy}"), tenant.put(f"/events/{copy}", {"what": "X"})]
    assert [answer.status for answer in answers] == [404, 404]


def test_refused_group_move_changes_nothing(tenant: Tenant, ada: Any, group: Any) -> None:
    seat = seat_in(tenant, group)
    tenant.book(resource_id=ada["id"], **span("12:00", "13:00"))

    answer = tenant.post(f"/bookings/{group['id']}/reschedule", span("12:30", "13:30"))

    assert refused(answer) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("12:00", "13:00")],
            "alternatives": [
                shown("13:00", "14:00"),
                shown("14:00", "15:00"),
                shown("15:00", "16:00"),
            ],
        },
    )
    assert [len(steps(tenant, one)) for one in (group, seat)] == [1, 1]
    assert whole(tenant, seat)["event"]["start"] == shown("09:00", "10:00")["start"]


# --- Deleting -------------------------------------------------------------------------------------
def events(tenant: Tenant) -> list[str]:
    range_ = f"start={MONDAY}T00:00:00Z&end={MONDAY}T23:00:00Z"
    return [event["what"] for event in tenant.get(f"/events?{range_}").data]


def test_deleted_seat_keeps_group_and_seats(tenant: Tenant, ada: Any, group: Any) -> None:
    seats = [seat_in(tenant, group), seat_in(tenant, group, BOB)]
    act(tenant, seats[0], "cancel_by_customer")

    deleted = tenant.delete(f"/bookings/{seats[0]['id']}")

    assert deleted.status == 204
    assert events(tenant) == ["Yoga"]
    assert states(tenant, group, seats[1]) == ["tentative", "confirmed"]
    assert seats_of(tenant, group) == {"max_seats": 2, "current_seats": 1}
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]


def test_a_deleted_group_leaves_its_seats(tenant: Tenant, group: Any) -> None:
    seat = seat_in(tenant, group)
    kept = tenant.delete(f"/bookings/{group['id']}")
    act(tenant, group, "cancel")

    deleted = tenant.delete(f"/bookings/{group['id']}")

    found = tenant.get(f"/bookings/{seat['id']}?include=owner_booking").data
    assert refused(kept) == (
        409,
        {
            "error": "Cannot apply action 'delete' to current state 'tentative'",
            "code": "action_not_allowed",
            "state": "tentative",
            "available_actions": ["cancel", "complete"],
        },
    )
    assert deleted.status == 204
    assert (found["state"], found["owner_booking"]) == ("cancelled_by_owner", None)
    assert tenant.get(f"/bookings/groups/{group['id']}").status == 404
    assert refused(take_seat(tenant, group)) == NO_GROUP
    assert [row["id"] for row in tenant.get("/bookings").data] == [seat["id"]]


def test_event_of_a_group_cannot_be_changed_directly(tenant: Tenant, group: Any) -> None:
    seat_in(tenant, group)
    seat_in(tenant, group, BOB)
    event = whole(tenant, group)["event"]["id"]

    answers = [tenant.delete(f"/events/{event}"), tenant.put(f"/events/{event}", {"what": "X"})]

    assert [(answer.status, answer.error) for answer in answers] == [
        (
            409,
            {
                "error": f"The event belongs to booking {group['id']}.",
                "code": "in_use",
                "booking_id": group["id"],
            },
        )
    ] * 2


# --- GET /bookings/groups -------------------------------------------------------------------------
def test_groups_are_listed_with_default_includes(tenant: Tenant, ada: Any, group: Any) -> None:
    seat_in(tenant, group)
    tenant.book(resource_id=ada["id"], **span("12:00", "13:00"))

    answer = tenant.get("/bookings/groups")

    record = {
        **entry(group, "tentative", "group_owner"),
        "attributes": whole(tenant, group)["attributes"],
        "available_actions": ["cancel", "complete"],
        "resource": whole(tenant, group)["resource"],
    }
    assert record["attributes"]["group_booking"] == {"max_seats": 2, "current_seats": 1}
    url = "http://127.0.0.1:8000/v2/bookings/groups?limit=50&page=1"
    assert (answer.status, answer.json) == (
        200,
        {
            "total": 1,
            "per_page": 50,
            "current_page": 1,
            "last_page": 1,
            "first_page_url": url,
            "last_page_url": url,
            "next_page_url": None,
            "prev_page_url": None,
            "from": 1,
            "to": 1,
            "data": [record],
        },
    )
    assert tenant.get(f"/bookings/groups/{group['id']}").json == {"data": record}


def test_full_and_finished_groups_are_left_out(tenant: Tenant, ada: Any) -> None:
    groups = [
        make_group(tenant, ada, max_seats=1, what=str(hour), **span(f"{hour}:00", f"{hour}:30"))
        for hour in (10, 11, 12, 13)
    ]
    full, cancelled, completed, free = groups
    seat_in(tenant, full)
    act(tenant, cancelled, "cancel")
    act(tenant, completed, "complete")

    listed = tenant.get("/bookings/groups")

    assert (listed.json["total"], [record["id"] for record in listed.data]) == (1, [free["id"]])
    assert [
        tenant.get(f"/bookings/groups/{each_group['id']}").data["state"] for each_group in groups
    ] == [*("tentative", "cancelled", "completed", "tentative")]


def test_groups_are_searched_and_paged(
    tenant: Tenant, make_tenant: MakeTenant, ada: Any, classes: str
) -> None:
    bob = tenant.make_resource("Bob")
    of_ada = make_group(tenant, ada, project_id=classes)
    of_bob = make_group(tenant, bob)
    other = make_tenant()
    make_group(other, other.make_resource())

    def found(query: str) -> list[str]:
        return [one["id"] for one in tenant.get(f"/bookings/groups{query}").data]

    assert found("") == [of_bob["id"], of_ada["id"]]
    assert found("?limit=1&page=2") == [of_ada["id"]]
    assert found(f"?search=resource.id:{bob['id']}") == [of_bob["id"]]
    assert found(f"?search=project.id:{classes}") == [of_ada["id"]]
    assert found(f"?search=project.id:{classes};resource.id:{bob['id']}") == []
    refusals = ["?search=graph:instant", "?search=resource.id:x", "?state=tentative", "?include=x"]
    assert [tenant.get(f"/bookings/groups{query}").status for query in refusals] == [422] * 4


def test_other_bookings_are_not_found_as_groups(
    tenant: Tenant, make_tenant: MakeTenant, ada: Any, group: Any
) -> None:
    other = make_tenant()
    foreign = make_group(other, other.make_resource())
    seat = seat_in(tenant, group)
    bob = tenant.make_resource("Bob", email="bob@example.com")
    bobs = Caller(bob["api_token"], user="bob@example.com")

    answers = [
        *(
            tenant.get(f"/bookings/groups/{one}")
            for one in (foreign["id"], seat["id"], uuid.uuid4())
        ),
        bobs.get(f"/bookings/groups/{group['id']}"),
    ]

    gone = {"error": "Booking not found.", "code": "not_found", "model": "Booking"}
    assert [refused(answer) for answer in answers] == [(404, gone)] * 4
    assert bobs.get("/bookings/groups").data == []


def test_widget_key_sees_limited_fields_of_a_group(tenant: Tenant, ada: Any, classes: str) -> None:
    group = make_group(tenant, ada, project_id=classes)
    seat_in(tenant, group)
    widget = tenant.widget()

    answer = widget.get("/bookings/groups")

    record = {
        **entry(group, "tentative", "group_owner"),
        "attributes": {
            "event_info": {**shown("09:00", "10:00"), "what": "Yoga", "where": "Hall 1"},
            "group_booking": {"max_seats": 2, "current_seats": 1},
        },
        "available_actions": ["cancel", "complete"],
        "resource": {key: ada[key] for key in ("id", "name", "image", "timezone")},
    }
    assert answer.data == [record]
    assert widget.get(f"/bookings/groups/{group['id']}").data == record
    assert widget.get("/bookings/groups?include=customers").status == 422


# --- Paid seats -----------------------------------------------------------------------------------
def paid_seat(tenant: Tenant, group: Any, customer: Any = ANN) -> Any:
    return seat_in(tenant, group, customer, graph="group_customer_payment")


def test_unpaid_seat_counts_as_taken(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada, max_seats=1)
    seat = paid_seat(tenant, group)

    full = take_seat(tenant, group, BOB)
    paid = act(tenant, seat, "pay")

    assert refused(full) == (409, FULL)
    assert (paid.status, paid.json) == (
        *(200, {"data": answered(seat, "paid", "group_customer_payment")}),
    )
    assert expire_bookings(now=NOW + timedelta(days=1)) == 0
    assert refused(take_seat(tenant, group, BOB)) == (409, FULL)


def test_unpaid_seat_times_out(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada, max_seats=1)
    seat = paid_seat(tenant, group)

    done = [expire_bookings(now=NOW + timedelta(minutes=5, seconds=late)) for late in (-1, 0, 1)]

    assert (done, states(tenant, seat)) == ([0, 1, 0], ["unpaid"])
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]
    assert take_seat(tenant, group, BOB).status == 201


@pytest.mark.parametrize("actions", [[], ["pay"]], ids=["tentative", "paid"])
def test_a_cancelled_group_cancels_seats_paid_or_not(
    tenant: Tenant, group: Any, actions: list[str]
) -> None:
    seat = paid_seat(tenant, group)
    for action in actions:
        act(tenant, seat, action)

    act(tenant, group, "cancel")

    assert states(tenant, seat) == ["cancelled_by_owner"]
    assert expire_bookings(now=NOW + timedelta(days=1)) == 0


def test_unpaid_seat_of_a_completed_group_times_out(tenant: Tenant, group: Any) -> None:
    """What was never paid has not taken place for anyone."""
    seat = paid_seat(tenant, group)

    act(tenant, group, "complete")

    assert states(tenant, group, seat) == ["completed", "tentative"]
    assert expire_bookings(now=NOW + timedelta(minutes=5)) == 1
    assert states(tenant, seat) == ["unpaid"]


# --- include=seats, search, range and order -------------------------------------------------------
def test_the_seats_of_a_group_can_be_included(tenant: Tenant, ada: Any, group: Any) -> None:
    ann, bob = seat_in(tenant, group, ANN), seat_in(tenant, group, BOB)
    act(tenant, ann, "cancel_by_customer")
    cyd = seat_in(tenant, group, CYD)
    deleted = seat_in(tenant, make_group(tenant, ada, **span("11:00", "12:00")), ANN)
    act(tenant, deleted, "complete")
    tenant.delete(f"/bookings/{deleted['id']}")

    rows = {row["id"]: row for row in tenant.get("/bookings?include=seats").data}

    expected = [
        entry(seat, state, "group_customer") | {"customers": whole(tenant, seat)["customers"]}
        for seat, state in ((ann, "cancelled_by_customer"), (bob, "confirmed"), (cyd, "confirmed"))
    ]
    assert rows[group["id"]] == {**entry(group, "tentative", "group_owner"), "seats": expected}
    assert [rows[one["id"]]["seats"] for one in (ann, bob, cyd)] == [None] * 3
    assert sorted(str(row["seats"]) for row in rows.values()).count("[]") == 1
    single = tenant.get(f"/bookings/groups/{group['id']}?include=seats").data
    assert single["seats"] == expected


def test_widget_key_cannot_include_seats(tenant: Tenant, group: Any) -> None:
    seat_in(tenant, group)

    answer = tenant.widget().get("/bookings/groups?include=seats")

    assert refused(answer) == invalid(include="seats can't be included.")


def test_bookings_are_searched_by_group_series_and_bulk(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada)
    seat = seat_in(tenant, group)
    weekly = tenant.book(
        resource_id=ada["id"], recurrence="FREQ=DAILY;COUNT=2", **span("12:00", "13:00")
    ).data
    body = {"resource_id": ada["id"], "what": "A", "customer": MARTY, **span("14:00", "15:00")}
    bulk = tenant.post("/bookings/bulk", {"bookings": [body], "relate_bookings": True}).data
    bulk_id = Booking.objects.get(id=bulk[0]["booking"]["id"]).bulk_id
    occurrences = [one["booking_id"] for one in weekly["series"]["occurrences"]]

    def found(search: str) -> list[str]:
        answer = tenant.get(f"/bookings?search={search}")
        assert answer.json["total"] == len(answer.data)
        return sorted(row["id"] for row in answer.data)

    assert found(f"owner_booking.id:{group['id']}") == [seat["id"]]
    assert found(f"series.id:{weekly['series']['id']}") == sorted(occurrences)
    assert found(f"bulk.id:{bulk_id}") == [bulk[0]["booking"]["id"]]
    assert found(f"owner_booking.id:{uuid.uuid4()}") == []
    assert refused(tenant.get("/bookings?search=series.id:x")) == invalid(
        search="series.id must be a UUID."
    )


def test_groups_filter_by_range_and_order(tenant: Tenant, ada: Any) -> None:
    at_ten, at_nine, at_noon = (
        make_group(tenant, ada, **span(start, end))["id"]
        for start, end in (("10:00", "11:00"), ("09:00", "10:00"), ("12:00", "13:00"))
    )

    def found(query: str) -> list[str]:
        return [one["id"] for one in tenant.get(f"/bookings/groups?{query}").data]

    assert found("") == [at_noon, at_nine, at_ten]
    assert found("orderBy=event.start&sortedBy=asc") == [at_nine, at_ten, at_noon]
    assert found(f"start={MONDAY}T10:00:00Z&end={MONDAY}T12:00:00Z") == [at_ten]
    assert found(f"start={MONDAY}T10:30:00Z&orderBy=event.end") == [at_noon, at_ten]
    refusals = [
        refused(tenant.get(f"/bookings/groups?{query}")) for query in ("orderBy=what", "start=x")
    ]
    assert [(status, list(error["errors"])) for status, error in refusals] == [
        (422, ["orderBy"]),
        (422, ["start"]),
    ]


def test_a_widget_key_sees_no_group_that_has_begun(
    tenant: Tenant, ada: Any, classes: str, clock: Any
) -> None:
    group = make_group(tenant, ada, project_id=classes)
    widget = tenant.widget()

    def found(caller: Caller) -> list[str]:
        answer = caller.get("/bookings/groups")
        assert answer.json["total"] == len(answer.data)
        return [record["id"] for record in answer.data]

    clock.move_to(at(f"{MONDAY} 08:59:59"))
    before = found(widget), found(tenant)
    clock.move_to(at(f"{MONDAY} 09:00"))

    assert before == ([group["id"]], [group["id"]])
    assert (found(widget), found(tenant)) == ([], [group["id"]])
    assert widget.get(f"/bookings/groups/{group['id']}").status == 200
