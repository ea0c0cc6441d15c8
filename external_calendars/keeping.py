"""What was read of a calendar elsewhere, put into rows: its objects, and its time as events."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from availability.models import Event
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers.base import Object
from external_calendars.reading import LAST, Occurrence, Unreadable, read_object
from scheduling.api.changes import transaction_start
from scheduling.api.sql import insert_rows

# What recurs is laid out, and events are kept, from so long ago to so far ahead.
PAST, AHEAD = timedelta(days=31), timedelta(days=400)

# A statement takes 65,535 parameters.
ROWS_AT_ONCE = 2000
OCCURRENCES_AT_ONCE = 1000

Window = tuple[datetime, datetime]
VALUES = (
    "start",
    "end",
    "all_day",
    "start_date",
    "end_date",
    "what",
    "where",
    "description",
    "participants",
    "busy",
)
OBJECT_VALUES = (
    "uid",
    "etag",
    "text",
    "is_recurring",
    "laid_out_until",
    "problem",
    "problem_since",
)


class Read(NamedTuple):
    """An object with what it came to; `problem` says why it could not be read, then it came to
    nothing and what is known of it stays."""

    object: Object
    uid: str
    is_recurring: bool
    occurrences: Sequence[Occurrence]
    problem: str = ""


def window_at(now: datetime) -> Window:
    return now - PAST, now + AHEAD


def reader_of(connection: Connection) -> str:
    """On whose wall clock, and as whose, its texts are read."""
    resource = connection.calendar.resource
    return f"{resource.timezone} {resource.email or ''}"


def read_all(connection: Connection, objects: Iterable[Object], window: Window) -> list[Read]:
    """Takes a millisecond for each, so it is done outside of transactions."""
    return [_read(connection, one, window) for one in objects]


def _read(connection: Connection, one: Object, window: Window) -> Read:
    resource = connection.calendar.resource
    try:
        reading = read_object(
            one.text,
            zone=resource.timezone,
            window=window,
            latest=LAST,
            address=resource.email or "",
        )
    except Unreadable as error:
        return Read(one, _stand_in(one), False, (), str(error)[:200])
    uid = reading.uid or _stand_in(one)
    return Read(one, uid, reading.is_recurring, reading.occurrences)


def _stand_in(one: Object) -> str:
    """For an object without a UID, or with one that can't be read."""
    return hashlib.sha256(one.href.encode()).hexdigest()


def portions(reads: Sequence[Read]) -> Iterator[list[Read]]:
    """Parts of at most a thousand occurrences, or one object, so that transactions stay short."""
    part: list[Read] = []
    count = 0
    for read in reads:
        if part and count + len(read.occurrences) > OCCURRENCES_AT_ONCE:
            yield part
            part, count = [], 0
        part.append(read)
        count += len(read.occurrences)
    if part:
        yield part


def store(connection: Connection, reads: Sequence[Read], window: Window) -> None:
    """Bring the objects' rows and their UIDs' events to what was read, in a few statements.

    Runs in a transaction that holds the resource's lock. Rows that say the same already stay as
    they are. The events of bookings that we wrote there are not doubled.
    """
    before = _rows_of(connection, [read.object.href for read in reads])
    ours = _written_by_us(connection, [read.uid for read in reads])
    time = defaultdict[str, list[Occurrence]](list)
    rows = []
    for read in reads:
        row = before.get(read.object.href)
        if read.problem:
            rows.append(_unread_row(connection, read, row))
            continue
        time[read.uid] += () if read.uid in ours else read.occurrences
        rows.append(_object_row(connection, read, read.uid, read.uid in ours, window[1]))
    now_named = {row.uid for row in rows}
    left = {row.uid for row in before.values()} - now_named
    for uid in _without_object(connection, left, list(before)):
        time[uid] = []
    _bring_events(connection, time)
    ExternalObject.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["connection", "href"],
        update_fields=OBJECT_VALUES,
    )


def forget(connection: Connection, hrefs: Sequence[str]) -> None:
    """Objects that are gone, with their events; in a transaction that holds the resource's lock."""
    rows = _rows_of(connection, hrefs)
    connection.remote_objects.filter(href__in=hrefs).delete()
    uids = {row.uid for row in rows.values()}
    _bring_events(connection, {uid: [] for uid in _without_object(connection, uids, ())})


def _object_row(
    connection: Connection, read: Read, uid: str, is_ours: bool, until: datetime
) -> ExternalObject:
    keeps_text = read.is_recurring or is_ours
    return ExternalObject(
        connection=connection,
        href=read.object.href,
        uid=uid,
        etag=read.object.etag,
        text=read.object.text.replace("\0", "") if keeps_text else "",
        is_recurring=read.is_recurring,
        laid_out_until=until if read.is_recurring else None,
    )


def _unread_row(connection: Connection, read: Read, row: ExternalObject | None) -> ExternalObject:
    """Of one that can't be read; `row` is what was known of it."""
    return ExternalObject(
        connection=connection,
        href=read.object.href,
        uid=row.uid if row else read.uid,
        etag=read.object.etag,
        problem=read.problem,
        problem_since=(row and row.problem_since) or timezone.now(),
    )


def _rows_of(connection: Connection, hrefs: Collection[str]) -> dict[str, ExternalObject]:
    rows = connection.remote_objects.filter(href__in=hrefs)
    rows = rows.only("connection", "href", "uid", "problem_since")
    return {row.href: row for row in rows}


def _written_by_us(connection: Connection, uids: Collection[str]) -> set[str]:
    rows = WrittenEvent.objects.filter(calendar=connection.pk, uid__in=uids)
    return set(rows.values_list("uid", flat=True))


def _without_object(
    connection: Connection, uids: Collection[str], without: Collection[str]
) -> set[str]:
    """Of the UIDs those that no object but those at these hrefs has: one may have moved."""
    if not uids:
        return set()
    others = connection.remote_objects.filter(uid__in=uids).exclude(href__in=without)
    return set(uids) - set(others.values_list("uid", flat=True))


def events_from(connection: Connection) -> Any:
    """The calendar's events that came from there: all but those of bookings."""
    rows = Event.objects.filter(calendar=connection.pk, bookings=None, main=None)
    return rows.exclude(provider_id="")


def _bring_events(connection: Connection, time: Mapping[str, Sequence[Occurrence]]) -> None:
    """The events of these UIDs become these; those that are so already keep their rows."""
    if not time:
        return
    there = defaultdict[str, list[Event]](list)
    for row in events_from(connection).filter(provider_id__in=time):
        there[row.provider_id].append(row)
    new: list[Event] = []
    changed: list[Event] = []
    gone: list[Event] = []
    for uid, occurrences in time.items():
        missing, spare = _differing(there[uid], occurrences)
        for occurrence in missing:
            row = _take_row(spare, occurrence, is_single=len(occurrences) == len(there[uid]) == 1)
            if row is None:
                calendar = connection.calendar
                row = Event(calendar=calendar, resource_id=calendar.resource_id, provider_id=uid)
                new.append(row)
            else:
                changed.append(row)
            for name, value in zip(VALUES, _values(occurrence), strict=True):
                setattr(row, name, list(value) if name == "participants" else value)
            row.updated_at = transaction_start()
        gone += spare
    if gone:
        Event.objects.filter(id__in=[row.id for row in gone]).delete()
    if changed:
        Event.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=[*VALUES, "updated_at"],
            batch_size=ROWS_AT_ONCE,
        )
    insert_rows(new)


def _values(one: Event | Occurrence) -> tuple[Any, ...]:
    found = [getattr(one, name) for name in VALUES]
    return tuple(tuple(value) if isinstance(value, list) else value for value in found)


def _differing(
    rows: Sequence[Event], occurrences: Sequence[Occurrence]
) -> tuple[list[Occurrence], list[Event]]:
    """What has no row yet, and the rows that nothing needs as they are."""
    unused = defaultdict[tuple[Any, ...], list[Event]](list)
    for row in rows:
        unused[_values(row)].append(row)
    missing = []
    for occurrence in occurrences:
        same = unused.get(_values(occurrence))
        if same:
            same.pop()
        else:
            missing.append(occurrence)
    return missing, [row for few in unused.values() for row in few]


def _take_row(spare: list[Event], occurrence: Occurrence, *, is_single: bool) -> Event | None:
    """The row of what the occurrence was before: one that starts as it does, or the only one."""
    for place, row in enumerate(spare):
        if is_single or row.start == occurrence.start:
            return spare.pop(place)
    return None
