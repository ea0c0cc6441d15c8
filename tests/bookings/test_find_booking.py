"""A booking with its includes by statements that are compiled once: as the ORM reads it."""

import uuid
from typing import Any

import pytest
from django.db import connection

from bookings.models import Booking
from bookings.serializers.responses import (
    INCLUDES,
    Include,
    booking_record,
    find_booking,
    with_includes,
)
from tests.bookings.booking_drafts import NINE, span
from tests.bookings.group_world import make_group, take_seat
from tests.queries import Queries
from tests.world import Tenant, clock_at_now

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.both_databases,
    pytest.mark.usefixtures("clock"),
]
REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}


@pytest.fixture(scope="module")
def booking_ids(module_transaction: None) -> list[str]:
    with clock_at_now():
        return make_bookings(Tenant("found"))


@pytest.fixture
def bookings(db: None, booking_ids: list[str]) -> list[Booking]:
    """One of a project with everything, a plain one, a group with a seat, a series."""
    return [Booking.objects.get(id=each) for each in booking_ids]


def make_bookings(tenant: Tenant) -> list[str]:
    ada = tenant.make_resource("Ada", email="ada@example.com")
    project = tenant.make_project(ada["id"], name="Check-up")["id"]
    people = [{"name": name, "email": f"{name}@example.com"} for name in ("marty", "doc")]
    made = [
        tenant.post(
            "/bookings",
            {
                "what": "Check-up",
                "project_id": project,
                "customers": people,
                "event_notifications": [REMINDER],
                "meta": {"x": 1},
                **NINE,
            },
        ),
        tenant.book(resource_id=ada["id"], **span("10:00", "11:00")),
        tenant.book(
            resource_id=ada["id"],
            recurrence="FREQ=DAILY;COUNT=3",
            **span("14:00", "15:00"),
        ),
    ]
    assert [answer.status for answer in made] == [201] * 3, [answer.json for answer in made]
    group = make_group(tenant, ada, **span("12:00", "13:00"))
    take_seat(tenant, group)
    return [*(answer.data["id"] for answer in made), group["id"]]


def by_orm(booking: Booking, includes: list[Include]) -> Any:
    rows = with_includes(Booking.objects.filter(id=booking.id).select_related("event"), includes)
    return booking_record(rows.get(), includes, "UTC")


@pytest.mark.every_case
@pytest.mark.parametrize("names", [*([name] for name in INCLUDES), list(INCLUDES)], ids=str)
def test_find_booking_equals_the_orm(bookings: list[Booking], names: list[str]) -> None:
    includes = [INCLUDES[name] for name in names]

    for booking in bookings:
        found = find_booking(booking.app, booking.id, includes)

        assert found is not None
        assert booking_record(found, includes, "UTC") == by_orm(booking, includes)


def test_find_booking_is_scoped_to_the_app(bookings: list[Booking], make_tenant: Any) -> None:
    booking = bookings[0]
    deleted = bookings[1]
    Booking.objects.filter(id=deleted.id).update(deleted_at=deleted.created_at)

    assert find_booking(booking.app, booking.id, []) == booking
    assert find_booking(make_tenant().app, booking.id, []) is None
    assert find_booking(booking.app, uuid.uuid4(), []) is None
    assert find_booking(deleted.app, deleted.id, []) is None


def test_relations_are_read_once(bookings: list[Booking]) -> None:
    booking, app = bookings[0], bookings[0].app
    includes = [INCLUDES[name] for name in ("attributes", "customers", "logs")]
    with Queries(connection) as captured:
        found = find_booking(app, booking.id, includes)
        assert found is not None
        names = [customer.name for customer in found.customers.all()]
        owners = {customer.booking for customer in found.customers.all()}
        booking_record(found, includes, "UTC")

    assert (names, owners) == (["marty", "doc"], {found})
    assert len(captured.captured_queries) == 3
