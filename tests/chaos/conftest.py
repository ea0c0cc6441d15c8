"""A service whose parts may be killed: its own database, its own Redis, its own receivers."""

import json
import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from tests.delivery_faults import live_delivery_faults
from tests.live import LiveCaller, Rows
from tests.services import PostgreSQL, Redis, Service, own_database
from tests.sinks import HookSink, MailSink, hook_sink, mail_sink

# A change whose calls are not expanded to deliveries yet counts as one.
OPEN = """
SELECT (SELECT count(*) FROM notifications_delivery WHERE next_at IS NOT NULL)
+ (SELECT count(*) FROM notifications_changecalls WHERE waiting_since IS NOT NULL)
"""
SENDING = "SELECT count(*) FROM notifications_delivery WHERE state = 'sending'"
START = datetime(2031, 1, 6, tzinfo=UTC)
ADA = {"name": "Ada", "email": "ada@example.com"}
# What one pool process may have sent without having written it down.
IN_FLIGHT = 64
STATES = "SELECT state, count(*) FROM notifications_delivery GROUP BY state"


class Deployment:
    """The service with its workers, and what they talk to."""

    def __init__(
        self, service: Service, redis: Redis, hooks: HookSink, mails: MailSink, full: bool
    ) -> None:
        self.service, self.redis, self.hooks, self.mails = service, redis, hooks, mails
        self.full = full  # the size of the campaign, or a short form of it
        self.postgres: PostgreSQL | None = None  # where it has one of its own
        self.kills = 0

    def size(self, full: int, short: int) -> int:
        return full if self.full else short

    def fill(self, call: str) -> Any:
        """The result of a function of tests.chaos.fill, called in the service."""
        code = f"import json; from tests.chaos import fill; print(json.dumps(fill.{call}))"
        printed = self.service.run(code)
        return json.loads(printed.splitlines()[-1])

    def start_worker(self, name: str = "worker") -> None:
        include = "" if self.full else "tests.chaos.short_lease"
        self.service.start_worker(name, concurrency=2, include=include)

    def children(self, name: str) -> list[psutil.Process]:
        return psutil.Process(self.service.processes[name].pid).children()

    def kill_busiest(self, *names: str) -> None:
        """The pool process that has worked most; its worker makes another."""
        seconds = {}
        for child in (child for name in names for child in self.children(name)):
            # One that was killed a moment ago may still be listed.
            with suppress(psutil.NoSuchProcess):
                seconds[child] = child.cpu_times().user
        max(seconds, key=seconds.__getitem__).kill()
        self.kills += 1

    def kill_while_sending(self, *names: str) -> None:
        """Every pool process, stopped first, at a moment at which they have tries under way."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            children = [child for name in names for child in self.children(name)]
            for child in children:
                child.suspend()
            if Rows(self.service).read(SENDING)[0][0]:
                break
            for child in children:
                child.resume()
            time.sleep(0.01)
        else:
            raise AssertionError(f"nothing was being sent: {self.states()}")
        for child in children:
            child.kill()
        self.kills += len(children)

    def kill_worker(self, name: str) -> None:
        """A worker with its whole pool; another one takes its place."""
        process = self.service.processes[name]
        self.kills += len(self.children(name))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.start_worker(name)

    def count_open(self) -> int:
        return Rows(self.service).read(OPEN)[0][0]

    def count_lapses(self) -> int:
        """Tries whose worker was never heard of again."""
        return Rows(self.service).read("SELECT sum(lapses) FROM notifications_delivery")[0][0]

    def states(self) -> dict[str, int]:
        return dict(Rows(self.service).read(STATES))

    def wait_until_done(self, seconds: float = 150, *, left: int = 0) -> float:
        """Waits until no more than `left` deliveries are open; returns how long that took."""
        began = time.monotonic()
        while self.count_open() > left:
            assert time.monotonic() - began < seconds, (self.states(), self.logs())
            time.sleep(0.2)
        return time.monotonic() - began

    def logs(self) -> str:
        return "\n".join(
            f"--- {name}\n{self.service.log(name)[-3000:]}" for name in self.service.processes
        )

    def verify(self) -> None:
        """No delivery is missing or duplicate."""
        assert live_delivery_faults(self.service) == "[]"


class ClientThreads:
    """Threads that call the service within the block, until `ended` is set."""

    threads: list[threading.Thread]

    def __init__(self) -> None:
        self.ended = threading.Event()

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()


class BookingClients(ClientThreads):
    """Clients that book one hour after another, each of a resource of its own, within the block.

    codes           of all responses
    acknowledged    ids of the bookings that a response named
    """

    def __init__(self, url: str, key: str, resources: Sequence[str]) -> None:
        super().__init__()
        self.caller = LiveCaller(url, key)
        self.codes: list[str] = []
        self.acknowledged: list[str] = []
        self.threads = [threading.Thread(target=self.book, args=(one,)) for one in resources]

    def book(self, resource_id: str) -> None:
        """A refused request is repeated with its Idempotency-Key."""
        number = 0
        while not self.ended.is_set():
            start = START + timedelta(hours=number)
            times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
            body = {"resource_id": resource_id, "what": "Meeting", "customer": ADA, **times}
            key = {"Idempotency-Key": f"{resource_id}-{number}"}
            answer = self.caller.call("POST", "/v2/bookings", body, key)
            self.codes.append(answer.code)
            if answer.status == 201:
                self.acknowledged.append(answer.data["id"])
                number += 1
            self.ended.wait(0.3 if answer.status == 201 else 0.5)

    def stored(self) -> list[str]:
        """The ids of all bookings of the app."""
        pages = [f"/v2/bookings?limit=1000&page={page}" for page in range(1, 20)]
        return sorted(row["id"] for path in pages for row in self.caller.get(path).data)


class ChangeReader(ClientThreads):
    """A client that follows the changes of the app's bookings within the block.

    created: ids of the bookings whose first change it has read, in the order of the feed.
    """

    def __init__(self, url: str, key: str) -> None:
        super().__init__()
        self.caller = LiveCaller(url, key)
        self.cursor = self.caller.get("/v2/changes").json["next_cursor"]
        self.created: list[str] = []
        self.threads = [threading.Thread(target=self.follow)]

    def follow(self) -> None:
        while not self.ended.is_set():
            self.read()
            self.ended.wait(0.01)

    def read(self) -> bool:
        """Read what follows the cursor; return whether there was anything. Repeats refusals."""
        answer = self.caller.get(f"/v2/changes?cursor={self.cursor}&types=booking")
        if answer.status != 200:
            assert answer.status == 503, answer.json
            return True
        rows = answer.json["data"]
        self.created += [row["object_id"] for row in rows if row["action"] == "confirm"]
        self.cursor = answer.json["next_cursor"]
        return bool(rows) or answer.json["has_more"]


def count_duplicates(counts: Counter[str]) -> int:
    """How many arrived more than once, by the number of copies too many."""
    return sum(counts.values()) - len(counts)


def p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def start_deployment(
    stack: ExitStack, folder: Path, *, full: bool, own_postgres: bool = False, **settings: object
) -> Deployment:
    """A deployment without web or workers; what it needs ends with the stack."""
    redis = Redis()
    stack.callback(redis.stop)
    redis.start()
    if own_postgres:
        server = PostgreSQL()
        stack.callback(server.stop)
        server.start()
        url = server.url
    else:
        url = stack.enter_context(own_database(folder))
    mails = stack.enter_context(mail_sink())
    hooks = stack.enter_context(hook_sink())
    settings = {
        "REDIS_URL": redis.url,
        "EMAIL_URL": mails.url,
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "LOG_LEVEL": "INFO",
        **settings,
    }
    service = Service(folder, url, settings)
    stack.callback(service.stop)
    deployment = Deployment(service, redis, hooks, mails, full)
    if own_postgres:
        deployment.postgres = server
        service.manage("migrate", "--verbosity", "0")
    return deployment


@pytest.fixture
def make_deployment(
    tmp_path: Path, pytestconfig: pytest.Config
) -> Iterator[Callable[..., Deployment]]:
    """`make_house(own_postgres=True, DELIVERY_THREADS=8)`; nothing of it runs yet."""
    with ExitStack() as stack:
        yield partial(start_deployment, stack, tmp_path, full=pytestconfig.getoption("chaos"))


@pytest.fixture
def deployment(make_deployment: Callable[..., Deployment]) -> Deployment:
    return make_deployment()


def slug() -> str:
    return f"app-{uuid.uuid4().hex[:8]}"
