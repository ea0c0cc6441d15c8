"""The state of a booking's mirrored events, as text."""

from typing import NamedTuple

from django.db.models import Q

from availability.models import Calendar
from bookings.models import Booking
from external_calendars.models import WrittenEvent
from office.base.dates import moment_words

# The text before the calendar's name.
WORDS = {
    WrittenEvent.PENDING: "Will be written to ",
    WrittenEvent.WRITTEN: "Written to ",
    WrittenEvent.REMOVED: "Removed from ",
    # The row's reason says what was changed at the provider.
    WrittenEvent.MOVED_THERE: "In ",
    WrittenEvent.REMOVED_THERE: "In ",
    WrittenEvent.REFUSED: "In ",
}


class MirrorStatus(NamedTuple):
    """A sentence around a link to the calendar; `is_bad`: something went wrong."""

    before: str
    calendar: Calendar
    after: str
    is_bad: bool


def mirror_status_of(booking: Booking) -> list[MirrorStatus]:
    """Return the status of the booking's event and its companions: one query."""
    of_it = Q(event=booking.event_id) | Q(event__main=booking.event_id)
    rows = WrittenEvent.objects.filter(of_it).select_related("calendar__resource")
    return [_in_words(row) for row in rows.order_by("id")]


def _in_words(row: WrittenEvent) -> MirrorStatus:
    after = ""
    if row.written_at and row.state == WrittenEvent.WRITTEN:
        after = f", {moment_words(row.written_at)}"
    if row.reason:
        after += f": {row.reason}"
    return MirrorStatus(WORDS[row.state], row.calendar, after, bool(row.reason))
