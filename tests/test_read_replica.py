"""Reads from a streaming replica: who may read there, and nobody misses what they wrote."""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import psycopg
import pytest

from common.db import last_writes
from common.db import replica as read_replica
from tests.live import CUSTOMER, LiveAnswer, LiveApp, LiveCaller
from tests.services import PostgreSQL, Redis, Replica, Service, make_database, with_database

pytestmark = [pytest.mark.postgresql, pytest.mark.redis]

NAME = "booking"
READS = 24  # enough to reach both processes of web
UNGUARDED = {"X-Unguarded": "1"}
LIMITS = """
from common.db.connections import REPLICA, use_connection
from django.db import connection
names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "jit")
with use_connection(REPLICA), connection.cursor() as cursor:
    print([cursor.execute(f"SHOW {name}").fetchone()[0] for name in names])
"""
FINDING = """
from ops.doctor import check_replica
print(check_replica().level, check_replica().seen)
"""
# A lock that is replayed ends the replica's readers of the table.
CONFLICT = """
import threading, psycopg
from django.db import connection
from common.db.replica import read_on_replica, replica
seen = []
def lock():
    with psycopg.connect({url!r}) as other:
        other.execute("LOCK TABLE apps_config_app IN ACCESS EXCLUSIVE MODE")
def read():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        seen.extend(cursor.fetchone())
        if seen[-1]:
            threading.Timer(0.2, lock).start()
            cursor.execute("SELECT pg_sleep(60) FROM (SELECT count(*) FROM apps_config_app) AS a")
read_on_replica(read)
print(seen, replica.paused_until)
"""
OFFICE_LIST = """
from django.test import Client
from apps_config.models import Account
from common.db import last_writes
from common.db import replica as read_replica
read_replica.MAX_LAG = read_replica.SAMPLE_SECONDS = 3600.0
account = Account.objects.get(email={email!r})
client = Client()
client.force_login(account)
def lists(name):
    page = client.get("/admin/availability/resource/", headers={{"host": "localhost"}})
    return page.status_code, name in page.text
"""
OFFICE_READS = """
print(lists("unseen"))
read_replica.note_write(f"account-{account.pk}")
print(lists("unseen"))
read_replica.MAX_LAG, read_replica.SAMPLE_SECONDS = 1.0, 0.25
"""
WITHOUT_REDIS = """
import math
from common.db import last_writes
from common.db import replica as read_replica
replica = read_replica.replica
position = read_replica.read_position()
replica.last_writes.paused_until = math.inf
replica.note_write("ada")
print(replica.replayed_position(position) >= position, replica.may_serve("ada"))
"""


class Pair(NamedTuple):
    primary: PostgreSQL
    replica: Replica
    service: Service
    app: LiveApp

    def run_on_replica(self, statement: str) -> Any:
        with psycopg.connect(self.replica.url, autocommit=True) as connection:
            return connection.execute(statement).fetchone()[0]

    @contextmanager
    def paused_replay(self) -> Iterator[None]:
        """The replica has everything up to now, and nothing later."""
        self.wait_for_replay()
        self.run_on_replica("SELECT pg_wal_replay_pause()::text")
        wait_until(
            lambda: self.run_on_replica("SELECT pg_get_wal_replay_pause_state()") == "paused"
        )
        try:
            yield
        finally:
            self.run_on_replica("SELECT pg_wal_replay_resume()::text")

    def wait_for_replay(self) -> None:
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            end = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()[0]
        wait_until(lambda: self.run_on_replica(f"SELECT pg_last_wal_replay_lsn() >= '{end}'"))


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with ExitStack() as stack:
        primary = PostgreSQL()
        stack.callback(primary.stop)
        primary.start()
        folder = tmp_path_factory.mktemp("pair")
        url = make_database(primary, NAME, folder)
        replica = Replica(primary)
        stack.callback(replica.stop)
        replica.start()
        redis = Redis()
        stack.callback(redis.stop)
        redis.start()
        urls = {
            "DATABASE_REPLICA_URL": with_database(replica.url, NAME),
            "REDIS_URL": redis.url,
        }
        service = Service(folder, url, urls)
        stack.callback(service.stop)
        service.start_web(workers=2, threads=4, wsgi="tests.replica_wsgi")
        app = LiveApp(service)
        yield Pair(primary, replica, service, app)


def make_resource(app: LiveCaller, name: str) -> str:
    return app.post("/v2/resources", {"name": name, "timezone": "UTC"}).data["id"]


def names(answer: LiveAnswer) -> set[str]:
    assert answer.status == 200, answer.content
    return {row["name"] for row in answer.data}


def readers_that_miss(name: str, caller: LiveCaller, headers: dict[str, str] | None = None) -> int:
    """How many of READS requests do not list the resource."""
    answers = [caller.call("GET", "/v2/resources", headers=headers) for _ in range(READS)]
    return sum(name not in names(answer) for answer in answers)


def test_a_reader_never_misses_its_own_write(pair: Pair) -> None:
    app, owner = pair.app, pair.app.owner()

    with pair.paused_replay():
        make_resource(app, "after")
        own = readers_that_miss("after", app)
        of_another = readers_that_miss("after", owner)
        unguarded = readers_that_miss("after", app, UNGUARDED)
        changes = app.get("/v2/resources?updated_since=2026-01-01")
    pair.wait_for_replay()

    assert own == 0
    assert of_another > 0  # who wrote nothing may read there
    assert unguarded > 0  # the control
    assert "after" in names(changes)
    assert readers_that_miss("after", owner) == 0


def test_availability_reads_the_replica_and_bookings_the_primary(pair: Pair) -> None:
    app, owner = pair.app, pair.app.owner()
    resource_id = make_resource(app, "Ada")
    times = {"start": "2031-01-06T09:00:00+00:00", "end": "2031-01-06T10:00:00+00:00"}
    query = {
        "resources": [resource_id],
        "length": "1 hour",
        "from": times["start"],
        "to": times["end"],
    }
    booking = {"resource_id": resource_id, "what": "Meeting", "customer": CUSTOMER, **times}

    def offers(caller: LiveCaller) -> set[int]:
        answers = [caller.post("/v2/availability", query) for _ in range(READS)]
        return {len(answer.data) for answer in answers}

    with pair.paused_replay():
        free = offers(owner)
        booked = app.post("/v2/bookings", booking)
        own, of_another = offers(app), offers(owner)
        again = owner.post("/v2/bookings", booking)

    assert (free, booked.status, own) == ({1}, 201, {0})
    assert 1 in of_another
    assert again.code == "409 slot_taken"


def test_back_office_lists_read_the_replica(pair: Pair) -> None:
    pair.wait_for_replay()
    list_resources = OFFICE_LIST.format(email=pair.app.owner_email)
    pair.service.run(f"{list_resources}lists('')")  # now the process knows a position

    with pair.paused_replay():
        make_resource(pair.app, "unseen")
        printed = pair.service.run(list_resources + OFFICE_READS)

    assert printed.splitlines() == ["(200, False)", "(200, True)"]


def test_replica_has_timeouts_and_a_doctor_finding(pair: Pair) -> None:
    pair.wait_for_replay()

    assert pair.service.run(LIMITS).strip() == "['5s', '15s', '30s', 'off']"
    assert pair.service.run(FINDING).strip() == "ok less than 1 s behind"


def test_cancelled_replica_read_is_repeated_on_the_primary(pair: Pair) -> None:
    pair.wait_for_replay()
    url = with_database(pair.primary.url, NAME)

    printed = pair.service.run(CONFLICT.format(url=url))

    assert printed.strip() == "[True, False] 0.0"


def test_a_write_without_redis_waits_for_the_replica(pair: Pair) -> None:
    assert pair.service.run(WITHOUT_REDIS).strip() == "True False"


def test_replica_outage_falls_back_to_the_primary(pair: Pair) -> None:
    owner = pair.app.owner()
    make_resource(pair.app, "there")
    pair.wait_for_replay()
    pair.replica.kill()
    make_resource(pair.app, "away")

    missing = readers_that_miss("away", owner)
    finding = pair.service.run(FINDING).strip()
    metrics = LiveCaller(pair.service.url).get("/metrics").content.decode()
    pair.replica.start()
    pair.wait_for_replay()
    with pair.paused_replay():
        make_resource(pair.app, "back")
        wait_until(lambda: readers_that_miss("back", owner) > 0)

    assert missing == 0
    assert finding == "WARN no replica answers: the primary serves all reads"
    assert "replica_lag_seconds +Inf" in metrics
    assert "UNEXPECTED" not in pair.service.log("web")


def test_later_position_of_two_writes_is_kept() -> None:
    """Their requests may end in the other order."""
    writes = last_writes.LastWrites(os.environ["REDIS_URL"], seconds=5)
    reader, far = uuid.uuid4().hex, 2**52 + 1

    stored = [writes.store(reader, position) for position in (far, far - 1)]

    assert (stored, writes.find(reader), writes.find("nobody")) == ([True, True], far, 0)


def test_a_position_is_used_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that has the oldest one of the last second is less than a second behind."""
    clock, position = [100.0], [0]
    monkeypatch.setattr(read_replica.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(read_replica, "read_position", lambda: position[0])
    positions = read_replica.PrimaryPositions()
    found = []
    for now in (100.0, 100.2, 100.3, 100.6, 101.0, 101.1, 101.4, 103.0):
        clock[0], position[0] = now, int(now * 10)
        found.append(positions.position_max_lag_ago())

    assert found == [1000, 1000, 1000, 1000, 1000, 1003, 1006, 1030]
