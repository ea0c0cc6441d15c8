"""What the tests of mails share: a letter about a made-up booking, without a database."""

import uuid
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from django.core.mail import EmailMultiAlternatives

from apps_config.models import App
from availability.models import Event, Project, Resource
from bookings.models import Booking, Customer
from notifications.mail import Letter
from notifications.models import EmailTemplate
from tests.world import at

BOOKING_ID = uuid.UUID("0193a4c2-0000-7000-8000-000000000030")
DELIVERY_ID = uuid.UUID("0193a4c2-0000-7000-8000-000000000051")
STATES = {
    "tentative": "tentative",
    "declined": "declined",
    "unpaid": "unpaid",
    "cancelled": "cancelled",
}


def make_app(**settings: Any) -> App:
    return App(slug="harbour", name=settings.pop("name", "Harbour Dental"), settings=settings)


def make_event(start: str | datetime, end: str | datetime, **values: Any) -> Event:
    start, end = (at(moment) if isinstance(moment, str) else moment for moment in (start, end))
    words = {"what": "Check-up", "where": "Harbour Street 5", "description": "Bring your card."}
    return Event(start=start, end=end, **{**words, **values})


def make_letter(
    slug: str,
    *,
    app: App | None = None,
    event: Event | None = None,
    graph: str = "confirm_decline",
    state: str | None = None,
    zone: str = "Europe/Berlin",
    customer: dict[str, Any] | None = None,
    to: tuple[str, ...] | None = None,
    resource: str = "Ada Lovelace",
    project: str | None = None,
    template: dict[str, str] | None = None,
    reschedules: int = 0,
    **facts: Any,
) -> Letter:
    """A letter of that kind: Monday 23 November 2026, 09:00 to 09:30 in Berlin."""
    app = app or make_app()
    row = Resource(app=app, name=resource, timezone=zone)
    event = event or make_event("2026-11-23 08:00", "2026-11-23 08:30")
    event.app, event.resource = app, row
    booking = Booking(
        id=BOOKING_ID,
        calendar_uid=BOOKING_ID,
        app=app,
        resource=row,
        event=event,
        project=Project(app=app, name=project) if project else None,
        graph=graph,
        state=state or STATES.get(slug.split("_")[0], "confirmed"),
        reschedules=reschedules,
    )
    values = {"name": "Marty McFly", "email": "marty@example.com", "phone": "+1 555 0100"}
    marty = Customer(app=app, booking=booking, **{**values, **(customer or {})})
    recipient = slug.rpartition("_")[2]
    default_to = "marty@example.com" if recipient == "customer" else "ada@example.com"
    return Letter(
        slug=slug,
        delivery_id=DELIVERY_ID,
        booking=booking,
        recipient=recipient,
        to=(default_to,) if to is None else to,
        customers=[marty],
        customer=marty if recipient == "customer" else None,
        facts=facts,
        template=EmailTemplate(app=app, slug=slug, **template) if template is not None else None,
    )


def html_of(message: EmailMultiAlternatives) -> str:
    return message.alternatives[0].content


def sent(message: EmailMultiAlternatives) -> EmailMessage:
    """The message as a mail program reads it off the wire."""
    return message_from_bytes(message.message().as_bytes(), policy=policy.default)


def calendar_of(message: EmailMultiAlternatives) -> str | None:
    """The entry for the recipient's calendar, unfolded, without what changes by the hour."""
    parts = [
        alternative
        for alternative in message.alternatives
        if alternative.mimetype.startswith("text/calendar")
    ]
    return parts[0].content if parts else None
