"""Plan calendar writes that no change of a booking causes, and retry pending ones."""

import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from availability.models import Calendar
from bookings.models import Booking
from common.db.sql import insert_rows
from common.db.updated_at import transaction_start
from external_calendars.mirror.desired import DesiredCopy, mirror_endpoint, reconcile_copies
from external_calendars.models import Connection, WrittenEvent
from notifications.models import Delivery
from notifications.outbox.circuit_breaker import record_endpoint_results
from notifications.outbox.wakeup import (
    dispatcher_wakeup,
    wake_dispatchers_after_commit,
    wake_up_after_commit,
)

BATCH = 200
MIRROR_WRITE = "write"
# Exists at the provider, or its owner has changed it: only changes of the booking overwrite it.
SETTLED = (
    WrittenEvent.WRITTEN,
    WrittenEvent.MOVED_THERE,
    WrittenEvent.REMOVED_THERE,
    WrittenEvent.REFUSED,
)


def backfill(calendar: Calendar, *, now: datetime) -> int:
    """Plan a write for each future booking of the calendar's resource that is mirrored wrongly.

    That is: missing from its destination calendar, or present in another one. Returns how many.
    Called when a calendar is connected or reconnected, and when it becomes or stops being the
    resource's primary calendar.
    """
    return sum(
        backfill_events(event_ids, now=now)
        for event_ids in _future_events(calendar.resource_id, now)
    )


def backfill_events(event_ids: Collection[uuid.UUID], *, now: datetime) -> int:
    """Plan the missing writes for some bookings, named by their events. Returns how many."""
    with transaction.atomic():
        copies = [
            copy
            for copies_of_event in reconcile_copies(event_ids).values()
            for copy in copies_of_event
        ]
        due = [copy for copy in copies if not (copy.is_wanted and copy.row.state in SETTLED)]
        under_way = _unclaimed_writes(due)
        return plan_copy_writes([copy for copy in due if _key(copy) not in under_way], now=now)


def plan_copy_writes(copies: Sequence[DesiredCopy], *, now: datetime, **content: Any) -> int:
    """Create deliveries that no change of a booking has caused. Returns how many."""
    bookings = Booking.objects.in_bulk({copy.booking_id for copy in copies})
    rows = []
    for copy in copies:
        values = copy.delivery_values(now)
        values["content"] |= content
        booking = bookings[copy.booking_id]
        rows.append(
            Delivery(
                app_id=booking.app_id,
                booking=booking,
                kind=MIRROR_WRITE,
                version=booking.reschedules,
                due_at=transaction_start(),
                next_at=transaction_start(),
                created_at=now,
                **values,
            )
        )
    if rows:
        insert_rows(rows)
        wake_dispatchers_after_commit(rows)
    return len(rows)


def retry_now(connection: Connection, *, now: datetime) -> None:
    """Make the connection's delayed writes due and close its server's circuit breaker.

    Call it when the server answers again or was replaced, and not in a transaction that has locked
    the connection. Other connections' writes to the same server stay delayed: their cause may
    persist.
    """
    endpoint = mirror_endpoint(connection)
    with transaction.atomic():
        record_endpoint_results(endpoint, [(True, 0.0)], now)
    later = Delivery.objects.filter(
        type=Delivery.CALENDAR,
        state=Delivery.SCHEDULED,
        next_at__gt=now,
        tries__gt=0,
        content__calendar_id=str(connection.pk),
    )
    if later.update(next_at=now, endpoint=endpoint):
        wake_up_after_commit(dispatcher_wakeup(Delivery.CALENDAR))


def _future_events(resource_id: uuid.UUID, now: datetime) -> Iterator[Sequence[uuid.UUID]]:
    """Yield batches of ids of main events of the resource's live bookings that have not ended.

    In a mutual booking, the resource's own event may be a companion.
    """
    live = Booking.objects.filter(
        completes_at__isnull=False, owner_booking=None, deleted_at=None, event__end__gt=now
    )
    own = live.filter(event__resource=resource_id)
    shared = live.filter(event__companions__resource=resource_id)
    ids = sorted({*own.values_list("event", flat=True), *shared.values_list("event", flat=True)})
    for first in range(0, len(ids), BATCH):
        yield ids[first : first + BATCH]


def _key(copy: DesiredCopy) -> tuple[str, str]:
    return str(copy.row.event_id), str(copy.row.calendar_id)


def _unclaimed_writes(copies: Sequence[DesiredCopy]) -> set[tuple[str, str]]:
    """Return (event id, calendar id) of unclaimed writes: these will write the latest state."""
    waiting = Delivery.objects.filter(
        type=Delivery.CALENDAR,
        state=Delivery.SCHEDULED,
        booking__in={copy.booking_id for copy in copies},
    )
    contents = waiting.values_list("content", flat=True)
    return {(content["event_id"], content["calendar_id"]) for content in contents}
