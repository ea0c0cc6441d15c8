"""Rows for the chaos tests, made inside the service's environment: see House.fill."""

import json
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps_config.models import App, Credential
from apps_config.services import create_app, issue_key
from availability.models import Calendar
from availability.placement import Details
from availability.services import create_resource
from bookings.graphs import GRAPHS
from bookings.places import Place
from bookings.services import Actor, NewBooking, create_booking
from notifications.breaker import endpoint_of
from notifications.models import Delivery
from notifications.services import create_webhook

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
    Delivery.objects.bulk_create(rows, batch_size=1000)
    return {str(row.id): row.due_at.timestamp() for row in rows}


def make_mails(slug: str, count: int) -> list[str]:
    """Bookings whose making mails a customer and an owner; the ids of those deliveries."""
    app = create_app(slug=slug, name="Chaos", settings={"contact_email": "desk@example.com"})
    create_resource(app=app, given={"name": "Room", "timezone": "UTC"})
    calendar = Calendar.objects.select_related("resource").get(resource__app=app)
    now = timezone.now()
    start = now.replace(minute=0, second=0, microsecond=0) + timedelta(days=30)
    for number in range(count // 2):
        new = NewBooking(
            start=start + timedelta(hours=number),
            end=start + timedelta(hours=number + 1),
            details=Details(what=f"Meeting {number}"),
            graph=GRAPHS["instant"],
            action="confirm",
            customers=[{"name": "Ada", "email": f"ada{number}@example.com"}],
        )
        place = Place(app=app, project=None, calendar=calendar, now=now)
        create_booking(new, place=place, actor=ACTOR, now=now)
    return [str(key) for key in Delivery.objects.filter(app=app).values_list("id", flat=True)]
