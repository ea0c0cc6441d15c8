"""Ended seats keep the time and the texts that they had."""

from collections.abc import Sequence

from availability.models import Event
from bookings.models import Booking
from bookings.services.locks import lock_seats
from common.db.updated_at import transaction_start

COPIED = (
    *("app_id", "calendar_id", "resource_id", "project_id", "start", "end"),
    *("what", "where", "description", "participants", "rsvp", "invite"),
    *("conference_provider", "conference_url"),
)


def copy_events_of_ended_seats(bookings: Sequence[Booking]) -> None:
    """Give the ended seats of the groups among `bookings` a copy of the group's event.

    Call this before the event changes; the groups are locked, so no seat is added meanwhile, and
    the seats get locked, so that none ends. The copy blocks nothing and is shown with the seats
    alone.
    """
    groups = [booking for booking in bookings if booking.max_seats is not None]
    lock_seats(groups)
    for group in groups:
        ended = Booking.objects.filter(owner_booking=group, event=group.event, completed=True)
        if ended.exists():
            copy = Event(busy=False, of_ended_seats=True)
            for name in COPIED:
                setattr(copy, name, getattr(group.event, name))
            copy.save(force_insert=True)
            ended.update(event=copy, updated_at=transaction_start())
