"""Queries for the rows that free time is computed from, read as integers, not as model objects.

Times are returned as epoch seconds. PostgreSQL packs a resource's events into one binary column,
which is read four times as fast as rows (docs/benchmarks.md); SQLite has no such function.
"""

import sys
import uuid
from array import array
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F, Q

from availability.core.busy_items import Buffers, BusyItem, blocked_span
from availability.core.periods import MAX_DAYS, Period, PeriodLimit, local_periods, period_span
from availability.models import VISIT, Event, Hold, Resource
from availability.search.staleness import STALE_AFTER, stale_before
from common.db.sql import datetime_param, id_in_sql, id_param, to_uuid
from common.time.instants import to_aware, to_datetime

Pairs = list[tuple[int, int]]

YEAR_2000 = 946_684_800  # 2000-01-01T00:00:00Z, in epoch seconds

# The parts in braces are constants, never input of a client. Stale calendars are rare and found by
# the index calendar_connected.
_RESOURCES = """
SELECT resource.id, resource.name, resource.timezone, resource.capacity, resource.longest_buffer,
    resource.party_min, resource.party_max,
    CAST(resource.availability_constraints AS text),
    CAST(schedule.availability_constraints AS text), late.id, late.name, late.synced_at
FROM availability_resource resource {joined}
LEFT JOIN availability_schedule schedule ON schedule.id = resource.schedule_id
LEFT JOIN availability_calendar late ON late.resource_id = resource.id
    AND {late}
WHERE resource.app_id = %s AND resource.deleted_at IS NULL AND {only}
ORDER BY {order}, late.name, late.id
"""
_OF_PROJECT = _RESOURCES.format(
    joined="JOIN availability_projectresource own ON own.resource_id = resource.id",
    late=STALE_AFTER,
    only="own.project_id = %s",
    order="own.position, own.id",
)
_ZONES_OF_PROJECT = """
SELECT CAST(resource.id AS text), resource.timezone FROM availability_projectresource own
JOIN availability_resource resource ON resource.id = own.resource_id
WHERE own.project_id = %s AND resource.app_id = %s AND resource.deleted_at IS NULL
ORDER BY own.position, own.id
"""
# Events that block, and holds that are neither used nor expired.
_TAKEN = """
SELECT {event} FROM availability_event
WHERE busy AND resource_id {among} AND "end" > %s AND start < %s {more} {group}
UNION ALL
SELECT {hold} FROM availability_hold
WHERE used_at IS NULL AND resource_id {among} AND "end" > %s AND start < %s AND expires_at > %s
    {unlike} {group}
"""
_SPAN = 'resource_id, start, "end"'
# Not sorted: an ORDER BY would double the time of the query. The index returns the events of a
# resource by their end, so Python sorts a list that is nearly in order.
_PACKED = """resource_id, string_agg(timestamptz_send(start) || timestamptz_send("end"), '')"""
_ROWS = """
SELECT resource_id, CAST(strftime('%%s', start) AS INTEGER),
    CAST(strftime('%%s', "end") AS INTEGER)
FROM ({taken}) AS taken ORDER BY start
"""
# The buffers in one column of eight bytes, each increased by one: 0 is none.
_PACKED_WITH_BUFFERS = """resource_id, string_agg(timestamptz_send(start) || timestamptz_send("end")
    || int4send(COALESCE(buffer_before + 1, 0)) || int4send(COALESCE(buffer_after + 1, 0)), '')"""
_SPAN_WITH_BUFFERS = f"{_SPAN}, buffer_before, buffer_after"
_ROWS_WITH_BUFFERS = """
SELECT resource_id, CAST(strftime('%%s', start) AS INTEGER),
    CAST(strftime('%%s', "end") AS INTEGER), buffer_before, buffer_after
FROM ({taken}) AS taken
"""
# A hold or the event of a booking takes one unit of the capacity. Any other event closes the
# resource. The event of a booking with allow_double_bookings is known by its booking alone.
_CAPACITY = """
CASE WHEN resource.capacity > 1 AND (takes_unit OR EXISTS (
    SELECT 1 FROM bookings_booking AS booking WHERE booking.event_id = taken.booked_id
)) THEN resource.capacity ELSE 1 END
"""
# Every resource has a row, even if nothing is taken: its longest buffer has to be known.
_NAMED_FROM = """, buffer_before, buffer_after
FROM availability_resource AS resource
LEFT JOIN ({taken}) AS taken ON taken.resource_id = resource.id
WHERE resource.id {among} ORDER BY start, taken.id
"""
_NAMED = """
SELECT resource.id, resource.longest_buffer, CAST(EXTRACT(epoch FROM start) AS bigint),
    CAST(EXTRACT(epoch FROM "end") AS bigint), type, taken.id,
""" + (_CAPACITY + _NAMED_FROM)  # nosec B608
_NAMED_ROWS = """
SELECT resource.id, resource.longest_buffer, CAST(strftime('%%s', start) AS INTEGER),
    CAST(strftime('%%s', "end") AS INTEGER), type, taken.id,
""" + (_CAPACITY + _NAMED_FROM)
_EVENT_NAMES = f"""{_SPAN_WITH_BUFFERS}, 'event' AS type, id, exclusive OR unit > 0 AS takes_unit,
    COALESCE(main_id, id) AS booked_id"""
_HOLD_NAMES = f"{_SPAN_WITH_BUFFERS}, 'hold' AS type, COALESCE(main_id, id), TRUE, NULL"


class StaleCalendar(NamedTuple):
    """A stale connected calendar. synced_at: its last complete sync (aware); None: never synced."""

    id: uuid.UUID
    name: str
    synced_at: datetime | None


class ResourceRow(NamedTuple):
    """A resource with its constraints and its stale calendars.

    longest_buffer: seconds; no booking was made with a longer one. constraints: as JSON. schedule:
    the constraints of its schedule, as JSON; None without one.
    """

    id: uuid.UUID
    name: str
    zone: str
    capacity: int
    longest_buffer: int
    party_min: int | None
    party_max: int | None
    constraints: str
    schedule: str | None
    stale_calendars: tuple[StaleCalendar, ...] = ()


def fetch_resources(
    app_id: uuid.UUID, ids: Collection[uuid.UUID], *, now: datetime
) -> list[ResourceRow]:
    """Return the app's resources of these ids with constraints and stale calendars, in one query.

    Unknown ids are left out. now: the instant for which staleness is determined.
    """
    sql, params = id_in_sql(ids)
    statement = _RESOURCES.format(
        joined="", late=STALE_AFTER, only=f"resource.id {sql}", order="resource.id"
    )
    params = [datetime_param(stale_before(now)), id_param(app_id), *params]
    rows_by_id = {row.id: row for row in _resource_rows(statement, params)}
    return [rows_by_id[identifier] for identifier in ids if identifier in rows_by_id]


def fetch_project_resources(
    app_id: uuid.UUID, project_id: uuid.UUID, *, now: datetime
) -> list[ResourceRow]:
    """Return the project's resources in its order, as `fetch_resources`. One query."""
    stale = datetime_param(stale_before(now))
    return _resource_rows(_OF_PROJECT, [stale, id_param(app_id), id_param(project_id)])


def fetch_parties(
    app_id: uuid.UUID, ids: Collection[uuid.UUID]
) -> dict[uuid.UUID, tuple[int, int]]:
    """Return how many people each of the app's resources suits; those for any number are left out.

    One query.
    """
    rows = Resource.objects.for_app(app_id).filter(id__in=ids, party_max__isnull=False)
    found = rows.order_by().values_list("id", "party_min", "party_max")
    return {resource_id: (least or 1, most or 1) for resource_id, least, most in found}


def fetch_project_resource_zones(app_id: uuid.UUID, project_id: uuid.UUID) -> list[tuple[str, str]]:
    """Return the id, as text, and the time zone of each resource of the project, in its order.

    One query. 10,000 UUID objects would cost more than the query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ZONES_OF_PROJECT, [id_param(project_id), id_param(app_id)])
        return cursor.fetchall()


def _resource_rows(statement: str, params: list) -> list[ResourceRow]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows = cursor.fetchall()
    rows_by_id: dict[object, tuple[list[Any], list[StaleCalendar]]] = {}
    for resource_id, *columns, late_id, late_name, synced_at in rows:
        _, late = rows_by_id.setdefault(resource_id, (columns, []))
        if late_id is not None:
            late.append(
                StaleCalendar(to_uuid(late_id), late_name, synced_at and to_aware(synced_at))
            )
    return [
        ResourceRow._make([to_uuid(resource_id), *columns, tuple(late)])
        for resource_id, (columns, late) in rows_by_id.items()
    ]


class TimeSpan(NamedTuple):
    """A half-open range in epoch seconds."""

    start: int
    end: int


def busy_sql(
    resource_ids: Collection[uuid.UUID],
    span: TimeSpan,
    *,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
    event: str = _SPAN,
    hold: str = _SPAN,
    group: str = "",
) -> tuple[str, list]:
    """Return the statement, with parameters, for what blocks the resources and overlaps `span`.

    event, hold: the columns of each. now: holds that have expired by then do not block. without:
    ids of events and holds to ignore.
    """
    sql, ids = id_in_sql(resource_ids)
    found = [*ids, *(datetime_param(to_datetime(instant)) for instant in span)]
    unlike = ""
    own: list[Any] = []
    if without:
        own_sql, own = id_in_sql(without)
        unlike = f"AND NOT id {own_sql}"
    more = f"AND NOT all_day {unlike}" if ignore_all_day else unlike
    statement = _TAKEN.format(
        among=sql, more=more, unlike=unlike, event=event, hold=hold, group=group
    )
    return statement, [*found, *own, *found, datetime_param(now), *own]


def fetch_busy(
    resource_ids: Collection[uuid.UUID],
    span: TimeSpan,
    *,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, Pairs]:
    """Return busy spans that overlap `span`, by resource id, sorted by start. One query."""
    packs = connection.vendor == "postgresql"
    columns = {"event": _PACKED, "hold": _PACKED, "group": "GROUP BY resource_id"} if packs else {}
    statement, params = busy_sql(
        resource_ids, span, now=now, ignore_all_day=ignore_all_day, without=without, **columns
    )
    with connection.cursor() as cursor:
        cursor.execute(statement if packs else _ROWS.format(taken=statement), params)
        rows = cursor.fetchall()
    return _unpack_all(rows) if packs else _group_by_resource(rows)


def _unpack_all(rows: list[tuple[uuid.UUID, bytes]]) -> dict[uuid.UUID, Pairs]:
    """Unpack the rows; a resource may have two, one of events and one of holds."""
    pairs_by_resource: dict[uuid.UUID, Pairs] = {}
    for resource_id, packed in rows:
        pairs_by_resource.setdefault(resource_id, []).extend(_unpack(packed))
    for pairs in pairs_by_resource.values():
        pairs.sort()
    return pairs_by_resource


def _unpack(packed: bytes) -> Pairs:
    """Decode PostgreSQL's binary instants (big-endian microseconds since 2000, UTC) into pairs."""
    micros = array("q", packed)
    if sys.byteorder == "little":
        micros.byteswap()
    instants = iter([micro // 1_000_000 + YEAR_2000 for micro in micros])
    return list(zip(instants, instants, strict=True))


def _group_by_resource(rows: list[tuple[str, int, int]]) -> dict[uuid.UUID, Pairs]:
    by_hex: dict[str, Pairs] = {}
    for resource_hex, start, end in rows:
        by_hex.setdefault(resource_hex, []).append((start, end))
    return {uuid.UUID(resource_hex): pairs for resource_hex, pairs in by_hex.items()}


def fetch_blocked_times(
    resource_ids: Collection[uuid.UUID],
    span: TimeSpan,
    buffers: Buffers,
    *,
    longest_buffer: int,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, Pairs]:
    """Return where no booking with `buffers` may lie, by resource id, sorted by start.

    That is busy time with the buffers of both sides, and may overlap. One query.

    longest_buffer: no booking of the resources was made with a longer one.
    """
    packs = connection.vendor == "postgresql"
    columns = _PACKED_WITH_BUFFERS if packs else _SPAN_WITH_BUFFERS
    statement, params = busy_sql(
        resource_ids,
        widen_span(span, max(longest_buffer, buffers.longest)),
        now=now,
        ignore_all_day=ignore_all_day,
        without=without,
        event=columns,
        hold=columns,
        group="GROUP BY resource_id" if packs else "",
    )
    with connection.cursor() as cursor:
        cursor.execute(statement if packs else _ROWS_WITH_BUFFERS.format(taken=statement), params)
        rows = cursor.fetchall()
    pairs_by_resource: dict[uuid.UUID, Pairs] = {}
    for resource_id, *values in rows:
        items = _unpack_with_buffers(values[0]) if packs else [values]
        pairs_by_resource.setdefault(to_uuid(resource_id), []).extend(
            blocked_span(start, end, before, after, buffers) for start, end, before, after in items
        )
    for pairs in pairs_by_resource.values():
        pairs.sort()
    return pairs_by_resource


def _unpack_with_buffers(packed: bytes) -> Iterator[tuple[int, int, int | None, int | None]]:
    numbers = array("q", packed)
    if sys.byteorder == "little":
        numbers.byteswap()
    for start, end, both in zip(*[iter(numbers)] * 3, strict=True):
        before, after = both >> 32, both & 0xFFFF_FFFF
        yield (
            start // 1_000_000 + YEAR_2000,
            end // 1_000_000 + YEAR_2000,
            before - 1 if before else None,
            after - 1 if after else None,
        )


def widen_span(span: TimeSpan, by: int) -> TimeSpan:
    return TimeSpan(span.start - by, span.end + by)


def fetch_busy_events(
    resource_ids: Collection[uuid.UUID],
    span: TimeSpan,
    *,
    now: datetime,
    buffers: Buffers | None = None,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, list[BusyItem]]:
    """Like `fetch_busy`, but with the ids of events and holds, for results that name conflicts, and
    with the capacity of the resource where an item takes one unit of it.

    buffers: also what blocks the span only with these or with its own buffers; None: buffers do not
    count. One query; two if an item's own buffers are longer than these.
    """
    kept = {"now": now, "ignore_all_day": ignore_all_day, "without": without}
    if buffers is None:
        rows = _fetch_named(resource_ids, span, **kept)
    else:
        rows = _fetch_named(resource_ids, widen_span(span, buffers.longest), **kept)
        longest = max((row[1] for row in rows), default=0)
        if longest > buffers.longest:
            rows = _fetch_named(resource_ids, widen_span(span, longest), **kept)
    items_by_resource: dict[uuid.UUID, list[BusyItem]] = {}
    for resource_id, _, start, end, type_, identifier, capacity, before, after in rows:
        if start is None:
            continue
        busy = BusyItem(start, end, type_, to_uuid(identifier), capacity)
        if buffers is not None:
            busy = busy._replace(before=before, after=after)
        items_by_resource.setdefault(to_uuid(resource_id), []).append(busy)
    return items_by_resource


def has_more_busy_events(resource_ids: Collection[uuid.UUID], span: TimeSpan, *, than: int) -> bool:
    """Whether more than so many events block the resources in the span."""
    events = Event.objects.filter(resource_id__in=resource_ids, busy=True).order_by()
    overlapping = events.overlapping(to_datetime(span.start), to_datetime(span.end))
    return overlapping[: than + 1].count() > than


def _fetch_named(
    resource_ids: Collection[uuid.UUID], span: TimeSpan, **kept: Any
) -> list[tuple[Any, ...]]:
    taken, params = busy_sql(resource_ids, span, event=_EVENT_NAMES, hold=_HOLD_NAMES, **kept)
    among, ids = id_in_sql(resource_ids)
    statement = _NAMED if connection.vendor == "postgresql" else _NAMED_ROWS
    with connection.cursor() as cursor:
        cursor.execute(statement.format(taken=taken, among=among), [*params, *ids])
        return cursor.fetchall()


def fetch_starts(
    project_id: uuid.UUID,
    span: TimeSpan,
    *,
    now: datetime,
    without: Collection[uuid.UUID] = (),
) -> list[int]:
    """Return when bookings of the project that block, and lasting holds, start in the span: once
    for each unit, not for further resources; a visit at its first step. One query.
    """
    # By the end too, for the index of the project's events.
    at = {"start__gte": to_datetime(span.start), "start__lt": to_datetime(span.end)}
    ours = Q(project_id=project_id, end__gt=at["start__gte"], **at) & ~Q(id__in=without)
    events = Event.objects.filter(ours, Q(main=None) | Q(is_further_unit=True), busy=True)
    first_steps = Event.objects.filter(ours, main__step=VISIT, start=F("main__start"), busy=True)
    is_unit = Q(main__resource=F("resource"), step=None)
    holds = Hold.objects.filter(ours, Q(main=None) | is_unit, used_at=None, expires_at__gt=now)
    rows = (each.order_by().values_list("id", "start") for each in (events, holds))
    visits = first_steps.order_by().values_list("main_id", "start").distinct()
    return [int(start.timestamp()) for _, start in visits.union(*rows, all=True)]


PeriodCounts = dict[uuid.UUID, dict[Period, int]]


def fetch_booking_counts_per_period(
    zones: Mapping[uuid.UUID, str],
    span: TimeSpan,
    units: Collection[str],
    *,
    project_id: uuid.UUID,
    now: datetime,
    without: Collection[uuid.UUID] = (),
) -> PeriodCounts:
    """Return the project's bookings per resource and local period that overlaps `span`. One query.

    units: of the periods. Counts bookings that block, completed bookings, and holds not expired at
    `now`, in every period that each overlaps. without: ids of events and holds to ignore.
    """
    # No local period that overlaps the span extends further.
    beyond = timedelta(days=max(MAX_DAYS[unit] for unit in units) + 7)
    start, end = to_datetime(span.start) - beyond, to_datetime(span.end) + beyond
    ours = Q(project_id=project_id, resource_id__in=list(zones)) & ~Q(id__in=without)
    events = Event.objects.filter(ours).overlapping(start, end).order_by()
    holds = Hold.objects.filter(
        ours, used_at=None, expires_at__gt=now, start__lt=end, end__gt=start
    ).order_by()
    columns = ("id", "main_id", "step", "resource_id", "start", "end")
    rows = events.filter(busy=True).values_list(*columns)
    counted = rows.union(
        events.of_completed_bookings().without_whole_visits().values_list(*columns),
        holds.values_list(*columns),
        all=True,
    )
    counts: PeriodCounts = {}
    steps: set[tuple[uuid.UUID, uuid.UUID]] = set()
    for row_id, main_id, step, resource_id, start, end in counted:
        if step:
            if (main_id or row_id, resource_id) in steps:
                continue  # several steps of a visit are one booking of their resource
            steps.add((main_id or row_id, resource_id))
        times = int(start.timestamp()), int(end.timestamp())
        add_to_periods(counts.setdefault(resource_id, {}), *times, zones[resource_id], units)
    return counts


def add_to_periods(
    counts: dict[Period, int], start: int, end: int, zone: str, units: Collection[str]
) -> None:
    """Count one more booking in every period that it overlaps."""
    for unit in units:
        for period in local_periods(start, end, zone, unit):
            counts[period] = counts.get(period, 0) + 1


ClosedByUnit = dict[str, Pairs]


def closed_by_limits(
    counts: Mapping[Period, int], zone: str, limits: Collection[PeriodLimit], quantity: int = 1
) -> ClosedByUnit:
    """Return, by unit, the local periods in which a limit allows no more `quantity` bookings, as
    pairs of epoch seconds.
    """
    return {
        unit: [
            period_span(period, zone)
            for period, count in sorted(counts.items())
            if period.unit == unit and count + quantity > most
        ]
        for unit, most in limits
    }
