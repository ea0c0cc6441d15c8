"""/metrics: what Prometheus reads, parsed by its own parser."""

import math
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery import current_app
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from apps_config.models import Change
from availability.models import Calendar
from common.observability.metrics import process_registry
from external_calendars.models import Connection
from notifications.models import (
    Attempt,
    Delivery,
    Endpoint,
    Heartbeat,
    StoredMetrics,
    TaskRun,
    Webhook,
)
from notifications.outbox import poller
from notifications.outbox.heartbeats import record_heartbeat, record_workers
from notifications.tasks import check_deliveries
from notifications.webhooks.services import create_webhook
from ops import metrics, server_metrics, stored_metrics
from ops.stored_metrics import refresh_stored_metrics
from tests.deploy.metric_names import count_in_this_process, needs_promtool
from tests.live import LiveCaller
from tests.queries import Queries
from tests.services import Service, free_port
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

LABELS = ("type", "kind", "state", "result", "percentile", "problem", "queue")
# Of the processes and of the server: they change during a test. tests/common/test_request_log.py
CHANGING = (
    *("http_", "task_", "web_", "database_", "broker_", "redis_", "pooler_"),
    "service_info",
)
Figures = dict[tuple[str, ...], float]
EMPTY = {
    **{
        (name, kind): 0
        for name in (
            *("deliveries_open", "deliveries_due", "deliveries_ready"),
            "deliveries_oldest_due_seconds",
        )
        for kind in Delivery.TYPES
    },
    **{
        ("delivery_attempts", kind, result): 0
        for kind in Delivery.TYPES
        for result in ("ok", "failed", "lost")
    },
    ("webhook_endpoints_open",): 0,
    ("webhooks_disabled",): 0,
    ("calendars_sync_age_seconds",): 0,
    ("transaction_age_seconds",): 0,
    ("changes_lag_seconds",): 0,
    ("beat_age_seconds",): math.inf,
    **{("worker_age_seconds", queue): math.inf for queue in ("celery", *Delivery.TYPES)},
}
FAMILIES = (
    "deliveries_oldest_due_seconds",
    "deliveries_open",
    "deliveries_due",
    "deliveries_ready",
    "deliveries_finished",
    "delivery_attempts",
    "delivery_lag_seconds",
    "webhook_endpoints_open",
    "webhooks_disabled",
    "calendars_connected",
    "calendars_sync_age_seconds",
    "transaction_age_seconds",
    "changes_lag_seconds",
    "bookings",
    "beat_age_seconds",
    "worker_age_seconds",
)


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the counts of this process, which has served the requests of all tests before."""
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 0)
    monkeypatch.setattr(metrics, "process_registry", CollectorRegistry)


def parsed(text: str) -> Figures:
    """(name, *label values, in the order of LABELS) -> value."""
    return {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not family.name.startswith(CHANGING)
    }


def figures() -> Figures:
    """What /metrics says once a worker has stored what it stores each minute."""
    StoredMetrics.objects.update(started_at=None)
    refresh_stored_metrics()
    return scraped()


def scraped() -> Figures:
    response = Client().get("/metrics")
    assert response.status_code == 200
    found = parsed(response.content.decode())
    # Changes of the test's own transaction have no number yet.
    return found | {("changes_lag_seconds",): 0}


def test_lag_of_changes_is_the_age_of_the_oldest_without_number(tenant: Tenant) -> None:
    made_at = timezone.now() - timedelta(seconds=40)
    tenant.make_resource()
    Change.objects.filter(type="resource").update(at=made_at, number=1)
    Change.objects.filter(type="calendar").update(at=made_at)

    lag = parsed(Client().get("/metrics").content.decode())["changes_lag_seconds",]

    assert 40 <= lag < 60


@pytest.fixture
def make_delivery(tenant: Tenant) -> Iterator[Callable[..., Delivery]]:
    """A webhook delivery that is due in an hour, unless told otherwise (moments as timedeltas)."""

    def make(**values: Any) -> Delivery:
        now = timezone.now()
        given = {"due_at": timedelta(hours=1), **values}
        moments = {name: now + span for name, span in given.items() if isinstance(span, timedelta)}
        given |= moments
        if "finished_at" not in given:
            given.setdefault("next_at", given["due_at"])
        return Delivery.objects.create(
            **{
                "app": tenant.app,
                "type": "webhook",
                "kind": "test",
                "endpoint": "https://example.com:443",
                "expires_at": now + timedelta(days=3),
                "created_at": now,
                **given,
            }
        )

    return make


def attempt(delivery: Delivery, *, ago: float, outcome: str = "ok") -> None:
    at = timezone.now() - timedelta(seconds=ago)
    Attempt.objects.create(app=delivery.app, delivery=delivery, at=at, seconds=0.1, outcome=outcome)


# --- The text -------------------------------------------------------------------------------------
def test_text_format(db: None, make_delivery: Callable[..., Delivery]) -> None:
    make_delivery(type="email", kind='a"b\\c', state="failed", finished_at=timedelta(hours=-1))
    refresh_stored_metrics()

    lines = Client().get("/metrics").content.decode().splitlines()

    place = lines.index("# TYPE deliveries_finished gauge")
    assert lines[place - 1 : place + 2] == [
        "# HELP deliveries_finished Deliveries finished in the last 24 hours, by final state.",
        "# TYPE deliveries_finished gauge",
        'deliveries_finished{kind="a\\"b\\\\c",state="failed",type="email"} 1.0',
    ]


def test_metrics_of_an_empty_service(db: None) -> None:
    refresh_stored_metrics()
    response = Client().get("/metrics", headers={"Accept": "text/plain"})

    text = response.content.decode()
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert parsed(text) == EMPTY
    families = {
        family.name: family
        for family in text_string_to_metric_families(text)
        if not family.name.startswith(CHANGING)
    }
    assert tuple(families) == FAMILIES
    assert {family.type for family in families.values()} == {"gauge"}
    assert all(family.documentation for family in families.values())


@needs_promtool
def test_promtool_accepts_each_name(
    tenant: Tenant, make_delivery: Callable[..., Delivery], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every metric has a value here: promtool doesn't see a metric without one."""
    monkeypatch.setattr(metrics, "process_registry", process_registry)
    count_in_this_process()
    attempt(make_delivery(due_at=timedelta(minutes=-2), next_at=timedelta(hours=1)), ago=60)
    make_delivery(state="delivered", finished_at=timedelta(minutes=-1))
    resource = tenant.make_resource()
    span = {"start": "2027-03-23 10:00:00", "end": "2027-03-23 11:00:00"}
    assert tenant.book(resource_id=resource["id"], **span).status == 201
    calendar = Calendar.objects.get(resource=resource["id"])
    Connection.objects.create(calendar=calendar, address="x")

    record_workers(["email"])
    TaskRun.objects.create(task="backup", succeeded_at=timezone.now())
    check_deliveries()
    refresh_stored_metrics()
    scrape = Client().get("/metrics").content

    families = list(text_string_to_metric_families(scrape.decode()))
    assert [family.name for family in families if not family.samples] == []
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=scrape, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")


# --- The figures ----------------------------------------------------------------------------------
def test_metrics_of_open_deliveries(make_delivery: Callable[..., Delivery]) -> None:
    late = timedelta(seconds=-100)
    make_delivery()
    make_delivery(next_at=late)
    make_delivery(next_at=timedelta(seconds=-40))
    make_delivery(type="email", kind="reminder", endpoint="", next_at=timedelta(seconds=-10))
    make_delivery(type="calendar", kind="confirmed", next_at=timedelta(seconds=-50))
    make_delivery(endpoint="https://down.example:443", next_at=timedelta(hours=-2))
    Endpoint.objects.create(
        address="https://down.example:443",
        failures=11,
        open_until=timezone.now() + timedelta(minutes=2),
    )
    Endpoint.objects.create(address="https://slow.example:443", is_slow=True)
    make_delivery(state="sending", next_at=timedelta(seconds=30), lease_token=uuid.uuid4())

    found = figures()

    ages = {key: found.pop(key) for key in list(found) if "oldest" in key[0]}
    assert found == {
        **{key: value for key, value in EMPTY.items() if "oldest" not in key[0]},
        ("deliveries_open", "webhook"): 5,
        ("deliveries_open", "email"): 1,
        ("deliveries_due", "webhook"): 3,
        ("deliveries_ready", "webhook"): 2,
        ("deliveries_ready", "email"): 1,
        ("deliveries_ready", "calendar"): 1,
        ("deliveries_due", "email"): 1,
        ("deliveries_open", "calendar"): 1,
        ("deliveries_due", "calendar"): 1,
        ("webhook_endpoints_open",): 1,
    }
    assert [math.floor(age / 10) for age in ages.values()] == [1, 10, 5]


def test_metrics_of_finished_deliveries(make_delivery: Callable[..., Delivery]) -> None:
    for hours, state in ((1, "delivered"), (2, "delivered"), (3, "failed"), (25, "delivered")):
        make_delivery(state=state, due_at=timedelta(0), finished_at=timedelta(hours=-hours))
    make_delivery(
        type="email",
        kind="confirmed",
        state="skipped",
        due_at=timedelta(0),
        finished_at=timedelta(minutes=-1),
    )

    assert figures() == EMPTY | {
        ("deliveries_finished", "webhook", "test", "delivered"): 2,
        ("deliveries_finished", "webhook", "test", "failed"): 1,
        ("deliveries_finished", "email", "confirmed", "skipped"): 1,
    }


def test_metrics_of_attempts_and_lag(make_delivery: Callable[..., Delivery]) -> None:
    """Of three: one at its first try, one at its second; one whose worker was lost."""
    for lag in (1, 2, 60):
        delivery = make_delivery(due_at=timedelta(seconds=-600 - lag), next_at=timedelta(hours=1))
        if lag == 60:
            attempt(delivery, ago=600, outcome="lost")
        else:
            attempt(delivery, ago=600, outcome="unconfirmed" if lag == 2 else "ok")
    attempt(Delivery.objects.order_by("due_at")[1], ago=300)
    old = make_delivery(due_at=timedelta(hours=-3), next_at=timedelta(hours=1))
    attempt(old, ago=7200, outcome="failed")
    again = make_delivery(due_at=timedelta(seconds=-60), next_at=timedelta(hours=1))
    attempt(again, ago=600)

    found = figures()

    lags = {key: found.pop(key) for key in list(found) if key[0] == "delivery_lag_seconds"}
    assert found == EMPTY | {
        ("deliveries_open", "webhook"): 5,
        ("delivery_attempts", "webhook", "ok"): 3,
        ("delivery_attempts", "webhook", "failed"): 1,
        ("delivery_attempts", "webhook", "lost"): 1,
    }
    assert {key: round(value) for key, value in lags.items()} == {
        ("delivery_lag_seconds", "webhook", "50"): 2,
        ("delivery_lag_seconds", "webhook", "99"): 60,
    }


def test_metrics_of_bookings_webhooks_and_beat(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    for day in (23, 24):
        span = {"start": f"2027-03-{day} 10:00:00", "end": f"2027-03-{day} 11:00:00"}
        assert tenant.book(resource_id=resource["id"], **span).status == 201
    span = {"start": "2027-03-25 10:00:00", "end": "2027-03-25 11:00:00"}
    tenant.book(resource_id=resource["id"], graph="confirm_decline", **span)
    Delivery.objects.all().delete()
    webhooks = [
        create_webhook(app=tenant.app, given={"url": "https://example.com/"})[0] for _ in range(4)
    ]
    own, gone = webhooks[1].id, webhooks[2].id
    Webhook.objects.exclude(id=webhooks[0].id).update(active=False, disabled_reason="Gone.")
    Webhook.objects.filter(id=own).update(disabled_reason="")
    Webhook.objects.filter(id=gone).update(deleted_at=timezone.now())
    record_heartbeat()

    found = figures()

    assert 0 <= found.pop(("beat_age_seconds",)) < 30
    assert found == {key: value for key, value in EMPTY.items() if "beat" not in key[0]} | {
        ("bookings", "confirmed"): 2,
        ("bookings", "tentative"): 1,
        ("webhooks_disabled",): 1,
    }


def test_workers_report_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 29.0, 30.0, 30.0])
    written = []
    monkeypatch.setattr(poller, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(poller, "connection", SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(poller, "record_workers", lambda queues: written.append(sorted(queues)))

    heartbeat = poller.WorkerHeartbeat({"email", "webhook"})
    for _ in range(3):
        heartbeat()

    assert written == [["email", "webhook"]] * 2


def test_metrics_of_workers(db: None) -> None:
    """One heartbeat for all workers of a queue."""
    record_workers(["email", "webhook"])
    record_workers(["email"])
    Heartbeat.objects.filter(name="worker-email").update(
        seen_at=timezone.now() - timedelta(seconds=100)
    )

    found = scraped()
    ages = {queue: found["worker_age_seconds", queue] for queue in ("celery", *Delivery.TYPES)}
    assert ages.pop("webhook") < 30
    assert 100 <= ages.pop("email") < 130
    assert ages == {"celery": math.inf, "calendar": math.inf}


def test_metrics_of_tasks_backups_and_the_nightly_check(
    make_delivery: Callable[..., Delivery],
) -> None:
    hour_ago = timezone.now() - timedelta(hours=1)
    TaskRun.objects.create(task="backup", succeeded_at=hour_ago)
    TaskRun.objects.create(task="notifications.tasks.purge_people")
    check_deliveries()

    text = Client().get("/metrics").content.decode()

    ages = {
        sample.labels["task"]: round(sample.value / 100) if sample.value < math.inf else None
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "task_success_age_seconds"
    }
    assert ages == {"backup": 36, "notifications.tasks.purge_people": None}
    assert scraped()[("delivery_faults",)] == 0


def test_stored_metrics_are_counted_once_a_minute_and_vanish_when_outdated(
    make_delivery: Callable[..., Delivery],
) -> None:
    refresh_stored_metrics()
    make_delivery()
    fresh = StoredMetrics.objects.get().samples
    with Queries(connection) as captured:
        refresh_stored_metrics()
    again = StoredMetrics.objects.get().samples
    StoredMetrics.objects.update(started_at=timezone.now() - timedelta(seconds=61))
    refresh_stored_metrics()
    later = StoredMetrics.objects.get().samples

    assert (again, len(captured) <= 3) == (fresh, True)
    assert later["deliveries_open"] == [
        *([{"type": "email"}, 0], [{"type": "webhook"}, 1], [{"type": "calendar"}, 0])
    ]
    assert ("deliveries_open", "webhook") in scraped()
    StoredMetrics.objects.update(refreshed_at=timezone.now() - timedelta(seconds=301))
    assert [key for key in scraped() if key[0] == "deliveries_open"] == []


def test_ready_deliveries_are_counted_up_to_a_limit(
    make_delivery: Callable[..., Delivery], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_metrics, "MAX_READY", 2)
    for _ in range(3):
        make_delivery(next_at=timedelta(seconds=-1))

    found = figures()

    assert (found["deliveries_ready", "webhook"], found["deliveries_due", "webhook"]) == (2, 3)


@pytest.mark.redis
def test_metrics_of_broker_and_redis(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> tuple[bool | None, bool | None]:
        return server_metrics.broker_up(), server_metrics.redis_up()

    both = seen()
    away = f"redis://127.0.0.1:{free_port()}/0"
    connect = current_app.connection_for_read
    monkeypatch.setattr(
        current_app, "connection_for_read", lambda **options: connect(away, **options)
    )
    settings.REDIS_URL = away
    none_answers = seen()
    settings.REDIS_URL = settings.MESSAGE_BROKER_URL = ""

    assert (both, none_answers, seen()) == ((True, True), (False, False), (None, None))


def test_query_count_is_constant(make_delivery: Callable[..., Delivery]) -> None:
    figures()
    counts = []
    for rows in (1, 5):
        for _ in range(rows):
            attempt(make_delivery(next_at=timedelta(seconds=-1)), ago=1)
        with Queries(connection) as stored:
            StoredMetrics.objects.update(started_at=None)
            refresh_stored_metrics()
        with Queries(connection) as read:
            scraped()
        counts.append((len(stored), len(read)))

    assert counts[0] == counts[1]
    assert (counts[0][0] <= 19, counts[0][1] <= 19) == (True, True), counts


@pytest.mark.postgresql
def test_metrics_of_database_connections(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        limit = int(cursor.fetchone()[0])

    text = Client().get("/metrics").content.decode()

    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name.startswith("database_")
    }
    assert {key[1:] for key in found if key[0] == "database_connections"} == {
        ("active",),
        ("idle in transaction",),
        ("idle",),
    }
    assert found[("database_connections", "active")] >= 1
    assert (found[("database_connections_max",)], found[("database_up",)]) == (limit - 3, 1)


def test_database_outage_keeps_process_metrics(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "process_registry", process_registry)
    Client().get("/healthz")

    def fail() -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(metrics, "database_now", fail)
    text = Client().get("/metrics").content.decode()

    names = {family.name for family in text_string_to_metric_families(text)}
    assert "database_up 0.0" in text.splitlines()
    assert ("http_request_duration_seconds" in names, "deliveries_due" in names) == (True, False)


def test_metrics_have_no_personal_data(tenant: Tenant) -> None:
    resource = tenant.make_resource("Ada Lovelace", email="ada@example.com")
    span = {"start": "2027-03-23 10:00:00", "end": "2027-03-23 11:00:00"}
    assert tenant.book(resource_id=resource["id"], **span).status == 201

    text = Client().get("/metrics").content.decode()

    assert [word for word in ("@", "Ada", "Marty", tenant.app.slug) if word in text] == []


def test_metrics_are_cached(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 60)
    monkeypatch.setattr(metrics, "cached_metrics", metrics.CachedMetrics())
    first = scraped()
    with Queries(connection) as captured:
        again = scraped()

    assert (first, len(captured)) == (again, 0)


def test_concurrent_request_times_out(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PATIENCE", 0)
    with metrics.cached_metrics._lock:
        response = Client().get("/metrics")

    assert (response.status_code, response.json()["code"]) == (503, "unavailable")


# --- Who may read ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("Basic c2VjcmV0LXRva2Vu", 401),
        ("secret-token", 401),
        ("Bearer sécret", 401),
        ("Bearer secret-token", 200),
    ],
)
def test_metrics_token_is_required_if_set(
    db: None, settings: Any, given: str | None, status: int
) -> None:
    settings.METRICS_TOKEN = "secret-token"

    response = Client().get("/metrics", headers={"Authorization": given} if given else {})

    assert response.status_code == status
    if status == 401:
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="metrics"'
        assert response.json() | {"request_id": ""} == {
            "error": "The metrics token is required.",
            "code": "unauthenticated",
            "request_id": "",
        }


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 405)])
def test_metrics_accept_only_get(db: None, method: str, status: int) -> None:
    assert Client().generic(method, "/metrics").status_code == status


def test_beat_records_its_heartbeat(start_service: Callable[..., Service]) -> None:
    service = start_service(workers=1, METRICS_TOKEN="secret-token")
    service.start_worker()
    service.start_beat()
    caller = LiveCaller(service.url)
    refused = caller.get("/metrics")
    service.run("from notifications.tasks import record_heartbeat; record_heartbeat.delay()")
    headers = {"Authorization": "Bearer secret-token"}

    assert refused.status == 401
    for _ in range(60):
        answer = caller.call("GET", "/metrics", headers=headers)
        age = parsed(answer.content.decode())[("beat_age_seconds",)]
        if age < math.inf:
            break
        time.sleep(0.5)
    assert 0 <= age < 30


def test_worker_stores_metrics_and_shows_itself_without_beat(
    start_service: Callable[..., Service],
) -> None:
    service = start_service(workers=1)
    service.start_worker(queue="celery")
    caller = LiveCaller(service.url)
    wanted = {("worker_age_seconds", "celery"), ("deliveries_open", "email")}
    deadline = time.monotonic() + 60
    while True:
        found = parsed(caller.get("/metrics").content.decode())
        if wanted <= {key for key, value in found.items() if value < math.inf}:
            break
        assert time.monotonic() < deadline, service.log("worker")
        time.sleep(0.5)

    assert found["deliveries_open", "email"] == 0
    assert found["worker_age_seconds", "email"] == math.inf
