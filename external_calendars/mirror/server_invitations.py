"""Whom the servers of connected calendars have invited (RFC 6638), and who needs an e-mail for it.

An e-mail leaves before the write of its change. It has no calendar file only for people who get the
entry for certain: a second entry has the same UID and replaces the first, a missing one is lost.
"""

from collections.abc import Collection, Mapping

from availability.destination_calendar import DestinationCalendars
from bookings.models import Booking, Customer
from external_calendars.models import Connection, WrittenEvent
from notifications.mail.provider_entries import provider_entries

MAX_REASON = 300  # as its column
# SCHEDULE-STATUS of an attendee (RFC 6638 3.2.9): pending, sent, delivered; of Xandikos: delivered.
INVITED = frozenset({"1.0", "1.1", "1.2", "2.0"})
# Why the server has not invited an attendee.
REASONS = {
    "3.7": "it does not accept the e-mail address",
    "3.8": "this calendar may not invite",
    "5.1": "it could not deliver the invitation",
    "5.2": "it knows no way to deliver the invitation",
    "5.3": "it may not invite this e-mail address",
}


def all_invited(invitations: Mapping[str, str]) -> bool:
    return bool(invitations) and INVITED.issuperset(invitations.values())


def invitation_problem(invitations: Mapping[str, str]) -> str:
    """Return a sentence about attendees that the server has not invited, "" without any.

    "The calendar server did not invite 1 of 2 customers: it does not accept the e-mail address
    (3.7)."
    """
    failed = [status for status in invitations.values() if status >= "3"]
    if not failed:
        return ""
    total = len(invitations)
    who = "the customer" if total == 1 else f"{len(failed)} of {total} customers"
    causes = [f"{REASONS.get(status, 'it refused')} ({status})" for status in sorted(set(failed))]
    return f"The calendar server did not invite {who}: {', '.join(causes)}."[:MAX_REASON]


@provider_entries.register
class MirroredEntries:
    """Tells it from the last write of each booking, and from the last write to its calendar."""

    def __init__(self, bookings: Collection[Booking]) -> None:
        self.targets = DestinationCalendars(booking.event for booking in bookings)
        calendars = {self.targets.of(booking.event) for booking in bookings} - {None}
        connections = Connection.objects.filter(calendar__in=calendars)
        self.connections = {row.calendar_id: row for row in connections} if calendars else {}
        rows = WrittenEvent.objects.filter(
            calendar__in=self.connections, event__in={booking.event_id for booking in bookings}
        )
        found = rows if self.connections else ()
        self.written = {(row.event_id, row.calendar_id): row for row in found}

    def is_entered(self, booking: Booking, customer: Customer | None) -> bool:
        calendar = self.targets.of(booking.event)
        connection = self.connections.get(calendar.id) if calendar else None
        if connection is None or connection.problem or not connection.last_write_succeeded:
            return False
        if customer is None:
            return True
        if not booking.event.invite:
            return False
        row = self.written.get((booking.event_id, connection.calendar_id))
        if row is None or row.written_at is None:
            return connection.last_write_invited
        return row.invitations.get(customer.address) in INVITED
