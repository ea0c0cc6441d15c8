"""What recurs has no end, its events have: as days pass they are laid out further, from texts that
are kept, without asking anybody."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from availability.models import Event
from availability.placement import lock_resources
from external_calendars.keeping import (
    PAST,
    Read,
    Window,
    events_from,
    portions,
    read_all,
    store,
    window_at,
)
from external_calendars.models import Connection, ExternalObject
from external_calendars.providers.base import Object

BATCH = 100
# What is laid out a little less far is let be until the next day.
SLACK = timedelta(hours=12)
OLD_AT_ONCE = 1000


def lay_out_further(now: datetime) -> Iterator[int]:
    """Bring all that recurs up to the window of `now`, a batch of one calendar at a time; how many
    objects each had. May be left at any time and taken up later."""
    window = window_at(now)
    waiting = ExternalObject.objects.filter(
        is_recurring=True,
        laid_out_until__lt=window[1] - SLACK,
        connection__calendar__deleted_at=None,
        connection__calendar__resource__deleted_at=None,
    )
    after = 0
    while (first := waiting.filter(id__gt=after).order_by("id").first()) is not None:
        rows = waiting.filter(id__gte=first.id, connection=first.connection_id).order_by("id")
        after = first.id
        few = list(rows[:BATCH])
        _lay_out(few, window)
        yield len(few)


def _lay_out(rows: list[ExternalObject], window: Window) -> None:
    connection = Connection.objects.select_related("calendar__resource").get(
        pk=rows[0].connection_id
    )
    objects = [Object(row.href, row.etag, row.text) for row in rows]
    reads = read_all(connection, objects, window)
    for part in portions(reads):
        with transaction.atomic():
            if not lock_resources([connection.calendar.resource_id]):
                return
            store(connection, _unchanged(connection, part), window)


def _unchanged(connection: Connection, reads: Sequence[Read]) -> list[Read]:
    """Without what was fetched meanwhile, and so is laid out already, or was removed."""
    rows = connection.remote_objects.filter(href__in=[read.object.href for read in reads])
    etags = dict(rows.values_list("href", "etag"))
    return [read for read in reads if etags.get(read.object.href) == read.object.etag]


def forget_old_events(now: datetime) -> Iterator[int]:
    """Remove what came from elsewhere and ended before the window; how many at a time."""
    for connection in Connection.objects.all().iterator():
        old = events_from(connection).filter(end__lt=now - PAST).order_by("start")
        while ids := list(old.values_list("id", flat=True)[:OLD_AT_ONCE]):
            Event.objects.filter(id__in=ids).delete()
            yield len(ids)
