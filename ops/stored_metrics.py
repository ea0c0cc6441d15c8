"""The metrics that read many rows: workers of the queue `celery` store them once a minute, so that
a scrape of /metrics reads one row, however many nodes are scraped.

Finished deliveries are counted over a window (a day, an hour): retention deletes rows, and a
counter that falls would look like a restart.
"""

import math
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, Value, When

from common.db.replica import read_on_replica
from common.db.sql import database_now
from notifications.models import Attempt, ChangeCalls, Delivery, StoredMetrics
from notifications.outbox.overdue import overdue_deliveries
from notifications.outbox.poller import Poll, polls

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
REFRESHED_EVERY = timedelta(minutes=1)
# Older samples say nothing about the present.
OUTDATED = timedelta(minutes=5)
# The lag is measured on the newest first attempts of the hour.
SAMPLE = 5000
PERCENTILES = (50, 99)
# So many ready deliveries are counted: enough to start all workers.
MAX_READY = 10_000

Sample = tuple[dict[str, str], float]  # labels, value
Samples = dict[str, list[Sample]]

HELP = {
    "deliveries_open": "Unfinished deliveries.",
    "deliveries_due": "Overdue deliveries.",
    "deliveries_ready": "Overdue deliveries (10000 at most), not counting servers that are down.",
    "deliveries_finished": "Deliveries finished in the last 24 hours, by final state.",
    "delivery_attempts": "Attempts in the last hour.",
    "delivery_lag_seconds": (
        "Time from due to first attempt, in the last hour (newest 5000 deliveries)."
    ),
    "database_bytes": "Size of the database on its disk.",
    "delivery_faults": "Missing and duplicate deliveries that the nightly check found.",
}


# --- Storing --------------------------------------------------------------------------------------
def refresh_stored_metrics() -> None:
    """Store the samples anew unless they are fresh. Of concurrent calls, one does the work."""
    now = database_now()
    StoredMetrics.objects.get_or_create(name=StoredMetrics.MINUTE)
    row = StoredMetrics.objects.filter(name=StoredMetrics.MINUTE)
    is_due = Q(started_at=None) | Q(started_at__lte=now - REFRESHED_EVERY)
    if row.filter(is_due).update(started_at=now):
        row.update(samples=count_samples(now), refreshed_at=now)


def stored_samples(now: datetime) -> Samples:
    """Return the stored samples by metric: the nightly ones, and those of the minute unless they
    are outdated."""
    samples: Samples = {}
    for row in StoredMetrics.objects.all():
        is_outdated = row.refreshed_at is None or row.refreshed_at < now - OUTDATED
        if row.name != StoredMetrics.MINUTE or not is_outdated:
            samples |= row.samples
    return samples


polls.register(Poll("celery", refresh_stored_metrics))


# --- Counting -------------------------------------------------------------------------------------
def count_samples(now: datetime) -> Samples:
    return _waiting(now) | read_on_replica(lambda: _past(now)) | {"database_bytes": [({}, _size())]}


def _past(now: datetime) -> Samples:
    return {
        "deliveries_finished": [*_finished(now)],
        "delivery_attempts": [*_attempts(now)],
        "delivery_lag_seconds": [*_first_attempt_lags(now)],
    }


def _waiting(now: datetime) -> Samples:
    """Count with the partial indexes of open rows only, however many are due.

    The calls of a change that is not expanded to deliveries yet count as one.
    """
    is_due = Q(next_at__lte=now)
    counts = Delivery.objects.open().order_by().values_list("type")
    counts_by_label = {
        kind: (opened, due)
        for kind, opened, due in counts.annotate(opened=Count("id"), due=Count("id", filter=is_due))
    }
    opened = {kind: counts_by_label.get(kind, (0, 0))[0] for kind in Delivery.TYPES}
    due = {kind: counts_by_label.get(kind, (0, 0))[1] for kind in Delivery.TYPES}
    ready = {kind: _count_ready(kind, now) for kind in Delivery.TYPES}
    pending = ChangeCalls.objects.pending().count()
    for counted in (opened, due, ready):
        counted[Delivery.WEBHOOK] += pending
    return {
        "deliveries_open": _by_type(opened),
        "deliveries_due": _by_type(due),
        "deliveries_ready": _by_type(ready),
    }


def _by_type(counts: dict[str, int]) -> list[Sample]:
    return [({"type": kind}, count) for kind, count in counts.items()]


def _count_ready(kind: str, now: datetime) -> int:
    return overdue_deliveries(now).filter(type=kind)[:MAX_READY].count()


def _finished(now: datetime) -> Iterator[Sample]:
    rows = Delivery.objects.filter(finished_at__gt=now - DAY).order_by("type", "kind", "state")
    for kind, event, state, count in rows.values_list("type", "kind", "state").annotate(
        Count("id")
    ):
        yield {"type": kind, "kind": event, "state": state}, count


def _attempts(now: datetime) -> Iterator[Sample]:
    """Yield the number of attempts by type and result."""
    failures = When(outcome=Attempt.UNCONFIRMED, then=Value(Attempt.FAILED))
    rows = Attempt.objects.filter(at__gt=now - HOUR).annotate(
        _result=Case(failures, default="outcome", output_field=CharField())
    )
    counts = rows.order_by().values_list("delivery__type", "_result").annotate(Count("id"))
    counts_by_label = {(kind, result): count for kind, result, count in counts}
    for kind in sorted({*Delivery.TYPES, *(kind for kind, _ in counts_by_label)}):
        for result in (Attempt.OK, Attempt.FAILED, Attempt.LOST):
            yield {"type": kind, "result": result}, counts_by_label.get((kind, result), 0)


def _first_attempt_lags(now: datetime) -> Iterator[Sample]:
    """Yield percentiles of the seconds from due time to first attempt.

    Redelivered deliveries are left out: their new due time is later than their first attempt.
    """
    before = Attempt.objects.filter(delivery=OuterRef("delivery"), id__lt=OuterRef("id"))
    firsts = Attempt.objects.filter(
        ~Exists(before), at__gt=now - HOUR, at__gte=F("delivery__due_at")
    )
    rows = firsts.order_by("-at").values_list("delivery__type", "at", "delivery__due_at")
    lags: dict[str, list[float]] = {}
    for kind, at, due_at in rows[:SAMPLE]:
        lags.setdefault(kind, []).append((at - due_at).total_seconds())
    for kind in sorted(lags):
        yield from _percentiles(kind, sorted(lags[kind]))


def _percentiles(kind: str, ordered: list[float]) -> Iterable[Sample]:
    for percentile in PERCENTILES:
        rank = math.ceil(percentile * len(ordered) / 100) - 1
        yield {"type": kind, "percentile": str(percentile)}, round(ordered[rank], 3)


def _size() -> int:
    """Return the size of the database in bytes."""
    size = "SELECT pg_database_size(current_database())"
    if connection.vendor != "postgresql":
        size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    with connection.cursor() as cursor:
        cursor.execute(size)
        return cursor.fetchone()[0]
