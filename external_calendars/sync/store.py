"""Store synced objects as ExternalObject rows and their occurrences as Event rows."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from availability.models import Event
from common.db.sql import insert_rows
from common.db.updated_at import transaction_start
from common.ical.occurrences import LAST, CalendarOccurrence, UnreadableCalendar
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import RemoteObject

# Recurring events are expanded, and events kept, from PAST ago to AHEAD from now.
PAST, AHEAD = timedelta(days=31), timedelta(days=400)

# PostgreSQL takes 65,535 parameters per statement.
MAX_ROWS_PER_TRANSACTION = 2000
MAX_OCCURRENCES_PER_TRANSACTION = 1000

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
    "expanded_until",
    "problem",
    "problem_since",
)


class ReadObject(NamedTuple):
    """A parsed object with its occurrences.

    problem: why the object can't be read. It then has no occurrences, and its stored UID stays.
    """

    object: RemoteObject
    uid: str
    is_recurring: bool
    occurrences: Sequence[CalendarOccurrence]
    problem: str = ""


def sync_window(now: datetime) -> Window:
    return now - PAST, now + AHEAD


def reading_context(connection: Connection) -> str:
    """Return what affects how texts are read: the resource's zone and e-mail address."""
    resource = connection.calendar.resource
    return f"{resource.timezone} {resource.email or ''}"


def read_all(
    connection: Connection, objects: Iterable[RemoteObject], window: Window
) -> list[ReadObject]:
    """Parse and expand objects, about a millisecond each: call it outside a transaction."""
    return [_read(connection, remote_object, window) for remote_object in objects]


def _read(connection: Connection, one: RemoteObject, window: Window) -> ReadObject:
    resource = connection.calendar.resource
    try:
        reading = PROVIDERS[connection.calendar.provider].event_format.read_object(
            one.text,
            zone=resource.timezone,
            window=window,
            latest=LAST,
            address=resource.email or "",
        )
    except UnreadableCalendar as error:
        return ReadObject(one, _synthetic_uid(one), False, (), str(error)[:200])
    uid = reading.uid or _synthetic_uid(one)
    return ReadObject(one, uid, reading.is_recurring, reading.occurrences)


def _synthetic_uid(one: RemoteObject) -> str:
    """Return a UID for an object without a readable one."""
    return hashlib.sha256(one.href.encode()).hexdigest()


def chunked(reads: Sequence[ReadObject]) -> Iterator[list[ReadObject]]:
    """Yield short parts: up to MAX_OCCURRENCES_PER_TRANSACTION, but at least one object."""
    part: list[ReadObject] = []
    count = 0
    for read in reads:
        if part and count + len(read.occurrences) > MAX_OCCURRENCES_PER_TRANSACTION:
            yield part
            part, count = [], 0
        part.append(read)
        count += len(read.occurrences)
    if part:
        yield part


def store_objects(connection: Connection, reads: Sequence[ReadObject], window: Window) -> None:
    """Store the objects and replace the events of their UIDs, in a few statements.

    Runs in a transaction that holds the resource's lock. Unchanged events keep their rows. Objects
    that mirror a booking's event get no second event.
    """
    before = _rows_of(connection, [read.object.href for read in reads])
    ours = _written_by_us(connection, [read.uid for read in reads])
    time = defaultdict[str, list[CalendarOccurrence]](list)
    rows = []
    for read in reads:
        row = before.get(read.object.href)
        if read.problem:
            rows.append(_unreadable_row(connection, read, row))
            continue
        time[read.uid] += () if read.uid in ours else read.occurrences
        rows.append(_object_row(connection, read, read.uid, read.uid in ours, window[1]))
    now_named = {row.uid for row in rows}
    left = {row.uid for row in before.values()} - now_named
    for uid in _without_object(connection, left, list(before)):
        time[uid] = []
    _replace_events(connection, time)
    ExternalObject.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["connection", "href"],
        update_fields=OBJECT_VALUES,
    )


def delete_objects(connection: Connection, hrefs: Sequence[str]) -> None:
    """Delete objects and their events. Runs in a transaction that holds the resource's lock."""
    rows = _rows_of(connection, hrefs)
    connection.remote_objects.filter(href__in=hrefs).delete()
    uids = {row.uid for row in rows.values()}
    _replace_events(connection, {uid: [] for uid in _without_object(connection, uids, ())})


def _object_row(
    connection: Connection, read: ReadObject, uid: str, is_ours: bool, until: datetime
) -> ExternalObject:
    keeps_text = read.is_recurring or is_ours
    return ExternalObject(
        connection=connection,
        href=read.object.href,
        uid=uid,
        etag=read.object.etag,
        text=read.object.text.replace("\0", "") if keeps_text else "",
        is_recurring=read.is_recurring,
        expanded_until=until if read.is_recurring else None,
    )


def _unreadable_row(
    connection: Connection, read: ReadObject, row: ExternalObject | None
) -> ExternalObject:
    """Return the row of an object that can't be read; `row` is the stored one."""
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
    """Return the UIDs without an object outside the hrefs `without`: an object may have moved."""
    if not uids:
        return set()
    others = connection.remote_objects.filter(uid__in=uids).exclude(href__in=without)
    return set(uids) - set(others.values_list("uid", flat=True))


def events_from(connection: Connection) -> QuerySet[Event]:
    """Return the calendar's events from the provider: all but those of bookings."""
    rows = Event.objects.filter(calendar=connection.pk, bookings=None, main=None)
    return rows.exclude(provider_id="")


def _replace_events(
    connection: Connection, time: Mapping[str, Sequence[CalendarOccurrence]]
) -> None:
    """Replace the events of these UIDs; unchanged ones keep their rows."""
    if not time:
        return
    rows_by_provider_id = defaultdict[str, list[Event]](list)
    for known in events_from(connection).filter(provider_id__in=time):
        rows_by_provider_id[known.provider_id].append(known)
    new: list[Event] = []
    changed: list[Event] = []
    deleted: list[Event] = []
    for uid, occurrences in time.items():
        missing, spare = _unmatched(rows_by_provider_id[uid], occurrences)
        for occurrence in missing:
            row = _take_row(
                spare, occurrence, is_single=len(occurrences) == len(rows_by_provider_id[uid]) == 1
            )
            if row is None:
                calendar = connection.calendar
                row = Event(
                    app_id=calendar.app_id,
                    calendar=calendar,
                    resource_id=calendar.resource_id,
                    provider_id=uid,
                )
                new.append(row)
            else:
                changed.append(row)
            for name, value in zip(VALUES, _values(occurrence), strict=True):
                setattr(row, name, list(value) if name == "participants" else value)
            row.updated_at = transaction_start()
        deleted += spare
    if deleted:
        Event.objects.filter(id__in=[row.id for row in deleted]).delete()
    if changed:
        Event.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=[*VALUES, "updated_at"],
            batch_size=MAX_ROWS_PER_TRANSACTION,
        )
    insert_rows(new)


def _values(one: Event | CalendarOccurrence) -> tuple[Any, ...]:
    found = [getattr(one, name) for name in VALUES]
    return tuple(tuple(value) if isinstance(value, list) else value for value in found)


def _unmatched(
    rows: Sequence[Event], occurrences: Sequence[CalendarOccurrence]
) -> tuple[list[CalendarOccurrence], list[Event]]:
    """Return the occurrences without a row, and the rows without an occurrence."""
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


def _take_row(
    spare: list[Event], occurrence: CalendarOccurrence, *, is_single: bool
) -> Event | None:
    """Take the spare row that the occurrence replaces: one with the same start, or the only one."""
    for place, row in enumerate(spare):
        if is_single or row.start == occurrence.start:
            return spare.pop(place)
    return None
