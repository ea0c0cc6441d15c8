"""Lanes of the outbox: the deliveries of one type, app and server.

`LaneCheck` says when a dispatcher has to check a lane. A claim takes the checks that are due, and
reads only the deliveries of their lanes. So a lane costs one row, however many of its deliveries
wait: its next check is at the end of the breaker's pause, or when there is capacity again.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import Exists, Min, OuterRef, Q, QuerySet, Subquery, TextField

from apps_config.models import App
from common.db.sql import to_uuid, update_rows
from notifications.models import ChangeCalls, Delivery, LaneCheck

MAX_LANES = 100  # of one claim
MAX_CHECKS = 1000  # that a claim reads, and of which it merges those of the same lane
# Until the next check of a lane without capacity. A result in the lane makes it due at once.
FULL_PAUSE = timedelta(seconds=1)
# Until the next check of a lane with rows that other transactions have locked.
LOCKED_PAUSE = timedelta(seconds=0.5)
# Longest pause while earlier deliveries hold back later ones: a cancelled one is no result.
HELD_PAUSE = timedelta(seconds=10)

Row = TypeVar("Row", bound=Hashable)
# Return the deliveries of a type that are due at a time.
Due = Callable[[str, datetime], QuerySet[Delivery]]


class LaneState(NamedTuple):
    """The state of a lane after a claim: due times of its deliveries, and its next check."""

    check: LaneCheck
    waiting_since: datetime | None  # the oldest delivery that is due
    free_since: datetime | None  # the oldest one that is due and waits for no earlier one
    later: datetime | None  # the next one that is not due yet
    next_check: datetime | None  # another check of the lane


def take_lanes(kind: str, limit: int, now: datetime) -> list[LaneCheck]:
    """Lock due lanes, at most `limit`; return one check of each, the longest due first.

    Until the end of the transaction, no other claim can take a lane of the same app or server, so
    the caps are exact. A claim never waits for another claim: it omits that claim's lanes.

    Other due checks of the lanes are deleted before the deliveries are read: a check that is
    written later is kept.
    """
    checks = _due_checks(kind, now)
    chosen = [
        checks[lane][0] for lane in _try_lock_lanes(kind, list(checks), min(limit, MAX_LANES))
    ]
    # By key alone: to a planner without statistics, the due checks are few rows.
    rows = LaneCheck.objects.filter(pk__in=chosen).order_by().select_for_update(skip_locked=True)
    lanes = sorted((row for row in rows if row.next_at <= now), key=lambda row: row.next_at)
    merged = [pk for row in lanes for pk in checks[row.app_id, row.endpoint] if pk != row.pk]
    if merged:
        delete_unlocked(LaneCheck.objects.filter(pk__in=merged, next_at__lte=now))
    return lanes


def _due_checks(kind: str, now: datetime) -> dict[tuple[UUID, str], list[int]]:
    """Return ids of due checks by app and server, in the order in which a claim takes the lanes.

    Apps take turns, so that an app with many lanes delays no other app. If more checks are due than
    a claim reads, it reads one of each app besides the longest due.
    """
    due = LaneCheck.objects.filter(type=kind, next_at__lte=now)
    columns = ("next_at", "app_id", "endpoint", "pk")
    due_checks = list(due.order_by("next_at", "id").values_list(*columns)[:MAX_CHECKS])
    if len(due_checks) == MAX_CHECKS:
        apps = due.values("app").annotate(first=Min("id"), since=Min("next_at")).order_by("since")
        pks = list(apps.values_list("first", flat=True)[:MAX_CHECKS])
        due_checks = [
            *sorted(LaneCheck.objects.filter(pk__in=pks).values_list(*columns)),
            *due_checks,
        ]
    checks: dict[tuple[UUID, str], list[int]] = {}
    for _, app_id, endpoint, pk in due_checks:
        checks.setdefault((app_id, endpoint), []).append(pk)
    return {lane: checks[lane] for lane in in_turns(checks, app_of=itemgetter(0))}


def in_turns(rows: Iterable[Row], app_of: Callable[[Row], UUID]) -> list[Row]:
    """Return the rows so that apps take turns: the first row of each, then the second of each."""
    turns = Counter[UUID]()
    turn_of: dict[Row, int] = {}
    for row in rows:
        turn_of[row] = turns[app_of(row)]
        turns[app_of(row)] += 1
    return sorted(turn_of, key=turn_of.__getitem__)


# The lanes are tried in order until `limit` are locked.
_TRY_LOCKS = """
SELECT position FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS lane (app, server, position)
WHERE pg_try_advisory_xact_lock(hashtextextended(app, 7301))
AND (server = '' OR pg_try_advisory_xact_lock(hashtextextended(server, 7301))) LIMIT %s
"""


def _try_lock_lanes(
    kind: str, lanes: Sequence[tuple[UUID, str]], limit: int
) -> list[tuple[UUID, str]]:
    """Lock and return the first `limit` lanes whose app and server no other claim has; on SQLite
    the first ones.
    """
    if connection.vendor != "postgresql" or not lanes:
        return list(lanes[:limit])
    apps, servers = [f"{kind} {app_id}" for app_id, _ in lanes], [server for _, server in lanes]
    with connection.cursor() as cursor:
        cursor.execute(_TRY_LOCKS, [apps, servers, limit])
        return [lanes[position - 1] for (position,) in cursor.fetchall()]


def delete_unlocked(checks: QuerySet[LaneCheck]) -> int:
    """Delete the checks that no other transaction has locked; return their number."""
    locked = checks.select_for_update(skip_locked=True).order_by().values("pk")
    return LaneCheck.objects.filter(pk__in=locked).delete()[0]


class _IdArray(Subquery):
    """The ids of a subquery as one value. SQLite has no arrays."""

    template = "(SELECT json_group_array(ids.id) FROM (%(subquery)s) AS ids)"
    output_field = TextField()


def due_ids(
    lanes: Sequence[LaneCheck], due: Due, quota: int, now: datetime
) -> dict[int, list[UUID]]:
    """Return, by check, the ids of the first `quota` rows of `due` in its lane."""
    waiting = in_lane_of_outer_query(due(lanes[0].type, now))
    ids = waiting.order_by("next_at", "id").values("id")[:quota]
    array = ArraySubquery(ids) if connection.vendor == "postgresql" else _IdArray(ids)
    rows = _rows_of(lanes).annotate(ids=array).values_list("pk", "ids")
    return {
        pk: [to_uuid(each) for each in (json.loads(found) if isinstance(found, str) else found)]
        for pk, found in rows
    }


def app_caps(lanes: Sequence[LaneCheck]) -> dict[UUID, int]:
    """Return how many deliveries each app of the lanes may have in flight, by app."""
    apps = App.objects.filter(pk__in={check.app_id for check in lanes}).order_by()
    wanted = apps.values_list("pk", "settings__delivery_cap")
    return {
        app_id: min(cap, settings.DELIVERY_APP_CAP_MAX)
        if type(cap) is int and cap > 0
        else settings.DELIVERY_APP_CAP
        for app_id, cap in wanted
    }


def read_states(lanes: Sequence[LaneCheck], free: Due, now: datetime) -> Iterator[LaneState]:
    """Yield the states of the lanes after the claim.

    free: due deliveries that no rule of order holds back.
    """
    kind = lanes[0].type
    waiting = Delivery.objects.filter(type=kind, next_at__lte=now)
    later = Delivery.objects.filter(type=kind, next_at__gt=now)
    others = LaneCheck.objects.filter(
        type=kind, app=OuterRef("app"), endpoint=OuterRef("endpoint")
    ).exclude(pk=OuterRef("pk"))
    rows = _rows_of(lanes).annotate(
        waiting=Subquery(_earliest_next_at(in_lane_of_outer_query(waiting))),
        free=Subquery(_earliest_next_at(in_lane_of_outer_query(free(kind, now)))),
        later=Subquery(_earliest_next_at(in_lane_of_outer_query(later))),
        other=Subquery(_earliest_next_at(others)),
    )
    by_pk = {
        pk: times for pk, *times in rows.values_list("pk", "waiting", "free", "later", "other")
    }
    for check in lanes:
        yield LaneState(check, *by_pk[check.pk])


def _rows_of(lanes: Sequence[LaneCheck]) -> QuerySet[LaneCheck]:
    return LaneCheck.objects.filter(pk__in=[check.pk for check in lanes]).order_by()


def _earliest_next_at(rows: Any) -> Any:
    return rows.order_by("next_at", "id").values("next_at")[:1]


def write_checks(lanes: Sequence[LaneCheck], ended: Collection[LaneCheck]) -> None:
    """Store the next checks; delete the checks of `ended` lanes, which have no open deliveries."""
    if ended:
        LaneCheck.objects.filter(pk__in=[check.pk for check in ended]).delete()
    update_rows(
        [check for check in lanes if check not in ended], ["next_at", "waiting_since", "is_held"]
    )


def recheck_lanes(rows: Sequence[Delivery], now: datetime) -> None:
    """Make lanes with waiting deliveries due, after results of `rows` have freed capacity."""
    if rows:
        _waiting_checks_not_due(
            now,
            Q(type=rows[0].type, app__in={row.app_id for row in rows})
            & Q(endpoint__in={row.endpoint for row in rows}),
        ).update(next_at=now)


def recheck_server(endpoint: str, now: datetime) -> None:
    """Make due, for all apps, the lanes with deliveries that wait for this server."""
    _waiting_checks_not_due(now, Q(endpoint=endpoint)).update(next_at=now)


def _waiting_checks_not_due(now: datetime, lanes: Q) -> QuerySet[LaneCheck]:
    return LaneCheck.objects.filter(lanes, waiting_since__isnull=False, next_at__gt=now)


def delete_checks_of_empty_lanes(checks: QuerySet[LaneCheck]) -> int:
    """Delete those of the checks whose lanes have no open deliveries; return their number.

    A claim would do so too, but only when they are due: for reminders, up to a year later. Checks
    of lanes with waiting deliveries are left to the claims, whose results update them.
    """
    open_rows = in_lane_of_outer_query(Delivery.objects.open()).filter(type=OuterRef("type"))
    return delete_unlocked(checks.filter(~Exists(open_rows), waiting_since=None))


def next_check(kind: str) -> datetime | None:
    """Return when the next lane of this type has to be checked, or a change to be expanded."""
    rows = LaneCheck.objects.filter(type=kind).order_by("next_at")
    times = [
        rows.values_list("next_at", flat=True).first(),
        ChangeCalls.objects.oldest_pending() if kind == Delivery.WEBHOOK else None,
    ]
    return min(filter(None, times), default=None)


def waiting_lanes(kind: str, now: datetime) -> QuerySet[LaneCheck]:
    """Return the checks of lanes with a delivery that may have been due at `now`; without held
    lanes.
    """
    is_waiting = Q(next_at__lte=now) | Q(waiting_since__lte=now)
    return LaneCheck.objects.filter(is_waiting, type=kind, is_held=False).order_by()


def in_lane_of_outer_query(rows: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return the deliveries in the lane of an outer query over LaneCheck."""
    return rows.filter(app=OuterRef("app"), endpoint=OuterRef("endpoint"))
