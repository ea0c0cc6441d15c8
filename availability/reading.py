"""The rows that free time is computed from, read as integers: no object per event.

Times leave here as epoch seconds. PostgreSQL packs a resource's events into one binary column,
which is read four times as fast as rows (docs/benchmarks.md); SQLite has no such function.
"""

import sys
import uuid
from array import array
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import connection

from availability.core.explain import Busy
from availability.core.zones import day_start, local_day
from availability.models import Event
from scheduling.api.sql import among, raw_id, read_id

Pairs = list[tuple[int, int]]

YEAR_2000 = 946_684_800  # 2000-01-01T00:00:00Z, in epoch seconds

RuleRow = tuple[str, str, str, str]  # name, day, start, end

# The parts in braces are our own words, never a client's.
_RESOURCES = """
SELECT resource.id, resource.name, resource.timezone,
    rule.name, rule.day, rule.start, rule."end"
FROM availability_resource resource {joined}
LEFT JOIN availability_constraint rule ON rule.resource_id = resource.id
WHERE resource.app_id = %s AND resource.deleted_at IS NULL AND {only}
ORDER BY {order}, rule.position, rule.id
"""
_OF_PROJECT = _RESOURCES.format(
    joined="JOIN availability_projectresource own ON own.resource_id = resource.id",
    only="own.project_id = %s",
    order="own.position, own.id",
)
_PACKED = """
SELECT resource_id,
    string_agg(timestamptz_send(start) || timestamptz_send("end"), '' ORDER BY start)
FROM availability_event
WHERE busy AND resource_id {among} AND "end" > %s AND start < %s {more}
GROUP BY resource_id
"""
_ROWS = """
SELECT resource_id, CAST(strftime('%%s', start) AS INTEGER),
    CAST(strftime('%%s', "end") AS INTEGER)
FROM availability_event
WHERE busy AND resource_id {among} AND "end" > %s AND start < %s {more}
ORDER BY start
"""


class ResourceRow(NamedTuple):
    """A resource with the rows of its constraints, in their order."""

    id: uuid.UUID
    name: str
    zone: str
    rules: tuple[RuleRow, ...]


def read_resources(app_id: uuid.UUID, ids: Collection[uuid.UUID]) -> list[ResourceRow]:
    """The app's resources of these ids and their constraints, one query; unknown ones are left
    out."""
    sql, params = among(ids)
    statement = _RESOURCES.format(joined="", only=f"resource.id {sql}", order="resource.id")
    found = {row.id: row for row in _resource_rows(statement, [raw_id(app_id), *params])}
    return [found[one] for one in ids if one in found]


def read_project_resources(app_id: uuid.UUID, project_id: uuid.UUID) -> list[ResourceRow]:
    """The project's resources and their constraints, in its order: one query."""
    return _resource_rows(_OF_PROJECT, [raw_id(app_id), raw_id(project_id)])


def _resource_rows(statement: str, params: list) -> list[ResourceRow]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows = cursor.fetchall()
    found: dict[object, tuple[str, str, list[RuleRow]]] = {}
    for resource_id, name, zone, *rule in rows:
        rules = found.setdefault(resource_id, (name, zone, []))[2]
        if rule[0] is not None:
            rules.append(tuple(rule))
    return [
        ResourceRow(read_id(resource_id), name, zone, tuple(rules))
        for resource_id, (name, zone, rules) in found.items()
    ]


class Span(NamedTuple):
    """A range of instants in epoch seconds, half-open."""

    start: int
    end: int


def read_busy(
    resource_ids: Collection[uuid.UUID], span: Span, *, ignore_all_day: bool = False
) -> dict[uuid.UUID, Pairs]:
    """What blocks each resource and touches `span`: pairs sorted by start, one query for all."""
    sql, ids = among(resource_ids)
    more = "AND NOT all_day" if ignore_all_day else ""
    packs = connection.vendor == "postgresql"
    statement = (_PACKED if packs else _ROWS).format(among=sql, more=more)
    with connection.cursor() as cursor:
        cursor.execute(statement, [*ids, *map(raw_instant, span)])
        rows = cursor.fetchall()
    return {one: _unpack(packed) for one, packed in rows} if packs else _gather(rows)


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
    ignore_all_day: bool = False,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, list[Busy]]:
    """As `read_busy`, with the events' ids: for answers that name what is in the way."""
    events = Event.objects.filter(busy=True, resource_id__in=resource_ids).exclude(id__in=without)
    events = events.overlapping(to_datetime(span.start), to_datetime(span.end))
    if ignore_all_day:
        events = events.filter(all_day=False)
    found: dict[uuid.UUID, list[Busy]] = {}
    rows = events.order_by("start", "id").values_list("resource_id", "start", "end", "id")
    for resource_id, start, end, event_id in rows:
        busy = Busy(int(start.timestamp()), int(end.timestamp()), "event", event_id)
        found.setdefault(resource_id, []).append(busy)
    return found


def read_closed_days(
    zones: Mapping[uuid.UUID, str],
    span: Span,
    *,
    project_id: uuid.UUID,
    max_per_day: int,
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, Pairs]:
    """The local days on which a resource has its `max_per_day` bookings through the project.

    A booking counts on every local day that it touches; one query for all resources.
    """
    week = timedelta(days=7)  # no booking day reaches further beyond the range than a zone's day
    events = Event.objects.filter(busy=True, project_id=project_id, resource_id__in=list(zones))
    events = events.exclude(id__in=without).overlapping(
        to_datetime(span.start) - week, to_datetime(span.end) + week
    )
    counts: dict[uuid.UUID, dict[object, int]] = {}
    for resource_id, start, end in events.values_list("resource_id", "start", "end"):
        days = counts.setdefault(resource_id, {})
        for day in _local_days(int(start.timestamp()), int(end.timestamp()), zones[resource_id]):
            days[day] = days.get(day, 0) + 1
    return {
        resource_id: [
            (day_start(day, zones[resource_id]), day_start(day + ONE_DAY, zones[resource_id]))
            for day, count in sorted(days.items())
            if count >= max_per_day
        ]
        for resource_id, days in counts.items()
    }


ONE_DAY = timedelta(days=1)


def _local_days(start: int, end: int, zone: str) -> list:
    """The local dates that the half-open stretch touches."""
    first, last = local_day(start, zone), local_day(end - 1, zone)
    return [first + ONE_DAY * count for count in range((last - first).days + 1)]
