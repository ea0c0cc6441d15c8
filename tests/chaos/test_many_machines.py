"""Ten minutes of several machines: two web nodes, three workers of each queue, two beats, poolers,
and a primary with a synchronous standby, which also answers reads.

Every five seconds a process of the service is killed. A migration of a large table runs meanwhile,
then the primary is killed and its standby promoted. Redis is away for six of the ten minutes.
CHAOS_MINUTES shortens the campaign.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from itertools import cycle, pairwise
from pathlib import Path
from signal import SIGKILL
from typing import Any, NamedTuple

import psutil
import psycopg
import pytest

from notifications.outbox.leases import LEASES
from tests.chaos.conftest import (
    ADA,
    IN_FLIGHT,
    ClientThreads,
    Deployment,
    count_duplicates,
    p99,
    slug,
)
from tests.live import LiveCaller, Rows
from tests.services import ROOT, PgBouncer, Replica, Service

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.redis,
    pytest.mark.postgresql,
    pytest.mark.skipif(not PgBouncer.program(), reason="PgBouncer is not installed"),
]

MINUTES = float(os.environ.get("CHAOS_MINUTES", "10"))
LARGE = int(5_000_000 * min(1, MINUTES / 10))
QUEUES = ("celery", "email", "webhook", "calendar")
THREADS = 8  # of each web process
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
START = MIDNIGHT + timedelta(days=1)
SLOT = timedelta(minutes=15)
SLOTS_PER_SECOND = 2
ROOMS = 4  # each wanted by two clients at once
SEARCH = {"to": "28 days", "length": "30 minutes", "timeslot_increments": "15 minutes"}
LARGE_TABLE = """
SET statement_timeout = 0;
SET session_replication_role = replica;
INSERT INTO bookings_statechange
    (id, app_id, booking_id, from_state, to_state, action, actor, source, message, created_at)
SELECT lpad(to_hex(n), 32, '0')::uuid, app_id, id, '', 'confirmed', 'confirm', 'x', 'api', '',
    created_at - n * interval '1 second'
FROM (SELECT * FROM bookings_booking LIMIT 1) AS booking, generate_series(1, %s) AS n
"""
OVERLAPS = """
SELECT count(*) FROM availability_event AS one JOIN availability_event AS other
ON one.resource_id = other.resource_id AND one.id < other.id
    AND one.start < other."end" AND other.start < one."end"
"""
UNDELIVERED = """
SELECT type, kind, state, reason, tries, lapses FROM notifications_delivery
WHERE state <> 'delivered'
"""
STORED = """
SELECT booking.id::text FROM bookings_booking AS booking JOIN apps_config_app AS app
ON app.id = booking.app_id WHERE app.slug = '{}'
"""
NEW_COLUMN = "SELECT count(*) FROM bookings_statechange WHERE reason = ''"
NEW_INDEX = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'state_change_day'::regclass"


class Request(NamedTuple):
    """A request and its answer; `code` is "broken" where a killed process gave none."""

    kind: str
    at: float  # time.monotonic() of its start
    seconds: float
    code: str


class Course(NamedTuple):
    """When the parts of a campaign began, as time.monotonic() has it."""

    began: float
    killed: float  # the first process, and Redis
    failed_over: float
    redis_back: float
    ended: float
    migration_seconds: float


PARTS = ("quiet", "kills and the migration", "kills after the failover")


class MixedClients(ClientThreads):
    """Clients that book, search and list, each at one node after the other, within the block.

    A request without an answer, or with 503, is repeated with its Idempotency-Key.
    """

    def __init__(self, urls: list[str], key: str, rooms: list[str]) -> None:
        super().__init__()
        self.urls, self.key, self.rooms = urls, key, rooms
        self.requests: list[Request] = []
        self.faults: list[str] = []
        self.acknowledged: set[str] = set()
        self.began = time.monotonic()
        jobs = [(self.book, room, number) for room in rooms for number in range(2)]
        self.threads = [threading.Thread(target=job, args=args) for job, *args in jobs]
        self.threads += [threading.Thread(target=self.search) for _ in range(2)]
        self.threads += [threading.Thread(target=self.read_lists)]

    def callers(self, first: int = 0) -> Iterator[LiveCaller]:
        nodes = cycle([LiveCaller(url, self.key) for url in self.urls])
        for _ in range(first):
            next(nodes)
        return nodes

    def call(self, kind: str, caller: LiveCaller, *request: Any) -> Any:
        """The answer; None where the connection broke or the answer is 503."""
        start = time.monotonic()
        try:
            answer = caller.call(*request)
        except (OSError, HTTPException):
            answer, code = None, "broken"
        else:
            code = answer.code
        self.requests.append(Request(kind, start, time.monotonic() - start, code))
        if answer is not None and answer.status >= 500:
            if answer.status != 503 or "Retry-After" not in answer.headers:
                self.faults.append(f"{code} {answer.headers} {answer.content[:500]}")
            return None
        return answer

    def book(self, room: str, number: int) -> None:
        """Book the slot of the moment, which another client wants too."""
        nodes = self.callers(number)
        slot = -1
        while not self.ended.is_set():
            slot = max(slot + 1, int((time.monotonic() - self.began) * SLOTS_PER_SECOND))
            times = {"start": START + slot * SLOT, "end": START + (slot + 1) * SLOT}
            body = {name: moment.isoformat() for name, moment in times.items()}
            body |= {"resource_id": room, "what": "Meeting", "customer": ADA}
            key = {"Idempotency-Key": f"{room}-{number}-{slot}"}
            while True:  # to its end: an unanswered request may have been carried out
                answer = self.call("book", next(nodes), "POST", "/v2/bookings", body, key)
                if answer is not None and answer.code in ("201", "409 slot_taken"):
                    break
                time.sleep(0.3)
            if answer.status == 201:
                self.acknowledged.add(answer.data["id"])
            due = self.began + (slot + 1) / SLOTS_PER_SECOND
            self.ended.wait(max(0, due - time.monotonic()))

    def search(self) -> None:
        nodes = self.callers()
        body = {"resources": self.rooms, **SEARCH}
        while not self.ended.wait(0.1):
            self.call("search", next(nodes), "POST", "/v2/availability", body)

    def read_lists(self) -> None:
        nodes = self.callers()
        for path in cycle(["/v2/bookings?limit=20", "/v2/customers?limit=20", "/v2/deliveries"]):
            if self.ended.wait(0.3):
                return
            self.call("list", next(nodes), "GET", path)

    def codes(self) -> dict[str, int]:
        return dict(Counter(request.code for request in self.requests))

    def p99s(self, course: Course) -> dict[str, float | None]:
        """Of the answered searches in each part of the campaign."""
        marks = (course.began, course.killed, course.failed_over, course.ended)
        found: dict[str, float | None] = {}
        for part, (since, until) in zip(PARTS, pairwise(marks), strict=True):
            searches = [one for one in self.requests if one.kind == "search" and one.code == "200"]
            times = [one.seconds for one in searches if since <= one.at < until]
            found[part] = round(p99(times), 3) if times else None
        return found


class Cluster:
    """The processes of two machines, and the servers that they share."""

    def __init__(self, deployment: Deployment, folder: Path, stack: ExitStack) -> None:
        self.deployment, self.primary = deployment, deployment.postgres
        first = deployment.service
        (folder / "second").mkdir()
        second = Service(folder / "second", first.database_url, {})
        stack.callback(second.stop)
        self.nodes = [first, second]
        self.random = random.Random(1)
        self.kills: Counter[str] = Counter()
        self.standby = Replica(self.primary)
        stack.callback(self.standby.stop)
        self.standby.start()
        self.run_sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.run_sql("SELECT pg_reload_conf()")
        self.pooler, reader = PgBouncer(self.primary.url), PgBouncer(self.standby.url)
        for pooler in (self.pooler, reader):
            stack.callback(pooler.stop)
            pooler.start()
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        direct = f"postgres://postgres@{hosts}/postgres?target_session_attrs=read-write"
        first.env |= {
            "DATABASE_URL": self.pooler.url,
            "DATABASE_REPLICA_URL": reader.url,
            "DATABASE_DIRECT_URL": direct,
            "DB_POOLED": "true",
        }
        second.env = first.env | {"VAR_DIR": str(second.folder), "TMPDIR": str(second.folder)}
        first.database_url = direct  # for the test's own reads
        first.manage("migrate", "--verbosity", "0")  # gives the role its time-outs

    def run_sql(self, statement: str) -> None:
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            connection.execute(statement)

    def start(self) -> None:
        for node in self.nodes:
            node.start_web(workers=2, threads=THREADS)
            node.start_beat()
        for number in range(3):
            for queue in QUEUES:
                self.start_worker(self.nodes[number % 2], f"{queue}-{number}")

    def start_worker(self, node: Service, name: str) -> None:
        node.start_worker(name, concurrency=1, queue=name.partition("-")[0])

    def kill_one(self) -> None:
        """A process with its children, which a supervisor starts again, or a child alone."""
        node = self.random.choice(self.nodes)
        name = self.random.choice(sorted(node.processes))
        process = node.processes[name]
        children = psutil.Process(process.pid).children()
        if children and self.random.random() < 0.5:
            self.random.choice(children).kill()
            self.kills[f"child of {name.partition('-')[0]}"] += 1
            return
        os.killpg(process.pid, SIGKILL)
        process.wait()
        self.kills[name.partition("-")[0]] += 1
        if name == "web":
            node.start_web(workers=2, threads=THREADS)
        elif name == "beat":
            node.start_beat()
        else:
            self.start_worker(node, name)

    def run_faults(self, seconds: float) -> Course:
        """A fifth of the time quiet, then a kill every five seconds; a migration meanwhile, at two
        thirds the failover, and no Redis from the first kill until four fifths."""
        began = time.monotonic()
        time.sleep(seconds / 5)
        killed, failed_over, redis_back = time.monotonic(), 0.0, 0.0
        self.deployment.redis.kill()
        with ThreadPoolExecutor(1) as pool:
            migration = pool.submit(self.migrate)
            while (elapsed := time.monotonic() - began) < seconds:
                self.kill_one()
                if elapsed > seconds * 2 / 3 and not failed_over:
                    migration.result()
                    failed_over = time.monotonic()
                    self.fail_over()
                if elapsed > seconds * 4 / 5 and not redis_back:
                    self.deployment.redis.start()
                    redis_back = time.monotonic()
                time.sleep(5)
        return Course(began, killed, failed_over, redis_back, time.monotonic(), migration.result())

    def migrate(self) -> float:
        """Run the migrations of the next release; return the seconds."""
        began = time.monotonic()
        settings = {"DJANGO_SETTINGS_MODULE": "tests.chaos.next_release"}
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        env = self.nodes[0].env | settings
        done = subprocess.run(
            command, cwd=ROOT, env=env, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return time.monotonic() - began

    def fail_over(self) -> None:
        """Kill the primary, promote the standby, and give the pooler its address."""
        self.primary.kill()
        time.sleep(2)
        with psycopg.connect(self.standby.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_promote()")
        self.pooler.point_to(self.standby)


def test_kills_migration_failover_and_redis_outage_lose_nothing(
    make_deployment: Callable[..., Deployment], tmp_path: Path
) -> None:
    """Nothing is lost, nothing overlaps, and the only refusal is 503 with Retry-After."""
    with ExitStack() as stack:
        deployment = make_deployment(own_postgres=True)
        app = slug()
        made = deployment.fill(f"make_app({app!r}, {ROOMS})")
        deployment.fill(f"make_mails({slug()!r}, 2)")
        cluster = Cluster(deployment, tmp_path, stack)
        cluster.start()
        deployment.wait_until_done()  # before the booking of these mails has a long history
        cluster.run_sql(LARGE_TABLE % LARGE)
        urls = [node.url for node in cluster.nodes]
        caller = LiveCaller(urls[0], made["key"])
        caller.post("/v2/webhooks", {"url": deployment.hooks.url()})
        owner = {"contact_email": "desk@example.com"}
        caller.call("PUT", f"/v2/apps/{app}", {"settings": owner})

        with MixedClients(urls, made["key"], made["resources"]) as clients:
            course = cluster.run_faults(MINUTES * 60)
        # What a killed worker was sending is sent again after its lease.
        seconds = deployment.wait_until_done(LEASES["email"].total_seconds() + 120)

        codes = clients.codes()
        mails = [mail.id for mail in deployment.mails.mails]
        calls = deployment.hooks.count_by_id()
        stored = {row for (row,) in Rows(deployment.service).read(STORED.format(app))}
        print(
            f"{len(clients.requests)} requests {codes}; killed {dict(cluster.kills)};"
            f" {course.redis_back - course.killed:.0f} s without Redis; migration of {LARGE} rows"
            f" in {course.migration_seconds:.0f} s; {len(stored)} bookings,"
            f" {len(mails) - len(set(mails))} mails and {count_duplicates(calls)} calls twice,"
            f" queue empty after {seconds:.0f} s; p99 of availability in s: {clients.p99s(course)}"
        )
        assert clients.faults == []
        assert set(codes) <= {
            *("200", "201", "409 slot_taken", "503 unavailable", "broken"),
            "409 idempotency_in_progress",
        }
        assert clients.acknowledged == stored
        assert Rows(deployment.service).read(OVERLAPS) == [(0,)]
        assert len(set(mails)) == 2 * len(stored) + 2  # to the customer and the owner
        assert {call.json["id"] for call in deployment.hooks.calls} >= stored
        assert Rows(deployment.service).read(UNDELIVERED) == []
        assert Rows(deployment.service).read(NEW_COLUMN)[0][0] > LARGE
        assert Rows(deployment.service).read(NEW_INDEX) == [(True,)]
        kills = sum(cluster.kills.values())
        assert kills >= 5 * MINUTES
        assert count_duplicates(calls) <= kills * IN_FLIGHT
        assert len(mails) - len(set(mails)) <= kills * IN_FLIGHT
        deployment.service.shell.stop()  # it began with the address of the first primary
        deployment.verify()
