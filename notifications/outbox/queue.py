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

from common.sql import database_now, datetime_param, id_in_sql, id_param, insert_rows
from common.updated_at import start_sql
from notifications.models import Attempt, Delivery, Endpoint
from notifications.outbox.circuit_breaker import call_cap

# Longer than any one attempt: 15 s for a call, 25 s for a mail, plus margin.
LEASE = timedelta(seconds=40)
MAX_LOST_LEASES = 5
# Advisory lock ids (arbitrary, unique): one claim at a time, so that caps are exact.
CLAIM_LOCK = {
    Delivery.EMAIL: 7_301_001,
    Delivery.WEBHOOK: 7_301_002,
    Delivery.CALENDAR: 7_301_003,
}


def claim_due(kind: str, limit: int) -> list[Delivery]:
    """Claim up to `limit` due deliveries of a type under a new `lease_token`.

    Respects the caps per endpoint and app. Expires deliveries that are too late and fails those
    that lost too many leases.
    """
    token = uuid.uuid4()
    with transaction.atomic():
        now = _take_turn(kind)
        free = _Capacity(kind, now)
        due = _due(kind, now).exclude(endpoint__in=free.full_endpoints)
        rows = due.exclude(app__in=free.full_apps).order_by("next_at", "id")[:limit]
        claimed = [row for row in rows if not _end_at_claim(row, now) and free.takes(row)]
        lapsed = [row for row in claimed if row.state == Delivery.SENDING]
        _record_lost_leases(lapsed)
        _lease(claimed, token, now + LEASE)
    for row in claimed:
        row.state, row.lease_token, row.tries = Delivery.SENDING, token, row.tries + 1
    return claimed


# Raw SQL because every delivery starts with it (docs/benchmarks.md, P9).
_LEASE = """
UPDATE notifications_delivery SET state = 'sending', next_at = %s, lease_token = %s,
tries = tries + 1, updated_at = {start} WHERE id {ids}
"""


def _lease(rows: Sequence[Delivery], token: uuid.UUID, until: datetime) -> None:
    if rows:
        start, start_params = start_sql()
        ids, id_params = id_in_sql(row.id for row in rows)
        with connection.cursor() as cursor:
            cursor.execute(
                _LEASE.format(start=start, ids=ids),
                [datetime_param(until), id_param(token), *start_params, *id_params],
            )


# Serialise claims, and force the index order of the queue: with the statistics of a table that
# fills and empties by the minute, the planner may sort the whole queue for each batch.
_TAKE_TURN = """
SELECT pg_advisory_xact_lock(%s), set_config('enable_sort', 'off', true),
set_config('enable_bitmapscan', 'off', true), clock_timestamp()
"""


def _take_turn(kind: str) -> datetime:
    """Wait for the claim lock (SQLite serialises writers anyway); return the database's time."""
    if connection.vendor != "postgresql":
        return database_now()
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_TURN, [CLAIM_LOCK[kind]])
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
    """Match calendar writes that wait for another one of the same booking to the same server.

    Either an earlier one is open, or any is being sent (it may be a redelivery): its worker has
    read the booking already.
    """
    in_hand = Q(state=Delivery.SENDING, next_at__gt=now)
    others = Delivery.objects.filter(
        Q(id__lt=OuterRef("id")) | in_hand,
        booking=OuterRef("booking"),
        endpoint=OuterRef("endpoint"),
        type=Delivery.CALENDAR,
        state__in=Delivery.OPEN,
    ).exclude(id=OuterRef("id"))
    return Q(type=Delivery.CALENDAR) & Q(Exists(others))


def _due(kind: str, now: datetime) -> QuerySet[Delivery]:
    rows = Delivery.objects.filter(type=kind, next_at__lte=now)
    if kind == Delivery.EMAIL:
        rows = rows.exclude(waits_for_earlier_mail())
    if kind == Delivery.CALENDAR:
        rows = rows.exclude(writes_held_by_order(now))
    return rows.select_for_update(skip_locked=True, of=("self",))


class _Capacity:
    def __init__(self, kind: str, now: datetime) -> None:
        self.now = now
        self.endpoints = Counter[str]()
        self.apps = Counter[uuid.UUID]()
        flying = Delivery.objects.filter(type=kind, state=Delivery.SENDING, next_at__gt=now)
        counts = flying.order_by().values_list("endpoint", "app_id").annotate(Count("id"))
        for endpoint, app_id, count in counts:
            self.endpoints[endpoint] += count
            self.apps[app_id] += count
        self.troubled = (
            {row.address: row for row in Endpoint.objects.all()} if kind != Delivery.EMAIL else {}
        )

    def left_of(self, endpoint: str) -> int:
        return call_cap(self.troubled.get(endpoint), self.now) - self.endpoints[endpoint]

    @property
    def full_endpoints(self) -> list[str]:
        known = {*self.endpoints, *self.troubled} - {""}
        return [endpoint for endpoint in known if self.left_of(endpoint) <= 0]

    @property
    def full_apps(self) -> list[uuid.UUID]:
        return [app for app, count in self.apps.items() if count >= settings.DELIVERY_APP_CAP]

    def takes(self, row: Delivery) -> bool:
        """Return whether there is capacity for the row, and use it."""
        if self.apps[row.app_id] >= settings.DELIVERY_APP_CAP:
            return False
        if row.endpoint and self.left_of(row.endpoint) <= 0:
            return False
        self.apps[row.app_id] += 1
        self.endpoints[row.endpoint] += 1
        return True


def _end_at_claim(row: Delivery, now: datetime) -> bool:
    """End the delivery if it expired or lost too many leases; return whether it did."""
    if row.state == Delivery.SENDING and row.lapses + 1 >= MAX_LOST_LEASES:
        _record_lost_leases([row])
        _end([row.id], Delivery.FAILED, "The worker was lost in every attempt.", now)
        return True
    if row.expires_at < now:
        if row.state == Delivery.SENDING:
            _record_lost_leases([row])
        _end([row.id], Delivery.EXPIRED, "It could not be sent in time.", now)
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
                    at=(row.next_at or row.due_at) - LEASE,
                    seconds=LEASE.total_seconds(),
                    error="The worker was lost. The message may have been sent.",
                )
                for row in rows
            ]
        )


def _end(ids: Collection[uuid.UUID], state: str, reason: str, now: datetime) -> None:
    Delivery.objects.filter(id__in=ids).update(
        state=state, reason=reason, next_at=None, finished_at=now, lease_token=None
    )


def next_due(kind: str) -> datetime | None:
    rows = Delivery.objects.filter(type=kind, next_at__isnull=False)
    return rows.order_by("next_at").values_list("next_at", flat=True).first()
