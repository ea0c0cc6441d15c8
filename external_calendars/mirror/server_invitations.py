"""Whom the servers of connected calendars have invited (RFC 6638), and who needs an e-mail for it.

An e-mail leaves before the write of its change. It has no calendar file only for people who get the
entry for certain: a second entry has the same UID and replaces the first, a missing one is lost.
"""

from collections.abc import Collection, Mapping

from availability.reserve.destination_calendar import DestinationCalendars
from bookings.models import Booking, Customer
from common.messages import Message
from external_calendars.models import Connection, WrittenEvent
from notifications.mail.provider_entries import provider_entries

# SCHEDULE-STATUS of an attendee (RFC 6638 3.2.9): pending, sent, delivered; of Xandikos: delivered.
INVITED = frozenset({"1.0", "1.1", "1.2", "2.0"})
# Why the server has not invited an attendee: by the status.
UNKNOWN, UNDELIVERED = (
    Message("it does not accept the e-mail address"),
    Message("it could not deliver the invitation"),
)
REASONS = {"3.7": UNKNOWN, "5.1": UNDELIVERED, "5.2": UNDELIVERED}
REFUSED = Message("it refused the invitation")


def all_invited(invitations: Mapping[str, str]) -> bool:
    return bool(invitations) and INVITED.issuperset(invitations.values())


def invitation_problem(invitations: Mapping[str, str]) -> str:
    """Return a sentence about attendees that the server has not invited, "" without any."""
    failed = [status for status in invitations.values() if status >= "3"]
    if not failed:
        return ""
    reason = REASONS.get(max(failed), REFUSED)
    if len(invitations) == 1:
        return Message(
            "The calendar server did not invite the customer: %(reason)s.", reason=reason
        )
    count, total = len(failed), len(invitations)
    return Message(
        "The calendar server did not invite %(count)s of %(total)s customers: %(reason)s.",
        count=count,
        total=total,
        reason=reason,
    )


@provider_entries.register
class MirroredEntries:
    """Reads it from the last write of each booking, and from the last write to its calendar."""

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

    def provider_uid(self, booking: Booking) -> str:
        calendar = self.targets.of(booking.event)
        row = self.written.get((booking.event_id, calendar.id)) if calendar else None
        return row.uid if row else ""

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
