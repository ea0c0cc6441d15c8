"""Several units of a resource, or several seats of a group, in one booking: `quantity`."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from availability.models import Event, Hold
from bookings.models import Booking, SeatHold
from tests.bookings.group_world import ANN, BOB, make_group, seat_in, take_seat
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DAY = "2026-11-23"
NINE_TO_TEN = {"start": f"{DAY}T09:00:00+00:00", "end": f"{DAY}T10:00:00+00:00"}
CUSTOMER = {"name": "Marty", "email": "marty@example.com"}


@pytest.fixture
def bikes(tenant: Tenant) -> Any:
    return tenant.make_resource("Bikes", capacity=3)


def hour(first: int, last: int) -> dict[str, str]:
    return {"start": f"{DAY}T{first:02}:00:00+00:00", "end": f"{DAY}T{last:02}:00:00+00:00"}


def rent(tenant: Any, bikes: Any, quantity: int | None = None, **given: Any) -> Answer:
    number = {} if quantity is None else {"quantity": quantity}
    body = {"what": "Ride", "customer": CUSTOMER, "resource_id": bikes["id"], **NINE_TO_TEN}
    return tenant.post("/bookings", {**body, **number, **given})


def units_of(bikes: Any) -> list[tuple[int, int, bool | None]]:
    """(hour, unit, whether a further one) of the busy events."""
    rows = Event.objects.filter(resource=bikes["id"], busy=True)
    return sorted((row.start.hour, row.unit, bool(row.is_further_unit)) for row in rows)


def free_hours(caller: Any, quantity: int, **given: Any) -> list[str]:
    day = {"from": f"{DAY}T08:00:00+00:00", "to": f"{DAY}T12:00:00+00:00", "length": "1 hour"}
    slots = caller.post("/availability", {**day, "quantity": quantity, **given}).data
    return [slot["start"][11:13] for slot in slots]


def test_booking_takes_so_many_units_and_leaves_the_rest(tenant: Tenant, bikes: Any) -> None:
    booking = rent(tenant, bikes, 2).data

    whole = tenant.get(f"/bookings/{booking['id']}").data
    assert (whole["quantity"], whole["place"]) == (2, None)
    assert units_of(bikes) == [(9, 0, False), (9, 1, True)]
    assert [free_hours(tenant, n, resources=[bikes["id"]]) for n in (1, 2, 3)] == [
        ["08", "09", "10", "11"],
        ["08", "10", "11"],
        ["08", "10", "11"],
    ]
    refused = rent(tenant, bikes, 2)
    assert (refused.status, refused.error["code"]) == (409, "slot_taken")
    assert refused.error["conflicts"] == [NINE_TO_TEN]
    assert rent(tenant, bikes, 1).status == 201


def test_more_than_the_resource_has_is_never_offered_or_booked(tenant: Tenant, bikes: Any) -> None:
    assert free_hours(tenant, 4, resources=[bikes["id"]]) == []
    refused = rent(tenant, bikes, 4)
    assert (refused.status, refused.error["code"]) == (409, "not_available")
    assert [reason["text"] for reason in refused.error["reasons"]] == ["Has only 3 places."]
    single = tenant.make_resource("Ada")
    assert free_hours(tenant, 2, resources=[single["id"]]) == []
    assert rent(tenant, single, 2).status == 409
    assert not Event.objects.filter(busy=True).exists()


@pytest.mark.parametrize(("value", "text"), [(0, "greater than"), (101, "at most 100")])
def test_quantity_has_bounds(tenant: Tenant, bikes: Any, value: int, text: str) -> None:
    answer = rent(tenant, bikes, value)
    assert answer.status == 422
    assert text in answer.error["errors"]["quantity"][0]


def test_cancelling_frees_all_units_and_moving_moves_all(tenant: Tenant, bikes: Any) -> None:
    booking = rent(tenant, bikes, 3).data
    moved = tenant.post(
        f"/bookings/{booking['id']}/reschedule",
        {"start": f"{DAY}T09:30:00+00:00", "end": f"{DAY}T10:30:00+00:00"},
    )
    assert moved.status == 200
    assert [unit for _, unit, _ in units_of(bikes)] == [0, 1, 2]
    assert {row.start.minute for row in Event.objects.filter(resource=bikes["id"])} == {30}

    tenant.put(f"/bookings/{booking['id']}/cancel", {})
    assert units_of(bikes) == []


def test_moving_to_another_resource_moves_all_units(tenant: Tenant, bikes: Any) -> None:
    others = tenant.make_resource("Other bikes", capacity=2)
    booking = rent(tenant, bikes, 2).data
    path = f"/bookings/{booking['id']}/reschedule"
    assert tenant.post(path, {**NINE_TO_TEN, "resource_id": others["id"]}).status == 200
    assert (units_of(bikes), units_of(others)) == ([], [(9, 0, False), (9, 1, True)])

    small = tenant.make_resource("One bike")
    assert tenant.post(path, {**NINE_TO_TEN, "resource_id": small["id"]}).status == 409
    assert units_of(others) == [(9, 0, False), (9, 1, True)]


def test_put_gives_units_back_and_takes_more(tenant: Tenant, bikes: Any) -> None:
    booking, other = rent(tenant, bikes, 2).data, rent(tenant, bikes).data
    path = f"/bookings/{booking['id']}"

    refused = tenant.put(path, {"quantity": 3})
    assert (refused.status, refused.error["code"]) == (409, "slot_taken")
    assert tenant.put(path, {"quantity": 1}).status == 200
    assert len(units_of(bikes)) == 2
    assert tenant.put(f"/bookings/{other['id']}", {"quantity": 2}).status == 200
    assert len(units_of(bikes)) == 3
    assert tenant.get(path).data["quantity"] == 1
    logs = tenant.get(f"{path}?include=logs").data["logs"]
    assert [entry["message"] for entry in logs] == ["", "Changed: quantity."]

    tenant.put(f"{path}/cancel", {})
    assert tenant.put(path, {"quantity": 2}).error["code"] == "action_not_allowed"


def test_request_of_several_units_takes_them_when_it_is_confirmed(
    tenant: Tenant, bikes: Any
) -> None:
    request = rent(tenant, bikes, 3, graph="confirm_decline").data
    assert units_of(bikes) == []
    rent(tenant, bikes)
    confirm = f"/bookings/{request['id']}/confirm"
    assert tenant.put(confirm, {}).error["code"] == "slot_taken"
    assert tenant.put(f"/bookings/{request['id']}", {"quantity": 2}).status == 200
    assert tenant.put(confirm, {}).status == 200
    assert len(units_of(bikes)) == 3


def test_series_takes_the_units_of_every_occurrence(tenant: Tenant, bikes: Any) -> None:
    answer = rent(tenant, bikes, 2, recurrence="FREQ=DAILY;COUNT=2")
    assert answer.status == 201
    assert Event.objects.filter(resource=bikes["id"]).count() == 4
    assert sorted(Booking.objects.values_list("quantity", flat=True)) == [2, 2]


def test_hold_keeps_units_and_its_booking_takes_as_many(tenant: Tenant, bikes: Any) -> None:
    hold = tenant.post(
        "/bookings/reserve", {"resource_id": bikes["id"], "quantity": 2, **NINE_TO_TEN}
    )
    assert (hold.status, hold.data["quantity"]) == (201, 2)
    assert Hold.objects.count() == 2
    assert free_hours(tenant, 2, resources=[bikes["id"]]) == ["08", "10", "11"]
    extend = {"reservation_id": hold.data["reservation_id"]}
    assert tenant.put("/bookings/reserve/extend", extend).data["quantity"] == 2

    booking = rent(tenant, bikes, reservation_id=hold.data["reservation_id"])
    assert tenant.get(f"/bookings/{booking.data['id']}").data["quantity"] == 2
    assert free_hours(tenant, 1, resources=[bikes["id"]]) == ["08", "09", "10", "11"]
    assert free_hours(tenant, 2, resources=[bikes["id"]]) == ["08", "10", "11"]


def test_each_unit_counts_in_the_limits_of_a_project(tenant: Tenant, bikes: Any) -> None:
    project = tenant.make_project(
        bikes["id"], settings={"max_per_day": 3}, availability={"length": None}
    )
    assert (
        tenant.post(
            "/bookings",
            {
                "project_id": project["id"],
                "customer": CUSTOMER,
                "what": "Ride",
                "quantity": 2,
                **hour(9, 10),
            },
        ).status
        == 201
    )
    given = {"project_id": project["id"]}
    assert free_hours(tenant, 1, **given) == ["08", "09", "10", "11"]
    assert free_hours(tenant, 2, **given) == []
    refused = rent(tenant, bikes, 2, project_id=project["id"], **hour(10, 11))
    assert [reason["text"] for reason in refused.error["reasons"]] == ["Daily limit reached."]
    assert free_hours(tenant, 4, **given) == []


def test_event_list_has_one_entry(tenant: Tenant, bikes: Any) -> None:
    rent(tenant, bikes, 3)
    events = tenant.get(f"/events?start={DAY}&end=2026-11-24").data
    assert [event["what"] for event in events] == ["Ride"]


def test_database_refuses_one_unit_too_many(tenant: Tenant, bikes: Any) -> None:
    booking = rent(tenant, bikes, 3).data
    event = Event.objects.get(bookings=booking["id"])
    for unit in range(4):
        row = Event(
            app_id=event.app_id,
            calendar_id=event.calendar_id,
            resource_id=event.resource_id,
            main=event,
            is_further_unit=True,
            start=event.start,
            end=event.end,
            what="Ride",
            exclusive=unit == 0,
            unit=unit,
        )
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save(force_insert=True)


# --- Public callers -------------------------------------------------------------------------------
def test_widget_key_takes_as_many_as_the_project_allows(tenant: Tenant, bikes: Any) -> None:
    project = tenant.make_project(bikes["id"], settings={"max_quantity": 2})
    widget = tenant.widget()
    given = {"project_id": project["id"], "customer": CUSTOMER, **hour(9, 10)}
    refused = widget.post("/bookings", {**given, "quantity": 3})
    assert refused.error["errors"] == {"quantity": ["Must be at most 2."]}
    refused = widget.post(
        "/bookings/reserve", {"project_id": project["id"], "quantity": 3, **hour(9, 10)}
    )
    assert refused.error["errors"] == {"quantity": ["Must be at most 2."]}
    query = {"project_id": project["id"], "quantity": 3}
    assert widget.post("/availability", query).error["errors"] == {
        "quantity": ["Must be at most 2."]
    }
    assert widget.post("/bookings", {**given, "quantity": 2}).status == 201


# --- Seats ----------------------------------------------------------------------------------------
@pytest.fixture
def hall(tenant: Tenant) -> Any:
    return tenant.make_resource("Hall")


def test_seats_are_counted(tenant: Tenant, hall: Any) -> None:
    group = make_group(tenant, hall, max_seats=4)
    seat = seat_in(tenant, group, ANN, quantity=3)
    refused = take_seat(tenant, group, BOB, quantity=2)
    assert (refused.status, refused.error["code"]) == (409, "group_full")
    assert refused.error["error"] == "Free seats: 1."
    assert tenant.get(f"/bookings/{group['id']}").data["attributes"]["group_booking"] == {
        "max_seats": 4,
        "current_seats": 3,
    }
    assert tenant.put(f"/bookings/{seat['id']}", {"quantity": 5}).error["code"] == "group_full"
    assert tenant.put(f"/bookings/{seat['id']}", {"quantity": 2}).status == 200
    assert take_seat(tenant, group, BOB, quantity=2).status == 201
    assert tenant.put(f"/bookings/{group['id']}", {"settings": {"max_seats": 3}}).status == 409


def test_places_have_their_own_counts(tenant: Tenant, hall: Any) -> None:
    settings = {"places": {"stalls": 2, "balcony": 1}, "max_seats": None}
    group = make_group(tenant, hall, settings=settings)
    assert tenant.get(f"/bookings/{group['id']}").data["attributes"]["group_booking"] == {
        "max_seats": 3,
        "current_seats": 0,
        "places": {"stalls": 2, "balcony": 1},
    }
    wrong = take_seat(tenant, group, ANN)
    assert wrong.error["errors"] == {"place": ["Must be one of balcony, stalls."]}
    seat_in(tenant, group, ANN, place="stalls", quantity=2)
    assert take_seat(tenant, group, BOB, place="stalls").error["code"] == "group_full"
    seat = seat_in(tenant, group, BOB, place="balcony")
    assert tenant.get(f"/bookings/{seat['id']}").data["place"] == "balcony"

    path = f"/bookings/{group['id']}"
    fewer = tenant.put(path, {"settings": {"places": {"stalls": 1, "balcony": 5}}})
    assert (fewer.status, fewer.error["error"]) == (409, "2 seats are taken in stalls.")
    assert tenant.put(path, {"settings": {"places": {"stalls": 2, "balcony": 2}}}).status == 200
    assert take_seat(tenant, group, ANN, place="balcony").status == 201


def test_places_belong_to_groups_that_have_some(tenant: Tenant, hall: Any) -> None:
    group = make_group(tenant, hall)
    refused = take_seat(tenant, group, ANN, place="stalls")
    assert refused.error["errors"] == {"place": ["The group has no places."]}
    refused = rent(tenant, hall, place="stalls", start=f"{DAY}T15:00:00Z", end=f"{DAY}T16:00:00Z")
    assert refused.error["errors"] == {"place": ["Only seats have a place."]}


def test_hold_keeps_seats_for_its_booking(tenant: Tenant, hall: Any) -> None:
    group = make_group(tenant, hall, max_seats=3)
    related = {"related": {"owner_booking_id": group["id"]}}
    hold = tenant.post("/bookings/reserve", {**related, "quantity": 2, "reservation_time": 60})
    assert (hold.status, hold.data["quantity"], hold.data["place"]) == (201, 2, None)
    assert hold.data["start"] == "2026-11-23T09:00:00+00:00"
    assert hold.data["resource"]["id"] == hall["id"]

    assert take_seat(tenant, group, BOB, quantity=2).error["code"] == "group_full"
    named = {"reservation_id": hold.data["reservation_id"]}
    assert tenant.put("/bookings/reserve/extend", named).status == 200
    seat = seat_in(tenant, group, ANN, **named)
    assert tenant.get(f"/bookings/{seat['id']}").data["quantity"] == 2
    assert take_seat(tenant, group, BOB, **named).error["code"] == "hold_expired"
    assert take_seat(tenant, group, BOB).status == 201


def test_released_hold_frees_its_seats(tenant: Tenant, hall: Any) -> None:
    group = make_group(tenant, hall)
    related = {"related": {"owner_booking_id": group["id"]}}
    hold = tenant.post("/bookings/reserve", {**related, "quantity": 2}).data
    assert tenant.delete(f"/bookings/reserve/{hold['reservation_id']}").status == 204
    assert tenant.delete(f"/bookings/reserve/{hold['reservation_id']}").status == 404
    assert take_seat(tenant, group, BOB, quantity=2).status == 201
    assert SeatHold.objects.count() == 1


def test_hold_of_seats_takes_no_time_and_no_other_keys(tenant: Tenant, hall: Any) -> None:
    group = make_group(tenant, hall)
    body = {"related": {"owner_booking_id": group["id"]}, **NINE_TO_TEN}
    assert tenant.post("/bookings/reserve", body).error["errors"] == {
        "start": ["Not with `related`."],
        "end": ["Not with `related`."],
    }
    tenant.post("/bookings/reserve", {"related": body["related"]})
    assert not Hold.objects.exists()


def test_widget_key_holds_seats_through_the_project(tenant: Tenant, hall: Any) -> None:
    project = tenant.make_project(hall["id"], settings={"max_quantity": 2})
    group = make_group(tenant, hall, max_seats=20, project_id=project["id"])
    widget = tenant.widget()
    body = {"project_id": project["id"], "related": {"owner_booking_id": group["id"]}}
    hold = widget.post("/bookings/reserve", {**body, "quantity": 2})
    assert (hold.status, sorted(hold.data["resource"])) == (
        201,
        ["id", "image", "name", "timezone"],
    )
    refused = widget.post("/bookings/reserve", {**body, "quantity": 3})
    assert refused.error["errors"] == {"quantity": ["Must be at most 2."]}
    widget.post("/bookings/reserve", {**body, "quantity": 2})
    share = widget.post("/bookings/reserve", {**body, "quantity": 1})
    assert (share.status, share.error["code"]) == (429, "rate_limited")


@pytest.mark.parametrize("place", ["stalls", "balcony"])
def test_database_refuses_one_seat_too_many(tenant: Tenant, hall: Any, place: str) -> None:
    settings = {"places": {"stalls": 2, "balcony": 1}, "max_seats": None}
    group = make_group(tenant, hall, settings=settings)
    seat = seat_in(tenant, group, ANN, place="stalls", quantity=2)
    seat_in(tenant, group, BOB, place="balcony")
    taken = Booking.objects.get(id=seat["id"])

    with pytest.raises(IntegrityError, match="group_full"), transaction.atomic():
        Booking.objects.create(
            app_id=taken.app_id,
            resource_id=taken.resource_id,
            event_id=taken.event_id,
            owner_booking_id=group["id"],
            graph="group_customer",
            state="confirmed",
            place=place,
            created_at=taken.created_at,
            updated_at=taken.updated_at,
        )
    with pytest.raises(IntegrityError, match="group_full"), transaction.atomic():
        Booking.objects.filter(id=taken.id).update(quantity=3)
    with pytest.raises(IntegrityError, match="group_full"), transaction.atomic():
        Booking.objects.filter(id=group["id"]).update(max_seats=2)
    with pytest.raises(IntegrityError, match="group_full"), transaction.atomic():
        Booking.objects.filter(id=group["id"]).update(places={"stalls": 1, "balcony": 9})
    Booking.objects.filter(id=taken.id).update(state="cancelled", completed=True)
    Booking.objects.filter(id=group["id"]).update(max_seats=1)
