"""Erase people's data in connected calendars: rewrite mirrored events without it."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from bookings.privacy import Erasure, on_erasure
from external_calendars.mirror.backfill import plan_copy_writes
from external_calendars.mirror.desired import reconcile_copies
from external_calendars.models import ExternalObject, WrittenEvent

GONE = (WrittenEvent.REMOVED, WrittenEvent.REMOVED_THERE)


@on_erasure.register
def erase_mirrored_people(erasure: Erasure) -> None:
    """Plan new writes of the bookings' mirrored events, and clear the synced texts.

    The writes keep nothing of the provider's objects, not even attendees: their addresses may be
    unknown here.
    """
    event_ids = {booking.event_id for booking in erasure.bookings.values()}
    of_bookings = WrittenEvent.objects.filter(event__in=event_ids)
    of_bookings.exclude(invitations={}, answers=None).update(invitations={}, answers=None)
    rows = _copies_of(event_ids)
    if not rows:
        return
    objects = ExternalObject.objects.filter(
        connection__in={row.calendar_id for row in rows}, uid__in={row.uid for row in rows}
    )
    objects.update(text="", problem="")  # the problem may quote the text
    row_ids = {row.id for row in rows}
    copies_by_event = reconcile_copies({row.event.main_id or row.event_id for row in rows})
    copies = [
        copy
        for of_booking in copies_by_event.values()
        for copy in of_booking
        if copy.is_wanted and copy.row.id in row_ids
    ]
    plan_copy_writes(copies, now=erasure.now, afresh=True)


def _copies_of(event_ids: Collection[UUID]) -> list[WrittenEvent]:
    """Return the mirrors of the events and their companions that exist, or may exist."""
    rows = WrittenEvent.objects.filter(Q(event__in=event_ids) | Q(event__main__in=event_ids))
    return list(rows.exclude(state__in=GONE).select_related("event"))
