"""Where a booking stands in calendars elsewhere, in words."""

from typing import NamedTuple

from django.db.models import Q

from apps_config.days import moment_words
from availability.models import Calendar
from bookings.models import Booking
from external_calendars.models import WrittenEvent

# What comes before the calendar's name.
WORDS = {
    WrittenEvent.PENDING: "Is to be written to ",
    WrittenEvent.WRITTEN: "Stands in ",
    WrittenEvent.REMOVED: "Was taken out of ",
    # Of these the reason says what was done there.
    WrittenEvent.MOVED_THERE: "In ",
    WrittenEvent.REMOVED_THERE: "In ",
    WrittenEvent.REFUSED: "In ",
}


class Copy(NamedTuple):
    """A sentence around the link to a calendar; `is_bad`: it gives a reason for worry."""

    before: str
    calendar: Calendar
    after: str
    is_bad: bool


def copies_of(booking: Booking) -> list[Copy]:
    """Of its event and the events of other resources that go with it: one query."""
    of_it = Q(event=booking.event_id) | Q(event__main=booking.event_id)
    rows = WrittenEvent.objects.filter(of_it).select_related("calendar__resource")
    return [_in_words(row) for row in rows.order_by("id")]


def _in_words(row: WrittenEvent) -> Copy:
    after = ""
    if row.written_at and row.state == WrittenEvent.WRITTEN:
        after = f" since {moment_words(row.written_at)}"
    if row.reason:
        after += f": {row.reason}"
    return Copy(WORDS[row.state], row.calendar, after, bool(row.reason))
