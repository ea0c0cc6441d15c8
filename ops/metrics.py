"""/metrics: deliveries, bookings, beat, requests and tasks for Prometheus (text format 0.0.4).

What the database says is read at each scrape and given as gauges. Finished deliveries are counted
over a window (a day, an hour): retention deletes rows, and a counter that falls would look like a
restart. Requests and tasks are counted by the processes (`common/observability/metrics.py`).
"""

import math
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, Sum, Value, When
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from prometheus_client import Metric, generate_latest
from rest_framework.request import Request

from apps_config.models import ListingTally
from common.api.views import PublicApiView
from common.db.connections import REPLICA
from common.db.replica import read_on_replica, replica_lag
from common.db.sql import database_now
from common.db.updated_at import oldest_transaction_age
from common.errors import Refusal, Unavailable, discard_connection, is_outage
from common.observability.metrics import process_registry
from common.openapi.components import METRICS
from external_calendars.sync.health_queries import count_problems, max_seconds_stale
from notifications.models import Attempt, ChangeCalls, Delivery, Endpoint, Webhook
from notifications.outbox.beat_heartbeat import last_heartbeat
from notifications.outbox.overdue import oldest_overdue, seconds_since
from ops.metrics_token import is_authorized

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# More frequent scrapes get the same text; one scrape at a time queries the database.
FRESH_SECONDS = 5.0
PATIENCE = 2.0  # seconds
# The lag is measured on the newest first attempts of the hour.
SAMPLE = 5000
PERCENTILES = (50, 99)

Sample = tuple[dict[str, str], float]  # labels, value


# --- Metrics --------------------------------------------------------------------------------------
class DatabaseCollector:
    """Reads all metrics at each scrape, by the database's clock."""

    def collect(self) -> Iterator[Metric]:
        """Return the gauges, or only database_up 0: requests are to be seen in an outage too."""
        try:
            gauges = [*read_gauges(database_now())]
        except (DatabaseError, InterfaceError) as error:
            if not is_outage(error):
                raise
            discard_connection(error)
            gauges = []
        up = _single("database_up", "1 if the database answers.", bool(gauges))
        return iter([up, *gauges])


def read_gauges(now: datetime) -> Iterator[Metric]:
    yield from _waiting(now)
    yield from read_on_replica(lambda: [*_past_deliveries(now)])
    open_breakers = Endpoint.objects.filter(open_until__gt=now).count()
    yield _single("webhook_endpoints_open", "Servers with an open circuit breaker.", open_breakers)
    disabled = Webhook.objects.filter(active=False, deleted_at=None).exclude(disabled_reason="")
    yield _single("webhooks_disabled", "Webhooks disabled after failures.", disabled.count())
    yield _gauge(
        "calendars_connected",
        "Connected calendars, by problem.",
        [({"problem": problem}, count) for problem, count in count_problems().items()],
    )
    yield _single(
        "calendars_sync_age_seconds",
        "Time since the oldest last sync of all calendars that are synced.",
        max_seconds_stale(now),
    )
    yield _single(
        "transaction_age_seconds",
        "Age of the oldest open transaction; later changes are not listed yet.",
        oldest_transaction_age().total_seconds(),
    )
    if connection.vendor == "postgresql":
        yield from _connections()
    if REPLICA in settings.DATABASES:
        yield _single("replica_lag_seconds", "Age of the replica; +Inf: away.", replica_lag())
    yield _gauge("bookings", "Bookings that are not deleted.", _bookings())
    seen_at = last_heartbeat()
    age = seconds_since(seen_at, now) if seen_at else math.inf
    yield _single("beat_age_seconds", "Time since beat's last heartbeat; +Inf: never seen.", age)


def _past_deliveries(now: datetime) -> Iterator[Metric]:
    yield _gauge(
        "deliveries_finished",
        "Deliveries finished in the last 24 hours, by final state.",
        _finished(now),
    )
    yield _gauge("delivery_attempts", "Attempts in the last hour.", _attempts(now))
    yield _gauge(
        "delivery_lag_seconds",
        "Time from due to first attempt, in the last hour (newest 5000 deliveries).",
        _first_attempt_lags(now),
    )


def _gauge(name: str, help_text: str, samples: Iterable[Sample]) -> Metric:
    gauge = Metric(name, help_text, "gauge")
    for labels, value in samples:
        gauge.add_sample(name, labels, round(value, 3))
    return gauge


def _single(name: str, help_text: str, value: float) -> Metric:
    return _gauge(name, help_text, [({}, value)])


def _waiting(now: datetime) -> Iterator[Metric]:
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
    pending = ChangeCalls.objects.pending().count()
    opened[Delivery.WEBHOOK] += pending
    due[Delivery.WEBHOOK] += pending
    ages = {kind: seconds_since(oldest_overdue(kind, now), now) for kind in Delivery.TYPES}
    for name, help_text, values in (
        ("deliveries_open", "Unfinished deliveries.", opened),
        ("deliveries_due", "Overdue deliveries.", due),
        (
            "deliveries_oldest_due_seconds",
            "Waiting time of the oldest due delivery (not counting servers that are down).",
            ages,
        ),
    ):
        yield _gauge(name, help_text, [({"type": kind}, values[kind]) for kind in Delivery.TYPES])


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
        ordered = sorted(lags[kind])
        for percentile in PERCENTILES:
            rank = math.ceil(percentile * len(ordered) / 100) - 1
            yield {"type": kind, "percentile": str(percentile)}, ordered[rank]


_COUNT_CONNECTIONS = """
SELECT current_setting('max_connections')::int
- current_setting('superuser_reserved_connections')::int,
count(*) FILTER (WHERE state = 'active'), count(*) FILTER (WHERE state LIKE 'idle in transaction%'),
count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
"""


def _connections() -> Iterator[Metric]:
    """The server's connections, of all its databases: they share one limit."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_CONNECTIONS)
        limit, active, in_transaction, count = cursor.fetchone()
    states = {"active": active, "idle in transaction": in_transaction}
    states["idle"] = count - active - in_transaction
    yield _gauge(
        "database_connections",
        "Connections to the database server, by state.",
        [({"state": state}, number) for state, number in states.items()],
    )
    yield _single("database_connections_max", "How many the server allows.", limit)


def _bookings() -> Iterator[Sample]:
    tally = ListingTally.objects.filter(listing=ListingTally.BOOKINGS)
    for state, count in tally.order_by("part").values_list("part").annotate(Sum("count")):
        yield {"state": state}, count


# --- The view -------------------------------------------------------------------------------------
class MetricsTokenRequired(Refusal):
    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__(
            "The metrics token is required.", headers={"WWW-Authenticate": 'Bearer realm="metrics"'}
        )


class CachedMetrics:
    """Caches the text for FRESH_SECONDS; concurrent scrapes wait for the one that reads it.

    They wait for PATIENCE at most: a slow database must not block all threads of a web process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = b""
        self._taken: float | None = None

    def text(self) -> bytes:
        if not self._lock.acquire(timeout=PATIENCE):
            raise Unavailable
        try:
            if self._taken is None or time.monotonic() - self._taken >= FRESH_SECONDS:
                self._text = generate_latest(DatabaseCollector())
                self._text += generate_latest(process_registry())
                self._taken = time.monotonic()
            return self._text
        finally:
            self._lock.release()


cached_metrics = CachedMetrics()

EXAMPLE = """\
# HELP deliveries_due Overdue deliveries.
# TYPE deliveries_due gauge
deliveries_due{type="email"} 0.0
deliveries_due{type="webhook"} 3.0
"""


class MetricsView(PublicApiView):
    operation_ids = {"GET": "retrieveMetrics"}
    json_only = False
    tag = "service"

    @extend_schema(
        summary="Metrics for Prometheus",
        description="Text format 0.0.4. If the operator has set a token, it is required:"
        " `Authorization: Bearer <token>`.",
        responses={
            (200, "text/plain"): METRICS,
            401: OpenApiResponse(
                {"$ref": "#/components/schemas/Error401"},
                "The token is missing or wrong.",
                [
                    OpenApiExample(
                        "unauthenticated",
                        MetricsTokenRequired().body("1f0e6a54c2b14d0f8d6f0a9c3b7e5d21"),
                    )
                ],
            ),
        },
        examples=[
            OpenApiExample(
                "its head",
                value=EXAMPLE,
                media_type="text/plain",
                response_only=True,
                status_codes=["200"],
            )
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        if not is_authorized(request.META.get("HTTP_AUTHORIZATION", "")):
            raise MetricsTokenRequired
        return HttpResponse(cached_metrics.text(), content_type=CONTENT_TYPE)
