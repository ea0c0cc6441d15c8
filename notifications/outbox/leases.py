"""The outbox queue: claim due deliveries under a lease.

Due times and leases use the database's clock. A claim counts the attempt in advance: if the worker
is lost, the delivery is due again when its lease ends. After MAX_LOST_LEASES lost leases it fails,
so that a delivery that kills its worker does not do so forever.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from common.db.sql import database_now, datetime_param, id_in_sql, id_param, insert_rows
from common.db.updated_at import transaction_start_sql
from common.messages import Message
from notifications.models import Attempt, Delivery, Endpoint, LaneCheck
from notifications.outbox.circuit_breaker import call_cap
from notifications.outbox.lanes import (
    FULL_PAUSE,
    HELD_PAUSE,
    LOCKED_PAUSE,
    LaneState,
    app_caps,
    due_ids,
    read_states,
    take_lanes,
    write_checks,
)

# Longer than any one attempt: 15 s for a call, 25 s for a calendar write, 180 s for an e-mail, plus
# margin.
LEASES = {
    Delivery.EMAIL: timedelta(seconds=settings.EMAIL_DEADLINE + 20),
    Delivery.WEBHOOK: timedelta(seconds=40),
    Delivery.CALENDAR: timedelta(seconds=40),
}
MAX_LOST_LEASES = 5


def claim_due(kind: str, limit: int) -> list[Delivery] | None:
    """Claim up to `limit` due deliveries of a type under a new `lease_token`.

    Returns None if no lane is due or other claims have all that are; an empty list if the lanes of
    this claim had nothing to send: further lanes may be due.

    1. Take lanes that are due; no other claim has their apps and servers (`lanes.take_lanes`).
    2. Claim the same number of deliveries from each lane with capacity, within the caps per server
       and app. Expire deliveries that are too late; fail those that lost too many leases.
    3. Write when each lane has to be checked next.

    A statement's cost depends on the lanes and the deliveries that it claims, not on the backlog.
    """
    token = uuid.uuid4()
    with transaction.atomic():
        now = _begin_claim()
        lanes = take_lanes(kind, limit, now)
        if not lanes:
            return None
        free = _Capacity(kind, lanes, now)
        claimed = _claim_rows(kind, limit, lanes, free, now)
        lapsed = [row for row in claimed if row.state == Delivery.SENDING]
        _record_lost_leases(lapsed)
        _lease(claimed, token, now + LEASES[kind])
        _schedule_checks(lanes, free, now)
    for row in claimed:
        row.state, row.lease_token, row.tries = Delivery.SENDING, token, row.tries + 1
    return claimed


def _claim_rows(
    kind: str, limit: int, lanes: Sequence[LaneCheck], free: "_Capacity", now: datetime
) -> list[Delivery]:
    """Lock the first due rows of each lane, the same number from each; return the rows to send."""
    open_lanes = [lane for lane in lanes if free.has_room(lane.app_id, lane.endpoint)]
    if not open_lanes:
        return []
    quota = max(1, limit // len(open_lanes))
    ids = due_ids(open_lanes, _due, quota, now)
    due = Delivery.objects.filter(
        id__in=[each for of_lane in ids.values() for each in of_lane], next_at__lte=now
    )
    rows = list(due.select_for_update(skip_locked=True, of=("self",)).order_by("next_at", "id"))
    locked = {row.id for row in rows}
    free.used_up = {
        pk for pk, of_lane in ids.items() if len(of_lane) == quota and locked.intersection(of_lane)
    }
    return [row for row in rows if not _end_at_claim(row, now) and free.takes(row)]


def _schedule_checks(lanes: Sequence[LaneCheck], free: "_Capacity", now: datetime) -> None:
    ended = set()
    for state in read_states(lanes, _due, now):
        check = state.check
        next_at = _next_check(state, free, now)
        check.waiting_since = state.free_since or state.waiting_since
        check.is_held = state.waiting_since is not None and (
            state.free_since is None or free.is_paused(check.endpoint)
        )
        if next_at is None or (
            state.waiting_since is None and state.next_check and state.next_check <= next_at
        ):
            ended.add(check)
        else:
            check.next_at = next_at
    write_checks(lanes, ended)


def _next_check(state: LaneState, free: "_Capacity", now: datetime) -> datetime | None:
    """Return when the lane has to be checked next; None: nothing is open in it."""
    check = state.check
    if state.waiting_since is None:
        return state.later
    if until := free.paused_until(check.endpoint):
        return until
    if state.free_since is None:
        return min(state.later or now + HELD_PAUSE, now + HELD_PAUSE)
    if not free.has_room(check.app_id, check.endpoint):
        return now + FULL_PAUSE
    return now if check.pk in free.used_up else now + LOCKED_PAUSE


# Raw SQL because every delivery starts with it (docs/benchmarks.md, P9).
_LEASE = """
UPDATE notifications_delivery SET state = 'sending', next_at = %s, lease_token = %s,
tries = tries + 1, updated_at = {start} WHERE id {ids}
"""


def _lease(rows: Sequence[Delivery], token: uuid.UUID, until: datetime) -> None:
    if rows:
        start, start_params = transaction_start_sql()
        ids, id_params = id_in_sql(row.id for row in rows)
        with connection.cursor() as cursor:
            cursor.execute(
                _LEASE.format(start=start, ids=ids),
                [datetime_param(until), id_param(token), *start_params, *id_params],
            )


# Force the index order of the queue: with the statistics of a table that fills and empties by the
# minute, the planner may sort the whole queue for each batch.
_BEGIN_CLAIM = """
SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true),
clock_timestamp()
"""


def _begin_claim() -> datetime:
    """Return the database's time."""
    if connection.vendor != "postgresql":
        return database_now()
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_CLAIM)
        return cursor.fetchone()[-1].astimezone(UTC)


def waits_for_earlier_mail() -> Q:
    """Match mails that wait for an earlier open mail about the same booking to the same person.

    A person's mails are sent in the order of the changes; reminders are independent.
    """
    # Filter by state, not by next_at: SQLite would scan the whole queue for each row.
    earlier = Delivery.objects.filter(
        Q(customer=OuterRef("customer")) | Q(customer=None),
        booking=OuterRef("booking"),
        recipient=OuterRef("recipient"),
        type=Delivery.EMAIL,
        state__in=Delivery.OPEN,
        change__lt=OuterRef("change"),
    ).exclude(kind=Delivery.REMINDER)
    return Q(type=Delivery.EMAIL) & ~Q(kind=Delivery.REMINDER) & Q(Exists(earlier))


def writes_held_by_order(now: datetime) -> Q:
    """Match calendar writes that wait for another write of the same booking to the same server.

    They wait for open earlier writes, and for any write that is being sent, such as a redelivery:
    its worker may have read the booking before the last change.
    """
    being_sent = Q(state=Delivery.SENDING, next_at__gt=now)
    others = Delivery.objects.filter(
        Q(id__lt=OuterRef("id")) | being_sent,
        booking=OuterRef("booking"),
        endpoint=OuterRef("endpoint"),
        type=Delivery.CALENDAR,
        state__in=Delivery.OPEN,
    ).exclude(id=OuterRef("id"))
    return Q(type=Delivery.CALENDAR) & Q(Exists(others))


def _due(kind: str, now: datetime) -> QuerySet[Delivery]:
    """Return due deliveries that wait for no earlier delivery."""
    rows = Delivery.objects.filter(type=kind, next_at__lte=now)
    if kind == Delivery.EMAIL:
        rows = rows.exclude(waits_for_earlier_mail())
    if kind == Delivery.CALENDAR:
        rows = rows.exclude(writes_held_by_order(now))
    return rows


class _Capacity:
    """How many more deliveries the servers and apps of the lanes can get now."""

    def __init__(self, kind: str, lanes: Sequence[LaneCheck], now: datetime) -> None:
        self.now = now
        self.endpoints = Counter[str]()
        self.apps = Counter[uuid.UUID]()
        flying = Delivery.objects.filter(type=kind, state=Delivery.SENDING, next_at__gt=now)
        counts = flying.order_by().values_list("endpoint", "app_id").annotate(Count("id"))
        for endpoint, app_id, count in counts:
            self.endpoints[endpoint] += count
            self.apps[app_id] += count
        self.app_caps = app_caps(lanes)
        addresses = {lane.endpoint for lane in lanes} - {""}
        troubled = Endpoint.objects.filter(address__in=addresses) if addresses else ()
        self.troubled = {row.address: row for row in troubled}
        self.used_up: set[int] = set()  # checks of lanes that may have more rows than the quota

    def has_room(self, app_id: uuid.UUID, endpoint: str) -> bool:
        if self.apps[app_id] >= self.app_caps.get(app_id, 0):  # 0: the app was deleted
            return False
        cap = call_cap(endpoint, self.troubled.get(endpoint), self.now) if endpoint else None
        return cap is None or self.endpoints[endpoint] < cap

    def takes(self, row: Delivery) -> bool:
        """Return whether there is capacity for the row, and use it."""
        if not self.has_room(row.app_id, row.endpoint):
            return False
        self.apps[row.app_id] += 1
        self.endpoints[row.endpoint] += 1
        return True

    def paused_until(self, endpoint: str) -> datetime | None:
        """Return when the breaker's pause ends; None: the server gets calls."""
        row = self.troubled.get(endpoint)
        return row.open_until if row and row.open_until and row.open_until > self.now else None

    def is_paused(self, endpoint: str) -> bool:
        return self.paused_until(endpoint) is not None


def _end_at_claim(row: Delivery, now: datetime) -> bool:
    """End the delivery if it expired or lost too many leases; return whether it did."""
    if row.state == Delivery.SENDING and row.lapses + 1 >= MAX_LOST_LEASES:
        _record_lost_leases([row])
        _end([row.id], Delivery.FAILED, Message("The worker was lost in every attempt."), now)
        return True
    if row.expires_at < now:
        if row.state == Delivery.SENDING:
            _record_lost_leases([row])
        _end([row.id], Delivery.EXPIRED, Message("It could not be sent in time."), now)
        return True
    return False


def _record_lost_leases(rows: Sequence[Delivery]) -> None:
    if rows:
        Delivery.objects.filter(id__in=[row.id for row in rows]).update(lapses=F("lapses") + 1)
        insert_rows(
            [
                Attempt(
                    app_id=row.app_id,
                    delivery=row,
                    at=(row.next_at or row.due_at) - LEASES[row.type],
                    outcome=Attempt.LOST,
                    seconds=LEASES[row.type].total_seconds(),
                    error=Message("The worker was lost. The message may have been sent."),
                )
                for row in rows
            ]
        )


def _end(ids: Collection[uuid.UUID], state: str, reason: str, now: datetime) -> None:
    Delivery.objects.filter(id__in=ids).update(
        state=state, reason=reason, next_at=None, finished_at=now, lease_token=None
    )
