"""Bookings on their way into the calendars where their owners look."""

import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from availability.models import Calendar
from bookings.models import Booking
from external_calendars.copies import Copy, note_copies
from external_calendars.models import Connection, WrittenEvent
from notifications.breaker import endpoint_of, note_results
from notifications.models import Delivery
from notifications.waking import ask_after_commit, pump_of, wake_after_commit
from scheduling.api.ids import new_id
from scheduling.api.sql import insert_rows

BATCH = 200
WRITE = "write"
# It stands there, or its owner has had a say in where: only the booking's next change goes over it.
SETTLED = (
    WrittenEvent.WRITTEN,
    WrittenEvent.MOVED_THERE,
    WrittenEvent.REMOVED_THERE,
    WrittenEvent.REFUSED,
)


def plan_missing(calendar: Calendar, *, now: datetime) -> int:
    """Plan a write for every booking to come of the calendar's resource that should stand in it and
    does not, and for every one that stands elsewhere and should not. Returns how many.

    Called when a calendar is connected (again), and when it becomes the resource's primary one, or
    no longer is.
    """
    return sum(
        plan_writes_of(event_ids, now=now)
        for event_ids in _future_events(calendar.resource_id, now)
    )


def plan_writes_of(event_ids: Collection[uuid.UUID], *, now: datetime) -> int:
    """The same for some bookings, by their events."""
    with transaction.atomic():
        copies = [copy for found in note_copies(event_ids).values() for copy in found]
        due = [copy for copy in copies if not (copy.is_wanted and copy.row.state in SETTLED)]
        under_way = _under_way(due)
        return plan_copies([copy for copy in due if _key(copy) not in under_way], now=now)


def plan_copies(copies: Sequence[Copy], *, now: datetime, **content: Any) -> int:
    """Deliveries that no change of a booking has caused. Returns how many."""
    bookings = Booking.objects.in_bulk({copy.booking_id for copy in copies})
    rows = []
    for copy in copies:
        values = copy.delivery_values(now)
        values["content"] |= content
        booking = bookings[copy.booking_id]
        rows.append(
            Delivery(
                id=new_id(),
                app_id=booking.app_id,
                booking=booking,
                kind=WRITE,
                version=booking.reschedules,
                due_at=now,
                next_at=now,
                created_at=now,
                **values,
            )
        )
    if rows:
        insert_rows(rows)
        wake_after_commit(rows, now=now)
    return len(rows)


def hurry(connection: Connection, *, address: str, now: datetime) -> None:
    """Its server answers again, or is another one: what was to be tried again later is due now,
    behind no open breaker. Not inside a transaction that has locked the connection.

    Only its own writes: what holds up those to others on the same server need not be over.
    """
    endpoint = endpoint_of(address)
    with transaction.atomic():
        note_results(endpoint, [(True, 0.0)], now)
    later = Delivery.objects.filter(
        type=Delivery.CALENDAR,
        state=Delivery.SCHEDULED,
        next_at__gt=now,
        tries__gt=0,
        content__calendar_id=str(connection.pk),
    )
    if later.update(next_at=now, endpoint=endpoint):
        ask_after_commit(pump_of(Delivery.CALENDAR))


def _future_events(resource_id: uuid.UUID, now: datetime) -> Iterator[Sequence[uuid.UUID]]:
    """The events of the resource's live bookings that have not ended, some at a time; of a mutual
    booking the main one, whose companion may be the resource's."""
    live = Booking.objects.filter(
        completes_at__isnull=False, owner_booking=None, deleted_at=None, event__end__gt=now
    )
    own = live.filter(event__resource=resource_id)
    shared = live.filter(event__companions__resource=resource_id)
    ids = sorted({*own.values_list("event", flat=True), *shared.values_list("event", flat=True)})
    for first in range(0, len(ids), BATCH):
        yield ids[first : first + BATCH]


def _key(copy: Copy) -> tuple[str, str]:
    return str(copy.row.event_id), str(copy.row.calendar_id)


def _under_way(copies: Sequence[Copy]) -> set[tuple[str, str]]:
    """Event and calendar of writes that no worker has taken yet: they do what is right then."""
    waiting = Delivery.objects.filter(
        type=Delivery.CALENDAR,
        state=Delivery.SCHEDULED,
        booking__in={copy.booking_id for copy in copies},
    )
    contents = waiting.values_list("content", flat=True)
    return {(content["event_id"], content["calendar_id"]) for content in contents}
