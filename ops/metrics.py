"""/metrics: deliveries, bookings, beat, requests and tasks for Prometheus (text format 0.0.4).

What the database says is read at each scrape and given as gauges; what reads many rows is stored
once a minute (`stored_metrics.py`). Requests and tasks are counted by the processes
(`common/observability/metrics.py`).
"""

import math
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Sum
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from prometheus_client import Metric, generate_latest
from rest_framework.request import Request

from apps_config.changes import oldest_unnumbered
from apps_config.models import ListingTally
from common.api.views import PublicApiView
from common.db.connections import REPLICA
from common.db.replica import replica_lag
from common.db.sql import database_now
from common.db.updated_at import oldest_transaction_age
from common.errors import Refusal, Unavailable, discard_connection, is_outage
from common.observability.metrics import process_registry
from common.openapi.components import ERROR, METRICS
from external_calendars.sync.health_queries import count_problems, max_seconds_stale
from notifications.models import Delivery, Endpoint, Heartbeat, TaskRun, Webhook
from notifications.outbox.heartbeats import last_heartbeats, worker_of
from notifications.outbox.overdue import oldest_overdue, seconds_since
from ops.metrics_token import is_authorized
from ops.server_metrics import broker_up, pooler_clients_waiting, redis_up
from ops.stored_metrics import HELP, Sample, stored_samples

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# More frequent scrapes get the same text; one scrape at a time queries the database.
FRESH_SECONDS = 5.0
PATIENCE = 2.0  # seconds


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
        return iter([_version(), up, *gauges, *_servers()])


def read_gauges(now: datetime) -> Iterator[Metric]:
    yield _gauge(
        "deliveries_oldest_due_seconds",
        "Waiting time of the oldest due delivery (not counting servers that are down).",
        _oldest_due(now),
    )
    yield from _stored(now)
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
    yield _single(
        "changes_lag_seconds",
        "Age of the oldest change that GET /v2/changes does not list yet.",
        seconds_since(oldest_unnumbered(), now),
    )
    if connection.vendor == "postgresql":
        yield from _connections()
        yield from _wal_archiving()
    if REPLICA in settings.DATABASES:
        yield _single("replica_lag_seconds", "Age of the replica; +Inf: away.", replica_lag())
    yield _gauge("bookings", "Bookings that are not deleted.", _bookings())
    yield from _heartbeats(now)
    yield _gauge(
        "task_success_age_seconds",
        "Time since a daily or hourly task, or a backup, last succeeded; +Inf: never.",
        _task_runs(now),
    )


def _gauge(name: str, help_text: str, samples: Iterable[Sample]) -> Metric:
    gauge = Metric(name, help_text, "gauge")
    for labels, value in samples:
        gauge.add_sample(name, labels, round(value, 3))
    return gauge


def _single(name: str, help_text: str, value: float) -> Metric:
    return _gauge(name, help_text, [({}, value)])


def _version() -> Metric:
    return _gauge("service_info", "The release of this node.", [({"version": settings.VERSION}, 1)])


def _servers() -> Iterator[Metric]:
    """What this node sees of the broker, of Redis and of the pooler, as far as they are set."""
    for name, help_text, value in (
        ("broker_up", "1 if the broker of wake-ups answers this node.", broker_up()),
        ("redis_up", "1 if the Redis of rates answers this node.", redis_up()),
        (
            "pooler_clients_waiting",
            "Clients of the pooler that wait for a connection.",
            pooler_clients_waiting(),
        ),
    ):
        if value is not None:
            yield _single(name, help_text, value)


def _oldest_due(now: datetime) -> Iterator[Sample]:
    for kind in Delivery.TYPES:
        yield {"type": kind}, seconds_since(oldest_overdue(kind, now), now)


def _stored(now: datetime) -> Iterator[Metric]:
    samples = stored_samples(now)
    for name, help_text in HELP.items():
        if name in samples:
            yield _gauge(name, help_text, samples[name])


def _heartbeats(now: datetime) -> Iterator[Metric]:
    seen_at = last_heartbeats()

    def age(name: str) -> float:
        return seconds_since(seen_at[name], now) if name in seen_at else math.inf

    beat = age(Heartbeat.BEAT)
    yield _single("beat_age_seconds", "Time since beat's last heartbeat; +Inf: never seen.", beat)
    yield _gauge(
        "worker_age_seconds",
        "Time since the last heartbeat of a queue's workers; +Inf: never seen.",
        [({"queue": queue}, age(worker_of(queue))) for queue in settings.CELERY_TASK_QUEUES],
    )


def _task_runs(now: datetime) -> Iterator[Sample]:
    """Yield the ages of daily and hourly tasks, and of backups if there ever was one."""
    for task, succeeded_at in TaskRun.objects.order_by("task").values_list("task", "succeeded_at"):
        yield {"task": task}, seconds_since(succeeded_at, now) if succeeded_at else math.inf


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


_ARCHIVING_FAILS = """
SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)
FROM pg_stat_archiver WHERE current_setting('archive_mode') <> 'off'
"""


def _wal_archiving() -> Iterator[Metric]:
    """Nothing unless the server archives its write-ahead log (`archive_mode`)."""
    with connection.cursor() as cursor:
        cursor.execute(_ARCHIVING_FAILS)
        for (fails,) in cursor.fetchall():
            yield _single("wal_archiving_fails", "1 if the last try to archive WAL failed.", fails)


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
                ERROR,
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
