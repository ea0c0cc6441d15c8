"""The queue: claim what is due, under a lease.

Due times and leases are read by the database's clock. A claim counts its try before it is made: a
row whose worker is never heard of again comes back when the lease lapses, and after some such
times is failed, so that a row that kills its worker does not do so for ever.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from notifications.breaker import cap_of
from notifications.models import Attempt, Delivery, Endpoint
from scheduling.api.sql import among, database_now, insert_rows, raw_id, raw_moment

# Longer than any one try: 15 s of a call, 25 s of a mail, and some grace.
LEASE = timedelta(seconds=40)
MOST_LAPSES = 5
# One claim at a time, so that caps are exact (any number that nobody else uses).
CLAIM_LOCK = {
    Delivery.EMAIL: 7_301_001,
    Delivery.WEBHOOK: 7_301_002,
    Delivery.CALENDAR: 7_301_003,
}


def claim(kind: str, limit: int) -> list[Delivery]:
    """Up to `limit` due deliveries of a type, taken under a lease: `lease_token` is its proof.

    No endpoint and no app gets more at once than its cap. Those that came too late are expired
    here, those that lapsed too often are failed.
    """
    token = uuid.uuid4()
    with transaction.atomic():
        now = _take_turn(kind)
        free = _Room(kind, now)
        due = _due(kind, now).exclude(endpoint__in=free.full_endpoints)
        rows = due.exclude(app__in=free.full_apps).order_by("next_at", "id")[:limit]
        claimed = [row for row in rows if not _end_at_claim(row, now) and free.takes(row)]
        lapsed = [row for row in claimed if row.state == Delivery.SENDING]
        _note_lapses(lapsed)
        _lease(claimed, token, now + LEASE)
    for row in claimed:
        row.state, row.lease_token, row.tries = Delivery.SENDING, token, row.tries + 1
    return claimed


# By hand, because it begins every delivery (docs/benchmarks.md, P9).
_LEASE = """
UPDATE notifications_delivery SET state = 'sending', next_at = %s, lease_token = %s,
tries = tries + 1 WHERE id {ids}
"""


def _lease(rows: Sequence[Delivery], token: uuid.UUID, until: datetime) -> None:
    if rows:
        ids, params = among(row.id for row in rows)
        with connection.cursor() as cursor:
            cursor.execute(_LEASE.format(ids=ids), [raw_moment(until), raw_id(token), *params])


# One at a time; and through the queue's index in its order, whatever the statistics of a table
# that fills and empties by the minute make of it: a sort would read the whole queue for each batch.
_TAKE_TURN = """
SELECT pg_advisory_xact_lock(%s), set_config('enable_sort', 'off', true),
set_config('enable_bitmapscan', 'off', true), clock_timestamp()
"""


def _take_turn(kind: str) -> datetime:
    """When this claim's turn has come, by the database's clock. SQLite's transaction is alone."""
    if connection.vendor != "postgresql":
        return database_now()
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_TURN, [CLAIM_LOCK[kind]])
        return cursor.fetchone()[-1].astimezone(UTC)


def mails_that_wait() -> Q:
    """Of mails: an earlier one about the same booking to the same person has not left yet.

    What is said to a person leaves in the order in which it happened; reminders stand apart.
    """
    # Open by their state, not by next_at: SQLite would go through the whole queue for each.
    earlier = Delivery.objects.filter(
        Q(customer=OuterRef("customer")) | Q(customer=None),
        booking=OuterRef("booking"),
        recipient=OuterRef("recipient"),
        type=Delivery.EMAIL,
        state__in=Delivery.OPEN,
        change__lt=OuterRef("change"),
    ).exclude(kind=Delivery.REMINDER)
    return Q(type=Delivery.EMAIL) & ~Q(kind=Delivery.REMINDER) & Exists(earlier)


def writes_that_wait(now: datetime) -> Q:
    """Of writes to calendars: an earlier one of the same booking to the same server is open, or any
    is in a worker's hands, who has read the booking already: it may have been sent again.
    """
    in_hand = Q(state=Delivery.SENDING, next_at__gt=now)
    others = Delivery.objects.filter(
        Q(id__lt=OuterRef("id")) | in_hand,
        booking=OuterRef("booking"),
        endpoint=OuterRef("endpoint"),
        type=Delivery.CALENDAR,
        state__in=Delivery.OPEN,
    ).exclude(id=OuterRef("id"))
    return Q(type=Delivery.CALENDAR) & Exists(others)


def _due(kind: str, now: datetime) -> QuerySet[Delivery]:
    rows = Delivery.objects.filter(type=kind, next_at__lte=now)
    if kind == Delivery.EMAIL:
        rows = rows.exclude(mails_that_wait())
    if kind == Delivery.CALENDAR:
        rows = rows.exclude(writes_that_wait(now))
    return rows.select_for_update(skip_locked=True, of=("self",))


class _Room:
    """How many more may be in flight to each endpoint and for each app."""

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
        return cap_of(self.troubled.get(endpoint), self.now) - self.endpoints[endpoint]

    @property
    def full_endpoints(self) -> list[str]:
        known = {*self.endpoints, *self.troubled} - {""}
        return [endpoint for endpoint in known if self.left_of(endpoint) <= 0]

    @property
    def full_apps(self) -> list[uuid.UUID]:
        return [app for app, count in self.apps.items() if count >= settings.DELIVERY_APP_CAP]

    def takes(self, row: Delivery) -> bool:
        """Whether there is room for the row, which is then taken."""
        if self.apps[row.app_id] >= settings.DELIVERY_APP_CAP:
            return False
        if row.endpoint and self.left_of(row.endpoint) <= 0:
            return False
        self.apps[row.app_id] += 1
        self.endpoints[row.endpoint] += 1
        return True


def _end_at_claim(row: Delivery, now: datetime) -> bool:
    """End what should not be tried (again)."""
    if row.state == Delivery.SENDING and row.lapses + 1 >= MOST_LAPSES:
        _note_lapses([row])
        _end([row.id], Delivery.FAILED, "Its worker was lost at every try.", now)
        return True
    if row.expires_at < now:
        if row.state == Delivery.SENDING:
            _note_lapses([row])
        _end([row.id], Delivery.EXPIRED, "It could not be sent in time.", now)
        return True
    return False


def _note_lapses(rows: Sequence[Delivery]) -> None:
    """A try whose worker fell silent is a try too."""
    if rows:
        Delivery.objects.filter(id__in=[row.id for row in rows]).update(lapses=F("lapses") + 1)
        insert_rows(
            [
                Attempt(
                    delivery=row,
                    at=row.next_at - LEASE,
                    seconds=LEASE.total_seconds(),
                    error="The worker was lost; whether it was sent is not known.",
                )
                for row in rows
            ]
        )


def _end(ids: Collection[uuid.UUID], state: str, reason: str, now: datetime) -> None:
    Delivery.objects.filter(id__in=ids).update(
        state=state, reason=reason, next_at=None, finished_at=now, lease_token=None
    )


def next_due(kind: str) -> datetime | None:
    """When the next delivery of a type may be taken."""
    rows = Delivery.objects.filter(type=kind, next_at__isnull=False)
    return rows.order_by("next_at").values_list("next_at", flat=True).first()
