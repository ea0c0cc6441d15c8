"""The check of the outbox: deliveries are deleted and doubled by hand, and each fault is found."""

import logging
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from bookings.models import Booking, BookingNotification, StateChange
from notifications.delivery_check import find_delivery_faults
from notifications.models import Delivery
from notifications.tasks import check_deliveries
from ops import doctor
from ops.doctor import Finding
from tests.bookings.group_world import make_group, seat_in
from tests.delivery_faults import delivery_faults
from tests.queries import Queries
from tests.world import Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

REMINDERS = [
    {
        "type": "email",
        "settings": {"recipient": "customer"},
        "when": {"type": "before", "unit": "mins", "time": 60},
    },
    {
        "type": "email",
        "settings": {"recipient": "owner"},
        "when": {"type": "after", "unit": "mins", "time": 10},
    },
    {
        "type": "webhook",
        "settings": {"url": "https://example.com/reminder"},
        "when": {"type": "before", "unit": "mins", "time": 30},
    },
]


def span(hours: int) -> dict[str, str]:
    start = (timezone.now() + timedelta(hours=hours)).replace(microsecond=0)
    return {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}


@pytest.fixture
def resource(tenant: Tenant) -> Any:
    return tenant.make_resource(email="ada@example.com")


@pytest.fixture
def booking(tenant: Tenant, resource: Any) -> Booking:
    """Confirmed, with two e-mails and three reminders."""
    given = {"resource_id": resource["id"], "event_notifications": REMINDERS, **span(30)}
    answer = tenant.book(**given)
    assert answer.status == 201, answer.json
    return Booking.objects.get()


def double(row: Delivery) -> None:
    row.pk, row.number = uuid.uuid4(), 99
    row.save(force_insert=True)


# --- Complete -------------------------------------------------------------------------------------
def test_empty_service_is_complete(db: None) -> None:
    assert delivery_faults() == []


@pytest.mark.parametrize("step", ["reschedule", "cancel", "complete", "delete", "erase", "update"])
def test_changed_booking_is_complete(tenant: Tenant, booking: Booking, step: str) -> None:
    path = f"/bookings/{booking.id}"
    answer = {
        "reschedule": lambda: tenant.post(f"{path}/reschedule", span(60)),
        "cancel": lambda: tenant.put(f"{path}/cancel"),
        "complete": lambda: tenant.put(f"{path}/complete"),
        "delete": lambda: tenant.put(f"{path}/cancel") and tenant.delete(path),
        "erase": lambda: tenant.post("/customers/erase", {"email": "marty@example.com"}),
        "update": lambda: tenant.put(path, {"what": "Another"}),
    }[step]()

    assert answer.status in (200, 204), answer.json
    assert delivery_faults() == []


def test_series_is_complete_with_one_mail(tenant: Tenant, resource: Any) -> None:
    given = {"resource_id": resource["id"], **span(30), "recurrence": "FREQ=DAILY;COUNT=3"}
    answer = tenant.book(**given)
    assert answer.status == 201, answer.json

    assert StateChange.objects.count() == 3
    assert Delivery.objects.filter(kind="confirmed").count() == 2
    assert delivery_faults() == []
    change = Delivery.objects.filter(recipient="owner").get().change_id
    Delivery.objects.filter(recipient="owner").delete()
    assert f"change {change}: no e-mail to the owner" in delivery_faults()
    assert len(delivery_faults()) == 3


def test_merged_mails_are_complete_also_after_an_erasure(tenant: Tenant, resource: Any) -> None:
    bodies = [
        {
            "resource_id": resource["id"],
            "what": "Meeting",
            "customer": {"name": name, "email": f"{name}@example.com"},
            **span(hours),
        }
        for name, hours in (("ada", 30), ("bob", 40))
    ]
    answer = tenant.post("/bookings/bulk", {"bookings": bodies})
    assert answer.status in (200, 201, 207), answer.json
    assert Delivery.objects.filter(recipient="owner").count() == 1

    before = delivery_faults()
    Delivery.objects.filter(recipient="owner").update(
        state="delivered", next_at=None, finished_at=timezone.now()
    )
    assert tenant.post("/customers/erase", {"email": "ada@example.com"}).status == 200

    assert (before, delivery_faults()) == ([], [])


def test_seat_tells_its_customer_and_group_its_owner(tenant: Tenant, resource: Any) -> None:
    group = make_group(tenant, resource, **span(30))
    seat_in(tenant, group)
    assert tenant.put(f"/bookings/{group['id']}/cancel").status == 200

    assert delivery_faults() == []


# --- Incomplete -----------------------------------------------------------------------------------
def test_missing_reminder_is_found(booking: Booking) -> None:
    reminders = Delivery.objects.filter(kind="reminder")
    assert reminders.count() == 3
    reminders.delete()

    assert delivery_faults() == [
        f"booking {booking.id}: 0 reminders instead of 1 ({what})"
        for what in ("call", "e-mail to the owner", "e-mail to a customer")
    ]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"type": "webhook"}, "call"),
        ({"recipient": "owner"}, "e-mail to the owner"),
        ({"recipient": "customer"}, "e-mail to a customer"),
    ],
)
def test_doubled_reminder_is_found(booking: Booking, values: dict[str, str], what: str) -> None:
    double(Delivery.objects.get(kind="reminder", **values))

    assert delivery_faults() == [f"booking {booking.id}: 2 reminders instead of 1 ({what})"]


def test_reminder_cancelled_by_mistake_is_found(booking: Booking) -> None:
    Delivery.objects.filter(kind="reminder", type="webhook").update(
        state="cancelled", next_at=None, finished_at=timezone.now()
    )

    assert delivery_faults() == [f"booking {booking.id}: 0 reminders instead of 1 (call)"]


def test_reminders_of_an_earlier_time_do_not_count(booking: Booking) -> None:
    Booking.objects.update(reschedules=1)

    assert len(delivery_faults()) == 3


def test_change_without_deliveries_is_found(booking: Booking) -> None:
    Delivery.objects.exclude(kind="reminder").delete()
    change = StateChange.objects.get()

    assert delivery_faults() == [
        f"change {change.id}: no e-mail to the customer",
        f"change {change.id}: no e-mail to the owner",
    ]


def test_change_of_the_day_before_is_not_checked(booking: Booking) -> None:
    Delivery.objects.exclude(kind="reminder").delete()

    assert find_delivery_faults(timezone.now() + timedelta(hours=25)) == []


def test_limit_is_that_of_changes_and_bookings(tenant: Tenant, booking: Booking) -> None:
    given = {"resource_id": str(booking.resource_id), "event_notifications": REMINDERS}
    assert tenant.book(**given, **span(60)).status == 201
    Delivery.objects.all().delete()

    found = find_delivery_faults(timezone.now(), limit=1)

    assert found == [
        f"booking {booking.id}: 0 reminders instead of 1 ({what})"
        for what in ("call", "e-mail to the owner", "e-mail to a customer")
    ]


def test_queries_do_not_grow(tenant: Tenant, booking: Booking) -> None:
    with Queries(connection) as one:
        delivery_faults()
    for hours in (40, 50, 60):
        tenant.book(resource_id=str(booking.resource_id), **span(hours))
    Delivery.objects.all().delete()
    with Queries(connection) as many:
        faults = delivery_faults()

    assert len(faults) > 6
    assert len(one) == len(many) == 6


# --- Reports --------------------------------------------------------------------------------------


def test_doctor_reports_faults(booking: Booking) -> None:
    before = doctor.check_planned_deliveries()
    Delivery.objects.filter(kind="reminder").delete()
    found = doctor.check_planned_deliveries()

    shown = "; ".join(delivery_faults())
    assert before == Finding("ok", "none is missing or duplicate")
    assert (found.level, found.seen) == ("FAIL", f"3 missing or duplicate: {shown}")


def test_nightly_task_logs_faults(booking: Booking, caplog: pytest.LogCaptureFixture) -> None:
    check_deliveries()
    assert caplog.messages == []

    BookingNotification.objects.filter(type="webhook").delete()
    with caplog.at_level(logging.ERROR):
        check_deliveries()

    assert caplog.messages == [
        "1 deliveries are missing or duplicate:"
        f" booking {booking.id}: 1 reminders instead of 0 (call)"
    ]
