"""The mirrored event in a booking's API record."""

from collections.abc import Sequence

from django.db.models import Prefetch

from bookings.models import Booking
from bookings.serializers.responses import Include, ProviderEventSerializer, register_include
from common.openapi.component_registry import Json
from external_calendars.models import WrittenEvent


def provider_event(booking: Booking, zone: str) -> Json | None:
    """Return the mirror of the main event; of several (after moves), the existing or last one."""
    rows: Sequence[WrittenEvent] = vars(booking.event)["shown_copies"]
    if not rows:
        return None
    row = max(rows, key=lambda row: (row.state != WrittenEvent.REMOVED, row.id))
    return ProviderEventSerializer.render(row, zone)


_COPIES = Prefetch(
    "event__written",
    WrittenEvent.objects.select_related("calendar"),
    to_attr="shown_copies",
)
register_include(Include("provider_event", ["event"], [_COPIES], write=provider_event))
