"""Placeholders in the place of a booking."""

from typing import Any

import pytest

from availability.models import Event
from bookings.models import Booking
from tests.bookings.booking_drafts import MONDAY, span, whole
from tests.bookings.group_world import make_group, seat_in
from tests.world import Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

ROOM = "https://video.example/{booking_id}?at={start}"


def video_url(booking: Any, hour: int) -> str:
    at = f"{MONDAY}T{hour:02}%3A00%3A00%2B00%3A00"
    return f"https://video.example/{booking['id']}?at={at}"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


def place_of(tenant: Tenant, booking: Any) -> str:
    return str(whole(tenant, booking)["event"]["where"])


def test_place_of_the_project_is_filled_in_and_follows_a_move(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"], booking={"what": "Call", "where": ROOM})["id"]
    booking = tenant.book(project_id=project, **span("09:00", "10:00")).data
    before = place_of(tenant, booking)

    tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:00", "12:00"))

    assert (before, place_of(tenant, booking)) == (video_url(booking, 9), video_url(booking, 11))


def test_edited_place_is_kept_by_a_reschedule(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"], booking={"what": "Call", "where": ROOM})["id"]
    booking = tenant.book(project_id=project, **span("09:00", "10:00")).data
    tenant.put(f"/bookings/{booking['id']}", {"where": "Room 2, ref {booking_id}, {start}"})

    tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:00", "12:00"))

    assert place_of(tenant, booking) == f"Room 2, ref {booking['id']}, {MONDAY}T09:00:00+00:00"


def test_each_booking_of_a_series_and_each_resource_has_its_place(tenant: Tenant, ada: Any) -> None:
    ben = tenant.make_resource("Ben")
    project = tenant.make_project(
        ada["id"],
        ben["id"],
        availability={"mode": "mutual", "length": "1 hour"},
        booking={"what": "Call", "where": "{booking_id}"},
    )["id"]

    tenant.book(project_id=project, **span("09:00", "10:00"), recurrence="FREQ=DAILY;COUNT=2")

    for booking in Booking.objects.select_related("event"):
        rows = Event.objects.filter(main=booking.event)
        places = [booking.event.where, *rows.values_list("where", flat=True)]
        assert places == [str(booking.id)] * 2


def test_seat_has_the_place_of_its_group(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada, where=ROOM)

    assert place_of(tenant, seat_in(tenant, group)) == video_url(group, 9)


def test_too_long_place_is_refused(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(resource_id=ada["id"], where="{booking_id}" * 10, **span("09:00", "10:00"))

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"where": ["Must have at most 200 characters with its placeholders filled in."]},
    )
    assert Booking.objects.count() == 0


def test_unknown_placeholders_are_kept(tenant: Tenant, ada: Any) -> None:
    booking = tenant.book(resource_id=ada["id"], where="Room {x}", **span("09:00", "10:00")).data

    assert place_of(tenant, booking) == "Room {x}"


# --- Answers to questions -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("customer", "missing"),
    [
        ({}, ["phone", "insurance", "consent"]),
        ({"phone": "", "insurance": None, "consent": False}, ["phone", "insurance", "consent"]),
        ({"phone": "1", "meta": {"insurance": "AOK"}, "consent": True}, []),
        ({"phone": "1", "insurance": "AOK", "meta": {"consent": "on"}}, []),
    ],
)
def test_public_booking_needs_answers_to_required_questions(
    tenant: Tenant, ada: Any, customer: dict[str, Any], missing: list[str]
) -> None:
    project = tenant.make_project(
        ada["id"],
        customer_fields={
            "phone": {"required": True},
            "insurance": {"title": "Insurance", "required": True},
            "consent": {"format": "checkbox", "required": True},
            "branch": {"required": True, "readonly": True, "prefilled": "Harbour"},
            "note": {"required": False},
        },
    )["id"]
    person = {"name": "Marty", "email": "marty@example.com", **customer}
    body = {"project_id": project, "customer": person, **span("09:00", "10:00")}

    answer = tenant.widget().post("/bookings", body)
    by_staff = tenant.post("/bookings", {**body, **span("11:00", "12:00"), "what": "Check-up"})

    errors = {f"customer.{key}": ["This field is required."] for key in missing}
    assert (answer.status, answer.json.get("errors", {})) == (422 if missing else 201, errors)
    assert by_staff.status == 201
