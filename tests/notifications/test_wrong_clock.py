"""A web process with a wrong clock: what is due at once goes by the database's."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from bookings.models import Booking
from common.db.sql import database_now
from notifications.models import Delivery
from notifications.outbox.leases import claim_due
from notifications.outbox.redeliver import redeliver
from notifications.webhooks.services import create_webhook, send_test
from tests.notifications.test_dispatcher import reminder
from tests.world import Tenant

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgresql,
    pytest.mark.usefixtures("expanded_calls"),
]

PAYMENT_WAITS = timedelta(minutes=5)
HOUR = timedelta(hours=1)


@pytest.fixture(params=[-10, 10], ids=["behind", "ahead"])
def wrong_clock(request: Any, tenant: Tenant) -> Any:
    """So many minutes, while the fixture's traveller is entered."""
    return time_machine.travel(database_now() + timedelta(minutes=request.param), tick=True)


def book(tenant: Tenant, resource_id: str, start: datetime, **given: Any) -> Booking:
    times = {"start": start.isoformat(), "end": (start + HOUR).isoformat()}
    return Booking.objects.get(id=tenant.book(resource_id=resource_id, **times, **given).data["id"])


def test_new_deliveries_are_due_by_the_database_clock(tenant: Tenant, wrong_clock: Any) -> None:
    webhook = create_webhook(app=tenant.app, given={"url": "https://example.com/hook"})[0]
    resource = tenant.make_resource(email="ada@example.com")["id"]
    start = (database_now() + timedelta(days=2)).replace(microsecond=0)
    before = database_now()

    with wrong_clock:
        book(tenant, resource, start, event_notifications=[reminder(mins=60)])
        send_test(webhook, now=timezone.now())

    at_once = Delivery.objects.exclude(kind="reminder")
    planned = sorted(at_once.values_list("type", "kind"))
    assert planned == [
        *(("email", "confirmed"), ("email", "confirmed")),
        *(("webhook", "confirmed"), ("webhook", "test")),
    ]
    assert all(before <= row.due_at == row.next_at <= database_now() for row in at_once)
    assert [len(claim_due(kind, 10)) for kind in ("email", "webhook")] == [2, 2]
    assert [row.next_at for row in Delivery.objects.filter(kind="reminder")] == [start - HOUR]


def test_redelivery_is_due_by_the_database_clock(tenant: Tenant, wrong_clock: Any) -> None:
    resource = tenant.make_resource(email="ada@example.com")["id"]
    book(tenant, resource, database_now() + timedelta(days=2))
    row = Delivery.objects.filter(type="email").first()
    Delivery.objects.update(next_at=database_now() + HOUR)

    with wrong_clock:
        redeliver(row, now=timezone.now())

    assert [one.id for one in claim_due("email", 10)] == [row.id]


def test_payment_deadline_is_by_the_database_clock(tenant: Tenant, wrong_clock: Any) -> None:
    resource = tenant.make_resource()["id"]
    start = database_now() + timedelta(days=2)
    before = database_now()

    with wrong_clock:
        booking = book(tenant, resource, start, graph="instant_payment")

    assert before <= booking.expires_at - PAYMENT_WAITS <= database_now()
