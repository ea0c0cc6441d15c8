"""The rows that free time is computed from, read as integers: no object per event.

Times leave here as epoch seconds. PostgreSQL packs a resource's events into one binary column,
which is read four times as fast as rows (docs/benchmarks.md); SQLite has no such function.
"""

import sys
import uuid
from array import array
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models import Q

from availability.core.explain import Busy
from availability.core.zones import day_start, local_day
from availability.models import Event, Hold
from availability.out_of_step import LATE, stale_before
from scheduling.api.sql import among, raw_id, raw_moment, read_id

Pairs = list[tuple[int, int]]

YEAR_2000 = 946_684_800  # 2000-01-01T00:00:00Z, in epoch seconds

RuleRow = tuple[str, str, str, str]  # name, day, start, end

# The parts in braces are our own words, never a client's. A calendar that is out of step is rare,
# and found in the index calendar_connected.
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
    late=LATE,
    only="own.project_id = %s",
    order="own.position, own.id",
)
# Events that block, and holds as long as they are neither used nor lapsed: what both of them take.
_TAKEN = """
SELECT {event} FROM availability_event
WHERE busy AND resource_id {among} AND "end" > %s AND start < %s {more} {group}
UNION ALL
SELECT {hold} FROM availability_hold
WHERE used_at IS NULL AND resource_id {among} AND "end" > %s AND start < %s AND expires_at > %s
    {unlike} {group}
"""
_SPAN = 'resource_id, start, "end"'
# Events and holds apart: sorted together, events would pay for holds where there are none.
_PACKED = (
    "resource_id,"
    """ string_agg(timestamptz_send(start) || timestamptz_send("end"), '' ORDER BY start)"""
)
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


class OutOfStep(NamedTuple):
    """A connected calendar that has not been in step since `synced_at` (aware; None: never yet) for
    longer than it may."""

    id: uuid.UUID
    name: str
    synced_at: datetime | None


class ResourceRow(NamedTuple):
    """A resource with the rows of its constraints, in their order, and its calendars that are out
    of step."""

    id: uuid.UUID
    name: str
    zone: str
    rules: tuple[RuleRow, ...]
    out_of_step: tuple[OutOfStep, ...] = ()


def read_resources(
    app_id: uuid.UUID, ids: Collection[uuid.UUID], *, now: datetime
) -> list[ResourceRow]:
    """The app's resources of these ids and what belongs to them, one query; unknown ones are left
    out. `now`: when a calendar is out of step."""
    sql, params = among(ids)
    statement = _RESOURCES.format(
        joined="", late=LATE, only=f"resource.id {sql}", order="resource.id"
    )
    params = [raw_moment(stale_before(now)), raw_id(app_id), *params]
    found = {row.id: row for row in _resource_rows(statement, params)}
    return [found[one] for one in ids if one in found]


def read_project_resources(
    app_id: uuid.UUID, project_id: uuid.UUID, *, now: datetime
) -> list[ResourceRow]:
    """The project's resources and what belongs to them, in its order: one query."""
    stale = raw_moment(stale_before(now))
    return _resource_rows(_OF_PROJECT, [stale, raw_id(app_id), raw_id(project_id)])


def _resource_rows(statement: str, params: list) -> list[ResourceRow]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows = cursor.fetchall()
    found: dict[object, tuple[str, str, list[RuleRow], list[OutOfStep]]] = {}
    last: tuple[object, object] | None = None
    for resource_id, name, zone, late_id, late_name, synced_at, *rule in rows:
        _, _, rules, late = found.setdefault(resource_id, (name, zone, [], []))
        if late_id is not None and last != (resource_id, late_id):
            late.append(OutOfStep(read_id(late_id), late_name, synced_at and aware(synced_at)))
            last = resource_id, late_id
        # The rules stand beside each late calendar; those beside the first are enough.
        if rule[0] is not None and len(late) < 2:
            rules.append(tuple(rule))
    return [
        ResourceRow(read_id(resource_id), name, zone, tuple(rules), tuple(late))
        for resource_id, (name, zone, rules, late) in found.items()
    ]


def aware(instant: datetime) -> datetime:
    """A handwritten statement's instant: SQLite keeps them without their zone, which is UTC."""
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


class Span(NamedTuple):
    """A range of instants in epoch seconds, half-open."""

    start: int
    end: int


def taken_rows(
    resource_ids: Collection[uuid.UUID],
    span: Span,
    *,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
    event: str = _SPAN,
    hold: str = _SPAN,
    group: str = "",
) -> tuple[str, list]:
    """The statement of what blocks the resources and touches `span`, with its parameters.

    `event` and `hold`: the columns of each. `now`: when a hold still has to last. `without`: ids of
    events and holds that don't count.
    """
    sql, ids = among(resource_ids)
    found = [*ids, *map(raw_instant, span)]
    unlike, own = "", []
    if without:
        own_sql, own = among(without)
        unlike = f"AND NOT id {own_sql}"
    more = f"AND NOT all_day {unlike}" if ignore_all_day else unlike
    statement = _TAKEN.format(
        among=sql, more=more, unlike=unlike, event=event, hold=hold, group=group
    )
    return statement, [*found, *own, *found, raw_moment(now), *own]


def read_busy(
    resource_ids: Collection[uuid.UUID],
    span: Span,
    *,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, Pairs]:
    """What blocks each resource and touches `span`: pairs sorted by start, one query for all."""
    packs = connection.vendor == "postgresql"
    columns = {"event": _PACKED, "hold": _PACKED, "group": "GROUP BY resource_id"} if packs else {}
    statement, params = taken_rows(
        resource_ids, span, now=now, ignore_all_day=ignore_all_day, without=without, **columns
    )
    with connection.cursor() as cursor:
        cursor.execute(statement if packs else _ROWS.format(taken=statement), params)
        rows = cursor.fetchall()
    return _unpack_all(rows) if packs else _gather(rows)


def _unpack_all(rows: list[tuple[uuid.UUID, bytes]]) -> dict[uuid.UUID, Pairs]:
    """Of a resource there may be two packs, one of events and one of holds."""
    found: dict[uuid.UUID, Pairs] = {}
    for resource_id, packed in rows:
        pairs = _unpack(packed)
        known = found.get(resource_id)
        found[resource_id] = sorted(known + pairs) if known else pairs
    return found


def _unpack(packed: bytes) -> Pairs:
    """Pairs of PostgreSQL's binary instants: big-endian microseconds since 2000, UTC."""
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


def to_datetime(instant: int) -> datetime:
    """Epoch seconds as an aware UTC datetime."""
    return datetime.fromtimestamp(instant, UTC)


def raw_instant(instant: int) -> datetime | str:
    """Epoch seconds as a parameter of a handwritten statement: SQLite keeps text."""
    moment = to_datetime(instant)
    if connection.vendor == "postgresql":
        return moment
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def read_busy_events(
    resource_ids: Collection[uuid.UUID],
    span: Span,
    *,
    now: datetime,
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, list[Busy]]:
    """As `read_busy`, with the ids of events and holds: for answers that name what is in the way.

    `without`: ids of events and holds that are in nobody's way.
    """
    taken, params = taken_rows(
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
    found: dict[uuid.UUID, list[Busy]] = {}
    for resource_id, start, end, type_, identifier in rows:
        busy = Busy(start, end, type_, read_id(identifier))
        found.setdefault(read_id(resource_id), []).append(busy)
    return found


DayCounts = dict[uuid.UUID, dict[date, int]]


def read_day_counts(
    zones: Mapping[uuid.UUID, str],
    span: Span,
    *,
    project_id: uuid.UUID,
    now: datetime,
    without: Collection[uuid.UUID] = (),
) -> DayCounts:
    """How many bookings through the project each resource has on its local days.

    Counted are bookings that block, completed ones, and holds that last at `now`, each on every
    local day that it touches; one query for all resources. `without`: ids of events and holds that
    do not count.
    """
    week = timedelta(days=7)  # no booking day reaches further beyond the range than a zone's day
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
    """The local days that have their `max_per_day` bookings."""
    return [
        (day_start(day, zone), day_start(day + ONE_DAY, zone))
        for day, count in sorted(days.items())
        if count >= max_per_day
    ]


ONE_DAY = timedelta(days=1)


def local_days(start: int, end: int, zone: str) -> list[date]:
    """The local dates that the half-open stretch touches."""
    first, last = local_day(start, zone), local_day(end - 1, zone)
    return [first + ONE_DAY * count for count in range((last - first).days + 1)]
