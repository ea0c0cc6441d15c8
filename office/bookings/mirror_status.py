"""The state of a booking's mirrored events, as text."""

from typing import NamedTuple

from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from bookings.models import Booking
from external_calendars.models import WrittenEvent
from office.base.dates import moment_words
from office.base.message_translations import translate_message

# Translators: a calendar's name, with what was changed there: "In Work: The event was deleted."
_IN = _("In {calendar}")
WORDS = {
    WrittenEvent.PENDING: _("Will be written to {calendar}"),
    WrittenEvent.WRITTEN: _("Written to {calendar}"),
    WrittenEvent.REMOVED: _("Removed from {calendar}"),
    # The row's reason says what was changed at the provider.
    WrittenEvent.MOVED_THERE: _IN,
    WrittenEvent.REMOVED_THERE: _IN,
    WrittenEvent.REFUSED: _IN,
}


class MirrorStatus(NamedTuple):
    """HTML: a sentence with a link to the calendar; `is_bad`: something went wrong."""

    sentence: str
    is_bad: bool


def mirror_status_of(booking: Booking) -> list[MirrorStatus]:
    """Return the status of the booking's event and its companions: one query."""
    condition = Q(event=booking.event_id) | Q(event__main=booking.event_id)
    rows = WrittenEvent.objects.filter(condition).select_related("calendar__resource")
    return [_in_words(row) for row in rows.order_by("id")]


def _in_words(row: WrittenEvent) -> MirrorStatus:
    url = reverse("admin:availability_calendar_change", args=[row.calendar.pk])
    calendar = format_html('<a href="{}">{}</a>', url, row.calendar.name)
    if row.written_at and row.state == WrittenEvent.WRITTEN:
        when = moment_words(row.written_at)
        sentence = format_html(
            gettext("Written to {calendar}, {when}"), calendar=calendar, when=when
        )
    else:
        sentence = format_html(str(WORDS[row.state]), calendar=calendar)
    if row.reason:
        # Translators: the state of a calendar entry, with its reason: "Written to Work: …".
        sentence = format_html(
            gettext("{sentence}: {reason}"),
            sentence=sentence,
            reason=translate_message(row.reason),
        )
    return MirrorStatus(sentence, bool(row.reason))
