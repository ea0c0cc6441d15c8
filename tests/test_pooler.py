"""The service behind PgBouncer in transaction mode, with more clients than server connections."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from ops import server_metrics
from tests.chaos.conftest import ADA, BookingClients, Deployment, slug, start_deployment
from tests.live import CUSTOMER, LiveApp
from tests.services import PgBouncer, Service, own_database

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.skipif(not PgBouncer.program(), reason="PgBouncer is not installed"),
]

POOL_SIZE = 3
CLIENTS = 6
START = datetime(2031, 1, 6, 9, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)
SHOW = """
from django.db import connection, transaction
def show():
    with connection.cursor() as cursor:
        names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "jit")
        return [cursor.execute(f"SHOW {name}").fetchone()[0] for name in names]
try:
    print(show())
except Exception as error:
    print(error)
"""
SHOW_AROUND_A_LONG_JOB = f"""{SHOW}
from common.db.sql import no_statement_timeout
with no_statement_timeout():
    print(show())
print(show())
with transaction.atomic():
    print(show())
"""
DOCTOR = """
from ops.doctor import check_direct_connection, check_timeouts
print(check_timeouts().level, check_direct_connection().level)
"""
LIMITS = str(["5s", "15s", "30s", "off"])
NO_LIMITS = str(["0", "0", "0", "on"])


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start_pooler(stack: ExitStack, url: str, **options: object) -> PgBouncer:
    pooler = PgBouncer(url, **options)
    stack.callback(pooler.stop)
    pooler.start()
    return pooler


def body(resource_id: str, number: int) -> dict[str, Any]:
    start = START + number * HALF_AN_HOUR
    times = {"start": start.isoformat(), "end": (start + HALF_AN_HOUR).isoformat()}
    return {"resource_id": resource_id, "what": "Meeting", "customer": CUSTOMER, **times}


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    answers: list[Any] = [None] * len(calls)

    def call(place: int) -> None:
        answers[place] = calls[place]()

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.deep
def test_control_without_db_pooled_timeouts_are_lost(stack: ExitStack, tmp_path: Path) -> None:
    """The control: what DB_POOLED is for."""
    url = stack.enter_context(own_database(tmp_path))
    strict = start_pooler(stack, url)
    lenient = start_pooler(stack, url, ignore_startup_parameters="extra_float_digits,options")
    refused, unlimited = (Service(tmp_path, pooler.url, {}) for pooler in (strict, lenient))
    stack.callback(refused.stop)
    stack.callback(unlimited.stop)

    assert "unsupported startup parameter" in refused.run(SHOW)
    assert unlimited.run(SHOW).strip() == NO_LIMITS
    assert unlimited.run(DOCTOR).strip() == "FAIL ok"


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Web, a worker and beat; they know the pooler, and their long jobs the server."""
    with ExitStack() as stack:
        deployment = start_deployment(stack, tmp_path_factory.mktemp("house"), full=False)
        service = deployment.service
        deployment.pooler = PgBouncer(service.database_url, default_pool_size=POOL_SIZE)
        stack.callback(deployment.pooler.stop)
        service.env |= {
            "DATABASE_URL": deployment.pooler.url,
            "DATABASE_DIRECT_URL": service.database_url,
            "DB_POOLED": "true",
        }
        service.manage("migrate", "--verbosity", "0")
        deployment.pooler.start()
        service.start_web(workers=2, threads=4)
        deployment.start_worker()
        service.start_beat()
        yield deployment


@pytest.mark.redis
def test_the_service_works_through_the_pooler(deployment: Deployment) -> None:
    service = deployment.service
    app = LiveApp(service)
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data["id"]

    shown = service.run(SHOW_AROUND_A_LONG_JOB).splitlines()
    contested = at_once([lambda: app.post("/v2/bookings", body(resource, 0))] * CLIENTS)
    hold = app.post("/v2/bookings/reserve", body(resource, 1) | {"reservation_time": 600})
    stranger = app.post("/v2/bookings", body(resource, 1))
    held = body(resource, 1) | {"reservation_id": hold.data["reservation_id"]}
    holder = app.post("/v2/bookings", held)
    key = {"Idempotency-Key": uuid.uuid4().hex}
    repeated = at_once(
        [lambda: app.call("POST", "/v2/bookings", body(resource, 2), headers=key)] * CLIENTS
    )
    with closing(psycopg.connect(deployment.pooler.url)) as writer:
        begun = writer.execute("SELECT transaction_timestamp()").fetchone()[0]
        changes = app.get("/v2/bookings?updated_since=2026-01-01")
    complete_until = datetime.fromisoformat(changes.headers["Service-Complete-Until"])

    assert shown == [LIMITS, str(["5s", "0", "30s", "off"]), LIMITS, LIMITS]
    assert service.run(DOCTOR).strip() == "ok ok"
    assert Counter(answer.code for answer in contested) == {
        "201": 1,
        "409 slot_taken": CLIENTS - 1,
    }
    assert [hold.status, stranger.code, holder.status] == [201, "409 slot_taken", 201]
    assert len({answer.data["id"] for answer in repeated if answer.status == 201}) == 1
    assert {answer.code for answer in repeated} <= {"201", "409 idempotency_in_progress"}
    assert (changes.status, complete_until <= begun) == (200, True)
    assert app.get("/v2/bookings").json["total"] == 3
    assert "UNEXPECTED" not in service.log("web")


@pytest.mark.chaos
@pytest.mark.redis
def test_workers_and_the_pooler_are_killed_under_load(deployment: Deployment) -> None:
    """Each acknowledged booking is kept, each mail leaves, nothing is restarted by hand."""
    service = deployment.service
    made = deployment.fill(f"make_app({slug()!r}, {CLIENTS})")
    with BookingClients(service.url, made["key"], made["resources"]) as clients:
        time.sleep(2)
        deployment.kill_busiest("worker")
        for _ in range(2):
            time.sleep(1)
            deployment.pooler.kill()
            time.sleep(0.5)
            deployment.pooler.start()
        time.sleep(2)
    deployment.wait_until_done(60)

    assert set(clients.codes) <= {"201", "503 unavailable"}
    assert clients.stored() == sorted(set(clients.acknowledged))
    mails = [mail.id for mail in deployment.mails.mails if mail.to == [ADA["email"]]]
    assert len(set(mails)) == len(clients.acknowledged)
    assert all(process.poll() is None for process in service.processes.values())
    assert "UNEXPECTED" not in service.log("web") + service.log("worker")
    deployment.verify()


def postgres_now(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT now()")


def test_metrics_tell_how_many_clients_wait(
    stack: ExitStack, service_database_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"default_pool_size": 1, "query_wait_timeout": 60}
    pooler = start_pooler(stack, service_database_url, stats_users="postgres", **limits)
    address = urlsplit(pooler.url)
    server = {
        "HOST": address.hostname,
        "PORT": address.port,
        "USER": address.username,
        "PASSWORD": "",
        "NAME": address.path.strip("/"),
    }
    monkeypatch.setattr(server_metrics, "connection", SimpleNamespace(settings_dict=server))
    settings.DB_POOLED = True
    with psycopg.connect(pooler.url) as holder:
        holder.execute("SELECT 1")
        none = server_metrics.pooler_clients_waiting()
        waiter = threading.Thread(target=lambda: postgres_now(pooler.url))
        waiter.start()
        deadline = time.monotonic() + 30
        while not (waiting := server_metrics.pooler_clients_waiting()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    waiter.join()
    server["USER"] = "nobody"
    refused = server_metrics.pooler_clients_waiting()
    settings.DB_POOLED = False

    assert (none, waiting, refused) == (0, 1, None)
    assert server_metrics.pooler_clients_waiting() is None
