"""Lanes of the outbox: the deliveries of one type, app and server.

`LaneCheck` says when a dispatcher has to check a lane. A claim takes the checks that are due, and
reads only the deliveries of their lanes. So a lane costs one row, however many of its deliveries
wait: its next check is at the end of the breaker's pause, or when there is capacity again.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField

from apps_config.models import App
from common.compiled_query import FixedValues
from common.sql import to_uuid, update_rows
from notifications.models import Delivery, LaneCheck

MAX_LANES = 100  # of one claim
# Until the next check of a lane without capacity. A result in the lane makes it due at once.
FULL_PAUSE = timedelta(seconds=1)
# Until the next check of a lane with rows that other transactions have locked.
LOCKED_PAUSE = timedelta(seconds=0.5)
# Longest pause while earlier deliveries hold back later ones: a cancelled one is no result.
HELD_PAUSE = timedelta(seconds=10)

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
    """Lock due checks of at most `limit` lanes, one for each lane, the longest due first.

    Until the end of the transaction, no other claim can take a lane of the same app or server, so
    the caps are exact. A claim never waits for another claim: it omits that claim's lanes.
    """
    due = LaneCheck.objects.filter(type=kind, next_at__lte=now).order_by("next_at", "id")
    if connection.vendor == "postgresql":
        due = due.select_for_update(skip_locked=True)
    lanes: dict[tuple[UUID, str], LaneCheck] = {}
    others = []
    for check in due[: min(limit, MAX_LANES)]:
        if lanes.setdefault((check.app_id, check.endpoint), check) is not check:
            others.append(check)
    taken = {key: lanes[key] for key in _try_lock_lanes(kind, lanes)}
    # Before the deliveries are read: a check that is written later is kept.
    merged = [check.pk for check in others if (check.app_id, check.endpoint) in taken]
    if merged:
        LaneCheck.objects.filter(pk__in=merged).delete()
    return list(taken.values())


_TRY_LOCKS = """
SELECT key FROM unnest(%s::text[]) AS key
WHERE pg_try_advisory_xact_lock(hashtextextended(key, 7301))
"""


def _try_lock_lanes(kind: str, lanes: Iterable[tuple[UUID, str]]) -> list[tuple[UUID, str]]:
    """Lock and return, in order, the lanes whose app and server no other claim has; on SQLite all
    lanes.
    """
    wanted = list(lanes)
    if connection.vendor != "postgresql" or not wanted:
        return wanted
    keys = {key for lane in wanted for key in _lock_keys(kind, *lane)}
    with connection.cursor() as cursor:
        cursor.execute(_TRY_LOCKS, [sorted(keys)])
        granted = {key for (key,) in cursor.fetchall()}
    return [lane for lane in wanted if granted.issuperset(_lock_keys(kind, *lane))]


def _lock_keys(kind: str, app_id: UUID, endpoint: str) -> list[str]:
    return [f"{kind} {app_id}", *([endpoint] if endpoint else [])]


class _IdArray(Subquery):
    """The ids of a subquery as one value. SQLite has no arrays."""

    template = "(SELECT json_group_array(ids.id) FROM (%(subquery)s) AS ids)"
    output_field = TextField()


def due_ids(
    lanes: Sequence[LaneCheck], due: Due, quota: int, now: datetime
) -> dict[int, list[UUID]]:
    """Return, by check, the ids of the first `quota` rows of `due` in its lane."""
    query = _due_ids_query(lanes[0].type, due, quota)
    return {
        pk: [to_uuid(each) for each in (json.loads(ids) if isinstance(ids, str) else ids)]
        for pk, ids in query([check.pk for check in lanes], now)
    }


@lru_cache(maxsize=256)
def _due_ids_query(kind: str, due: Due, quota: int) -> FixedValues:
    def build(keys: Sequence[int], now: datetime) -> QuerySet[Any, Any]:
        ids = in_lane_of_outer_query(due(kind, now)).order_by("next_at", "id").values("id")[:quota]
        array = ArraySubquery(ids) if connection.vendor == "postgresql" else _IdArray(ids)
        return _rows_of(keys).annotate(ids=array).values_list("pk", "ids")

    return FixedValues(build)


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
    query = _states_query(lanes[0].type, free)
    by_pk = {row[0]: row[1:] for row in query([check.pk for check in lanes], now)}
    for check in lanes:
        yield LaneState(check, *by_pk[check.pk])


@lru_cache
def _states_query(kind: str, free: Due) -> FixedValues:
    def build(keys: Sequence[int], now: datetime) -> QuerySet[Any, Any]:
        waiting = Delivery.objects.filter(type=kind, next_at__lte=now)
        later = Delivery.objects.filter(type=kind, next_at__gt=now)
        others = LaneCheck.objects.filter(
            type=kind, app=OuterRef("app"), endpoint=OuterRef("endpoint")
        ).exclude(pk=OuterRef("pk"))
        rows = _rows_of(keys).annotate(
            waiting=Subquery(_earliest_next_at(in_lane_of_outer_query(waiting))),
            free=Subquery(_earliest_next_at(in_lane_of_outer_query(free(kind, now)))),
            later=Subquery(_earliest_next_at(in_lane_of_outer_query(later))),
            other=Subquery(_earliest_next_at(others)),
        )
        return rows.values_list("pk", "waiting", "free", "later", "other")

    return FixedValues(build)


def _rows_of(keys: Sequence[int]) -> QuerySet[LaneCheck]:
    return LaneCheck.objects.filter(pk__in=keys).order_by()


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


def next_check(kind: str) -> datetime | None:
    """Return when the next lane of this type has to be checked."""
    rows = LaneCheck.objects.filter(type=kind).order_by("next_at")
    return rows.values_list("next_at", flat=True).first()


def waiting_lanes(kind: str, now: datetime) -> QuerySet[LaneCheck]:
    """Return the checks of lanes with a delivery that may have been due at `now`; without held
    lanes.
    """
    is_waiting = Q(next_at__lte=now) | Q(waiting_since__lte=now)
    return LaneCheck.objects.filter(is_waiting, type=kind, is_held=False).order_by()


def in_lane_of_outer_query(rows: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return the deliveries in the lane of an outer query over LaneCheck."""
    return rows.filter(app=OuterRef("app"), endpoint=OuterRef("endpoint"))
