"""Queries for the rows that free time is computed from, read as integers, not as model objects.

Times are returned as epoch seconds. PostgreSQL packs a resource's events into one binary column,
which is read four times as fast as rows (docs/benchmarks.md); SQLite has no such function.
"""

import sys
import uuid
from array import array
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q

from availability.core.explain import BusyItem
from availability.core.zones import day_start, local_day
from availability.models import Event, Hold
from availability.staleness import STALE_AFTER, stale_before
from common.instants import to_aware, to_datetime
from common.sql import datetime_param, id_in_sql, id_param, parse_id

Pairs = list[tuple[int, int]]

YEAR_2000 = 946_684_800  # 2000-01-01T00:00:00Z, in epoch seconds

RuleRow = tuple[str, str, str, str]  # name, day, start, end

# The parts in braces are constants, never input of a client. Stale calendars are rare and found by
# the index calendar_connected.
_RESOURCES = """
SELECT resource.id, resource.name, resource.timezone, late.id, late.name, late.synced_at,
    rule.name, rule.day, rule.start, rule."end"
FROM availability_resource resource {joined}
LEFT JOIN availability_constraint rule ON rule.resource_id = resource.id
LEFT JOIN availability_calendar late ON late.resource_id = resource.id
    AND {late}
WHERE resource.app_id = %s AND resource.deleted_at IS NULL AND {only}
ORDER BY {order}, late.name, late.id, rule.position, rule.id
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
_NAMED = """
SELECT resource_id, CAST(EXTRACT(epoch FROM start) AS bigint),
    CAST(EXTRACT(epoch FROM "end") AS bigint), type, id
FROM ({taken}) AS taken ORDER BY start, id
"""
_NAMED_ROWS = """
SELECT resource_id, CAST(strftime('%%s', start) AS INTEGER),
    CAST(strftime('%%s', "end") AS INTEGER), type, id
FROM ({taken}) AS taken ORDER BY start, id
"""
_EVENT_NAMES = f"{_SPAN}, 'event' AS type, id"
_HOLD_NAMES = f"{_SPAN}, 'hold' AS type, COALESCE(main_id, id)"


class StaleCalendar(NamedTuple):
    """A stale connected calendar. synced_at: its last complete sync (aware); None: never synced."""

    id: uuid.UUID
    name: str
    synced_at: datetime | None


class ResourceRow(NamedTuple):
    """A resource with its constraint rows, in their order, and its stale calendars."""

    id: uuid.UUID
    name: str
    zone: str
    rules: tuple[RuleRow, ...]
    out_of_step: tuple[StaleCalendar, ...] = ()


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
    found = {row.id: row for row in _resource_rows(statement, params)}
    return [found[identifier] for identifier in ids if identifier in found]


def fetch_project_resources(
    app_id: uuid.UUID, project_id: uuid.UUID, *, now: datetime
) -> list[ResourceRow]:
    """Return the project's resources in its order, as `fetch_resources`. One query."""
    stale = datetime_param(stale_before(now))
    return _resource_rows(_OF_PROJECT, [stale, id_param(app_id), id_param(project_id)])


def fetch_project_zones(app_id: uuid.UUID, project_id: uuid.UUID) -> list[tuple[str, str]]:
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
    found: dict[object, tuple[str, str, list[RuleRow], list[StaleCalendar]]] = {}
    last: tuple[object, object] | None = None
    for resource_id, name, zone, late_id, late_name, synced_at, *rule in rows:
        _, _, rules, late = found.setdefault(resource_id, (name, zone, [], []))
        if late_id is not None and last != (resource_id, late_id):
            late.append(
                StaleCalendar(parse_id(late_id), late_name, synced_at and to_aware(synced_at))
            )
            last = resource_id, late_id
        # The rules are repeated for each stale calendar: read them for the first only.
        if rule[0] is not None and len(late) < 2:
            rules.append(tuple(rule))
    return [
        ResourceRow(parse_id(resource_id), name, zone, tuple(rules), tuple(late))
        for resource_id, (name, zone, rules, late) in found.items()
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
    return _unpack_all(rows) if packs else _gather(rows)


def _unpack_all(rows: list[tuple[uuid.UUID, bytes]]) -> dict[uuid.UUID, Pairs]:
    """Unpack the rows; a resource may have two, one of events and one of holds."""
    found: dict[uuid.UUID, Pairs] = {}
    for resource_id, packed in rows:
        found.setdefault(resource_id, []).extend(_unpack(packed))
    for pairs in found.values():
        pairs.sort()
    return found


def _unpack(packed: bytes) -> Pairs:
    """Decode PostgreSQL's binary instants (big-endian microseconds since 2000, UTC) into pairs."""
    micros = array("q", packed)
    if sys.byteorder == "little":
        micros.byteswap()
    instants = iter([micro // 1_000_000 + YEAR_2000 for micro in micros])
    return list(zip(instants, instants, strict=True))


def _gather(rows: list[tuple[str, int, int]]) -> dict[uuid.UUID, Pairs]:
    by_hex: dict[str, Pairs] = {}
    for resource_hex, start, end in rows:
        by_hex.setdefault(resource_hex, []).append((start, end))
    return {uuid.UUID(resource_hex): pairs for resource_hex, pairs in by_hex.items()}


def fetch_busy_events(
    resource_ids: Collection[uuid.UUID],
    span: TimeSpan,
    *,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, list[BusyItem]]:
    """Like `fetch_busy`, but with the ids of events and holds, for results that name conflicts."""
    taken, params = busy_sql(
        resource_ids,
        span,
        now=now,
        ignore_all_day=ignore_all_day,
        without=without,
        event=_EVENT_NAMES,
        hold=_HOLD_NAMES,
    )
    statement = _NAMED if connection.vendor == "postgresql" else _NAMED_ROWS
    with connection.cursor() as cursor:
        cursor.execute(statement.format(taken=taken), params)
        rows = cursor.fetchall()
    found: dict[uuid.UUID, list[BusyItem]] = {}
    for resource_id, start, end, type_, identifier in rows:
        busy = BusyItem(start, end, type_, parse_id(identifier))
        found.setdefault(parse_id(resource_id), []).append(busy)
    return found


DayCounts = dict[uuid.UUID, dict[date, int]]


def fetch_day_counts(
    zones: Mapping[uuid.UUID, str],
    span: TimeSpan,
    *,
    project_id: uuid.UUID,
    now: datetime,
    without: Collection[uuid.UUID] = (),
) -> DayCounts:
    """Return the project's bookings per resource and local day, in one query.

    Counts bookings that block, completed bookings, and holds not expired at `now`, on every local
    day that each overlaps. without: ids of events and holds to ignore.
    """
    week = timedelta(days=7)  # longer than any local day exceeds the range
    start, end = to_datetime(span.start) - week, to_datetime(span.end) + week
    ours = Q(project_id=project_id, resource_id__in=list(zones)) & ~Q(id__in=without)
    events = Event.objects.filter(ours).overlapping(start, end).order_by()
    holds = Hold.objects.filter(
        ours, used_at=None, expires_at__gt=now, start__lt=end, end__gt=start
    ).order_by()
    columns = ("id", "resource_id", "start", "end")
    rows = events.filter(busy=True).values_list(*columns)
    counted = rows.union(
        events.of_completed_bookings().values_list(*columns), holds.values_list(*columns), all=True
    )
    counts: DayCounts = {}
    for _, resource_id, start, end in counted:
        days = counts.setdefault(resource_id, {})
        for day in local_days(int(start.timestamp()), int(end.timestamp()), zones[resource_id]):
            days[day] = days.get(day, 0) + 1
    return counts


def closed_days(days: Mapping[date, int], zone: str, max_per_day: int) -> Pairs:
    """Return local days with `max_per_day` or more bookings, as pairs of epoch seconds."""
    return [
        (day_start(day, zone), day_start(day + ONE_DAY, zone))
        for day, count in sorted(days.items())
        if count >= max_per_day
    ]


ONE_DAY = timedelta(days=1)


def local_days(start: int, end: int, zone: str) -> list[date]:
    """Return the local dates that the half-open span overlaps."""
    first, last = local_day(start, zone), local_day(end - 1, zone)
    return [first + ONE_DAY * count for count in range((last - first).days + 1)]
