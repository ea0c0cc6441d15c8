"""Seats of groups: their number, widget keys, payment (section 5, graphs group_customer*)."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bookings.models import Booking
from bookings.services import expire_bookings
from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    entry,
    links,
    refused,
    span,
    steps,
    whole,
)
from tests.bookings.group_world import (
    ANN,
    BOB,
    CYD,
    NO_GROUP,
    invalid,
    make_group,
    seat_in,
    seats_of,
    states,
    take_seat,
)
from tests.world import BERLIN, NOW, STAMP, Caller, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

FULL = {"error": "Every seat of the group is taken.", "code": "group_full"}


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
        "external_id": None,
        **ANN,
        **{"phone": "", "voip": "", "timezone": "", "meta": {}},
        **{"response": "needs_action", "responded_at": None, "source": None},
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
        "conference": None,
        "meta": {},
        "outcome": None,
        "quantity": 1,
        "party_size": None,
        "place": None,
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
        "reservation_id": invalid(reservation_id="There is no such hold."),
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
