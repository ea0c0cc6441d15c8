"""Rows for the chaos tests, made inside the service's environment: see House.fill."""

import json
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps_config.models import App, Credential
from apps_config.services import create_app, issue_key
from availability.models import Calendar
from availability.reserve.events import EventDetails
from availability.services import create_resource
from bookings.booking_target import BookingTarget
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.services import Actor, NewBooking, apply_action, create_booking, reschedule_booking
from external_calendars.credentials import store_credentials
from external_calendars.models import Connection, WrittenEvent
from external_calendars.providers.base import CalendarAccess
from notifications.models import Delivery
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.webhooks.services import create_webhook

ACTOR = Actor(name="chaos", source="api")
REMINDER = {
    "type": "email",
    "recipient": "customer",
    "when_type": "before",
    "when_unit": "mins",
    "when_time": 60,
}


def make_app(slug: str, resources: int) -> dict[str, Any]:
    """An app with a key and resources: what a client of the API needs."""
    app = create_app(slug=slug, name="Chaos")
    made = [
        create_resource(app=app, given={"name": f"Room {number}", "timezone": "UTC"})[0]
        for number in range(resources)
    ]
    key = issue_key(Credential.SERVER, mode=app.mode, app=app)[1]
    return {
        "key": key,
        "resources": [str(one.id) for one in made],
    }


def make_calls(slug: str, urls: list[str], count: int, spread: float) -> dict[str, float]:
    """Calls to the urls in turn, due from now on over `spread` seconds; id -> when it is due."""
    app = App.objects.filter(slug=slug).first() or create_app(slug=slug, name="Chaos")
    webhooks = [create_webhook(app=app, given={"url": url})[0] for url in urls]
    now = timezone.now()
    rows = []
    for number in range(count):
        webhook, due = (
            webhooks[number % len(webhooks)],
            now + timedelta(seconds=spread * number / count),
        )
        rows.append(
            Delivery(
                app=app,
                webhook=webhook,
                type=Delivery.WEBHOOK,
                kind="test",
                body=json.dumps({"number": number}),
                endpoint=endpoint_of(webhook.url),
                due_at=due,
                next_at=due,
                expires_at=due + timedelta(days=3),
                created_at=now,
            )
        )
    for first in range(0, count, 1000):  # each in a transaction of its own, for the triggers
        Delivery.objects.bulk_create(rows[first : first + 1000])
    return {str(row.id): row.due_at.timestamp() for row in rows}


def make_mails(slug: str, count: int) -> list[str]:
    """Bookings whose making mails a customer and an owner; the ids of those deliveries."""
    app = create_app(slug=slug, name="Chaos", settings={"contact_email": "desk@example.com"})
    create_resource(app=app, given={"name": "Room", "timezone": "UTC"})
    calendar = Calendar.objects.select_related("resource").get(resource__app=app)
    _book(app, calendar, count // 2)
    return [str(key) for key in Delivery.objects.filter(app=app).values_list("id", flat=True)]


def _book(app: App, calendar: Calendar, count: int) -> None:
    """An hour each, one after the other, from a month ahead."""
    now = timezone.now()
    start = now.replace(minute=0, second=0, microsecond=0) + timedelta(days=30)
    for number in range(count):
        new = NewBooking(
            start=start + timedelta(hours=number),
            end=start + timedelta(hours=number + 1),
            details=EventDetails(what=f"Meeting {number}"),
            graph=GRAPHS["instant"],
            action="confirm",
            customers=[{"name": "Ada", "email": f"ada{number}@example.com"}],
        )
        place = BookingTarget(app=app, project=None, calendar=calendar, now=now)
        create_booking(new, target=place, actor=ACTOR, now=now)


def make_writes(slug: str, access: list[str], count: int) -> None:
    """Bookings of a resource whose calendar lies elsewhere; `access`: address, user, password."""
    app = create_app(slug=slug, name="Chaos")
    resource = create_resource(app=app, given={"name": "Room", "timezone": "UTC"})[0]
    elsewhere = Calendar.objects.create(
        app_id=resource.app_id,
        resource=resource,
        name="Work",
        provider="caldav",
        provider_id=access[0],
        provider_access=Calendar.WRITER,
        provider_primary=True,
    )
    connection = Connection(calendar=elsewhere)
    store_credentials(connection, CalendarAccess(*access))
    connection.save(force_insert=True)
    own = Calendar.objects.select_related("resource").get(resource=resource, provider="service")
    _book(app, own, count)


def change_writes(slug: str) -> None:
    """Of three, one is moved by a year, one is cancelled, one stays."""
    app, now = App.objects.get(slug=slug), timezone.now()
    for number, booking in enumerate(Booking.objects.filter(app=app).order_by("id")):
        given: dict[str, Any] = {"app": app, "booking_id": booking.id, "actor": ACTOR, "now": now}
        if number % 3 == 0:
            start = booking.event.start + timedelta(days=365)
            end = start + timedelta(hours=1)
            reschedule_booking(start=start, end=end, calendar=None, **given)
        elif number % 3 == 1:
            apply_action(action="cancel", **given)


def expected_writes(slug: str) -> dict[str, str]:
    """UID -> start of what should stand elsewhere."""
    rows = Booking.objects.filter(app__slug=slug, state="confirmed").select_related("event")
    written = {row.event_id: row.uid for row in WrittenEvent.objects.all()}
    return {written[row.event_id]: f"{row.event.start:%Y%m%dT%H%M%SZ}" for row in rows}
