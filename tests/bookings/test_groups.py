"""Groups: an owner's booking with seats, what it does to them, and lists of groups (section 5)."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from bookings.models import Booking
from bookings.services import complete_ended
from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    entry,
    refused,
    shown,
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
from tests.world import Caller, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DUE = at(f"{MONDAY} 11:00")  # an hour after the end


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.post_resource("Ada", email="ada@example.com")


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
