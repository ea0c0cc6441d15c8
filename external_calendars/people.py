"""People's data in connected calendars: what was written there is written anew without them."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from bookings.people import Erasure, hears_of_erasures
from external_calendars.copies import note_copies
from external_calendars.models import ExternalObject, WrittenEvent
from external_calendars.writing import plan_copies

GONE = (WrittenEvent.REMOVED, WrittenEvent.REMOVED_THERE)


@hears_of_erasures
def forget_people(erasure: Erasure) -> None:
    """Plan the copies of the bookings anew, and let go of what was read of them.

    Nothing of what stands there is kept: not even the invitation of one whose address is no longer
    known here.
    """
    rows = _copies_of({booking.event_id for booking in erasure.bookings.values()})
    if not rows:
        return
    objects = ExternalObject.objects.filter(
        connection__in={row.calendar_id for row in rows}, uid__in={row.uid for row in rows}
    )
    objects.update(text="", problem="")  # which may quote the text
    known = {row.id for row in rows}
    found = note_copies({row.event.main_id or row.event_id for row in rows})
    copies = [
        copy
        for of_booking in found.values()
        for copy in of_booking
        if copy.is_wanted and copy.row.id in known
    ]
    plan_copies(copies, now=erasure.now, afresh=True)


def _copies_of(event_ids: Collection[UUID]) -> list[WrittenEvent]:
    """Those that stand there, or may: of the events and of their companions."""
    rows = WrittenEvent.objects.filter(Q(event__in=event_ids) | Q(event__main__in=event_ids))
    return list(rows.exclude(state__in=GONE).select_related("event"))
