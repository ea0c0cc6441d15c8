"""The service behind PgBouncer in transaction mode, with more clients than server connections."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.chaos.conftest import House, open_house
from tests.live import CUSTOMER, LiveApp, LiveCaller
from tests.services import PgBouncer, Service, own_database

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.skipif(not PgBouncer.program(), reason="PgBouncer is not installed"),
]

POOL_SIZE = 3
CLIENTS = 6
RUSH = {"name": "Doc Brown", "email": "rush@example.com"}
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
from common.sql import no_statement_timeout
with no_statement_timeout():
    print(show())
print(show())
with transaction.atomic():
    print(show())
"""
DOCTOR = """
from ops.doctor import check_timeouts
print(check_timeouts().level)
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


def test_without_the_mode_the_pooler_refuses_the_service_or_drops_its_timeouts(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The control: what DB_POOLED is for."""
    url = stack.enter_context(own_database(tmp_path))
    strict = start_pooler(stack, url)
    lenient = start_pooler(stack, url, ignore_startup_parameters="extra_float_digits,options")
    refused, unlimited = (Service(tmp_path, pooler.url, {}) for pooler in (strict, lenient))
    stack.callback(refused.stop)
    stack.callback(unlimited.stop)

    assert "unsupported startup parameter" in refused.run(SHOW)
    assert unlimited.run(SHOW).strip() == NO_LIMITS
    assert unlimited.run(DOCTOR).strip() == "FAIL"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Web, a worker and beat; they know the pooler, and their long jobs the server."""
    with ExitStack() as stack:
        house = open_house(stack, tmp_path_factory.mktemp("house"), full=False)
        service = house.service
        house.pooler = PgBouncer(service.database_url, default_pool_size=POOL_SIZE)
        stack.callback(house.pooler.stop)
        service.env |= {
            "DATABASE_URL": house.pooler.url,
            "DATABASE_DIRECT_URL": service.database_url,
            "DB_POOLED": "true",
        }
        service.shell.env = service.env
        service.manage("migrate", "--verbosity", "0")
        house.pooler.start()
        service.start_web(workers=2, threads=4)
        house.start_worker()
        service.start_beat()
        yield house


@pytest.mark.redis
def test_the_service_works_through_the_pooler(house: House) -> None:
    service = house.service
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
    with closing(psycopg.connect(house.pooler.url)) as writer:
        begun = writer.execute("SELECT transaction_timestamp()").fetchone()[0]
        changes = app.get("/v2/bookings?updated_since=2026-01-01")
    complete_until = datetime.fromisoformat(changes.headers["Service-Complete-Until"])

    assert shown == [LIMITS, str(["5s", "0", "30s", "off"]), LIMITS, LIMITS]
    assert service.run(DOCTOR).strip() == "ok"
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


@pytest.mark.redis
def test_workers_and_the_pooler_are_killed_under_load(house: House) -> None:
    """Each acknowledged booking is kept, each mail leaves, nothing is restarted by hand."""
    service = house.service
    app = LiveApp(service)
    resources = [
        app.post("/v2/resources", {"name": f"Room {number}", "timezone": "UTC"}).data["id"]
        for number in range(CLIENTS)
    ]
    done = threading.Event()
    answers: list[Counter[str]] = [Counter() for _ in resources]
    kept: list[list[str]] = [[] for _ in resources]

    def work(client: int) -> None:
        number = 0
        while not done.is_set():
            key = {"Idempotency-Key": f"{client}-{number}"}
            wanted = body(resources[client], number) | {"customer": RUSH}
            answer = LiveCaller(service.url, app.key).call("POST", "/v2/bookings", wanted, key)
            answers[client][answer.code] += 1
            if answer.status == 201:
                kept[client].append(answer.data["id"])
                number += 1
            done.wait(0.3)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    done.wait(2)
    house.kill_busiest("worker")
    for _ in range(2):
        done.wait(1)
        house.pooler.kill()
        done.wait(0.5)
        house.pooler.start()
    done.wait(2)
    done.set()
    for thread in threads:
        thread.join()
    house.wait_until_done(60)

    total = sum(answers, Counter())
    acknowledged = [booking for client in kept for booking in client]
    stored = app.get("/v2/bookings?limit=1000").json
    assert set(total) <= {"201", "503 unavailable"}
    assert stored["total"] == len(acknowledged)
    assert {row["id"] for row in stored["data"]} == set(acknowledged)
    assert house.states() == {"delivered": len({mail.id for mail in house.mails.mails})}
    assert len({mail.id for mail in house.mails.mails if mail.to == [RUSH["email"]]}) == (
        len(acknowledged)
    )
    assert all(process.poll() is None for process in service.processes.values())
    assert "UNEXPECTED" not in service.log("web") + service.log("worker")
    house.verify()
