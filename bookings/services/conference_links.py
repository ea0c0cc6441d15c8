"""Store the links of video calls: with the booking, or when a connected calendar has made them."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from availability.conferences import conference_provider, is_link, new_link
from availability.models import Event
from availability.reserve.destination_calendar import DestinationCalendars
from availability.reserve.events import update_event_details
from bookings.conferences import lacks_link
from bookings.models import Booking
from bookings.services.locks import lock_bookings
from bookings.services.transition_log import (
    UPDATE,
    Actor,
    Edit,
    Transition,
    new_change,
    write_transitions,
)
from common.db.sql import update_rows
from common.db.updated_at import transaction_start
from common.messages import Message

CONFERENCE = "conference"
LINK_ADDED = Message("The link for the video call was added.")


def make_links(bookings: Sequence[Booking]) -> None:
    """Give new bookings the provider of their project, and the link if no calendar makes it.

    Their events are written. A booking keeps both if the project's setting changes.
    """
    with_conference = [
        booking
        for booking in bookings
        if booking.owner_booking_id is None
        and booking.project
        and conference_provider(booking.project.settings)
    ]
    for booking in with_conference:
        settings = booking.project.settings if booking.project else {}
        booking.event.conference_provider = conference_provider(settings)
        booking.event.conference_url = new_link(settings, booking.id)
        booking.event.updated_at = transaction_start()
    events = [booking.event for booking in with_conference]
    update_rows(events, ["conference_provider", "conference_url", "updated_at"])


def store_conference_link(event_id: uuid.UUID, url: str, *, now: datetime) -> bool:
    """Store the link that a connected calendar has made for the event, or for its companion.

    E-mails that wait for it become due, and people who got an e-mail without it get one with it.
    Does nothing, and returns False, if the booking has a link, wants none from a calendar, or does
    not take place. The first link stays. Raises ValueError unless `url` is an https address of at
    most 500 characters.

    It locks the bookings: call it before locking deliveries, as everywhere.
    """
    if not is_link(url):
        raise ValueError("not the https address of a video call")
    with transaction.atomic():
        bookings = [booking for booking in _lock_bookings_of(event_id) if lacks_link(booking)]
        if not bookings:
            return False
        for booking in bookings:
            booking.event.conference_url = url
            booking.updated_at = booking.event.updated_at = transaction_start()
        update_rows([bookings[0].event], ["conference_url", "updated_at"])
        update_event_details(bookings[0].event, {})  # of companions too: feeds
        update_rows(bookings, ["updated_at"])
        calendar = DestinationCalendars([bookings[0].event]).of(bookings[0].event)
        actor = Actor(name=calendar.name if calendar else "", source="calendar")
        write_transitions([_transition(booking, actor, now) for booking in bookings])
    return True


def _lock_bookings_of(event_id: uuid.UUID) -> list[Booking]:
    """Lock the booking of the event or of its main event, and a group's seats."""
    event = Event.objects.filter(id=event_id).first()
    main_id = event and (event.main_id or event.id)
    found = list(Booking.objects.filter(event=main_id).select_related("app")) if main_id else []
    return lock_bookings(found[0].app, [booking.id for booking in found]) if found else []


def _transition(booking: Booking, actor: Actor, now: datetime) -> Transition:
    change = new_change(booking, UPDATE, booking.state, actor, now, LINK_ADDED)
    return Transition(booking, change, edit=Edit(frozenset({CONFERENCE})))
