"""Expand recurring events further as days pass, from stored texts, without network requests."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from availability.models import Event
from availability.reserve.events import lock_resources
from external_calendars.models import Connection, ExternalObject
from external_calendars.providers.base import RemoteObject
from external_calendars.sync.store import (
    PAST,
    ReadObject,
    Window,
    chunked,
    events_from,
    read_all,
    store_objects,
    sync_window,
)

BATCH = 100
# Objects expanded slightly less far wait until the next day.
SLACK = timedelta(hours=12)
MAX_DELETED_PER_TRANSACTION = 1000


def expand_further(now: datetime) -> Iterator[int]:
    """Expand all recurring objects up to the window of `now`.

    Yields the number of objects of each batch; a batch belongs to one calendar. May be stopped at
    any time and continued later.
    """
    window = sync_window(now)
    waiting = ExternalObject.objects.filter(
        is_recurring=True,
        expanded_until__lt=window[1] - SLACK,
        connection__calendar__deleted_at=None,
        connection__calendar__resource__deleted_at=None,
    )
    after = 0
    while (first := waiting.filter(id__gt=after).order_by("id").first()) is not None:
        rows = waiting.filter(id__gte=first.id, connection=first.connection_id).order_by("id")
        after = first.id
        few = list(rows[:BATCH])
        _expand(few, window)
        yield len(few)


def _expand(rows: list[ExternalObject], window: Window) -> None:
    connection = Connection.objects.select_related("calendar__resource").get(
        pk=rows[0].connection_id
    )
    objects = [RemoteObject(row.href, row.etag, row.text) for row in rows]
    reads = read_all(connection, objects, window)
    for part in chunked(reads):
        with transaction.atomic():
            if not lock_resources([connection.calendar.resource_id]):
                return
            store_objects(connection, _unchanged(connection, part), window)


def _unchanged(connection: Connection, reads: Sequence[ReadObject]) -> list[ReadObject]:
    """Leave out objects that were removed or fetched (and so expanded) meanwhile."""
    rows = connection.remote_objects.filter(href__in=[read.object.href for read in reads])
    etags = dict(rows.values_list("href", "etag"))
    return [read for read in reads if etags.get(read.object.href) == read.object.etag]


def delete_old_events(now: datetime) -> Iterator[int]:
    """Delete provider events that ended before the window; yield the number of each batch."""
    for connection in Connection.objects.all().iterator():
        old = events_from(connection).filter(end__lt=now - PAST).order_by("start")
        while ids := list(old.values_list("id", flat=True)[:MAX_DELETED_PER_TRANSACTION]):
            Event.objects.filter(id__in=ids).delete()
            yield len(ids)
