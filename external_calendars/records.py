"""How what was written elsewhere is shown with a booking."""

from typing import Any

from django.db.models import Prefetch

from bookings.models import Booking
from bookings.records import Include, fills_include
from external_calendars.models import WrittenEvent
from scheduling.api.instants import format_instant, format_stamp


def provider_event(booking: Booking, zone: str) -> dict[str, Any] | None:
    """The copy of the booking's main event; of one that was moved between calendars the one that
    stands, or was the last to stand."""
    rows = booking.event.shown_copies
    if not rows:
        return None
    row = max(rows, key=lambda one: (one.state != WrittenEvent.REMOVED, one.id))
    return {
        "calendar_id": str(row.calendar_id),
        "provider": row.calendar.provider,
        "provider_id": row.uid,
        "state": row.state,
        "reason": row.reason or None,
        "start": row.start and format_instant(row.start, zone),
        "end": row.end and format_instant(row.end, zone),
        "written_at": row.written_at and format_stamp(row.written_at),
    }


_COPIES = Prefetch(
    "event__written",
    WrittenEvent.objects.select_related("calendar"),
    to_attr="shown_copies",
)
fills_include(Include("provider_event", provider_event, ["event"], [_COPIES]))
