"""An app in a live service: what a race asks of it over HTTP, and what it left in the rows."""

import base64
import contextlib
import copy
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from tests.bookings import race_clients
from tests.bookings.race_clients import Answer, Request, call
from tests.services import ROOT, Service, end_with_parent

# Within the four weeks that a project offers when it says nothing.
DAY = (datetime.now(UTC) + timedelta(days=3)).replace(hour=0, minute=0, second=0, microsecond=0)
CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com"}

MAKE_APP = """
from apps_config.services import create_app, issue_key
print(issue_key("server", app=create_app(slug="{slug}", name="Race"))[1])
"""

# On SQLite? Then these, else those.
DROP_GUARD = {
    True: [
        f"DROP TRIGGER {name}_on_{event}"
        for name in ("slot_taken", "slot_taken_unit")
        for event in ("insert", "update")
    ],
    False: [
        f"ALTER TABLE availability_event DROP CONSTRAINT {name}"
        for name in ("slot_taken", "slot_taken_unit")
    ],
}

# The time that normal bookings hold, companions of mutual ones included.
_HELD = """
SELECT event.resource_id, event.start, event."end" FROM availability_event AS event
JOIN bookings_booking AS booking ON booking.event_id = COALESCE(event.main_id, event.id)
WHERE event.busy AND NOT booking.allow_double_bookings
"""


def span(hour: float, length: float = 1) -> dict[str, str]:
    """`start` and `end` so many hours after DAY's midnight."""
    start = DAY + timedelta(hours=hour)
    return {"start": start.isoformat(), "end": (start + timedelta(hours=length)).isoformat()}


def count_overlaps(held: Iterable[tuple[Any, Any, Any]], capacity: int = 1) -> int:
    """How many pairs of (resource, start, end) share an instant of one resource; of a larger
    capacity, only those that are too many.

    >>> count_overlaps([("a", 1, 3), ("a", 2, 4), ("a", 4, 5), ("b", 1, 9)])
    1
    >>> count_overlaps([("a", 1, 3), ("a", 1, 3), ("a", 2, 4)], capacity=2)
    1
    """
    overlaps, resource, ends = 0, None, []
    for row_resource, start, end in sorted(held):
        ends = [one for one in ends if one > start] if row_resource == resource else []
        overlaps += max(0, len(ends) + 1 - capacity)
        ends.append(end)
        resource = row_resource
    return overlaps


def run_program(
    command: Sequence[str], job: Any, *, seconds: float, env: Mapping[str, str] | None = None
) -> Any:
    """What a Python program answers to a job, both in JSON; none of its processes stays behind."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=end_with_parent,
    ) as program:
        try:
            answer, errors = program.communicate(json.dumps(job), timeout=seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    assert program.returncode == 0, errors
    return json.loads(answer)


def race(url: str, scripts: Sequence[Sequence[Request]]) -> list[list[Answer]]:
    """One client process per script; the answers in the order of the requests."""
    found = run_program([race_clients.__file__], [url, scripts], seconds=600)
    return [[Answer(*answer) for answer in answers] for answers in found]


def wait_until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"{is_so} is not so after {seconds} s"
        time.sleep(0.005)


@contextlib.contextmanager
def open_database(url: str) -> Iterator[Any]:
    """A connection past the service, with no transaction but those that are begun by hand."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as rows:
            yield rows
    else:
        with psycopg.connect(url, autocommit=True) as rows:
            yield rows


class LiveTenant:
    """An app of its own, called with its server key."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.slug = f"race-{uuid.uuid4().hex[:12]}"
        self.key = service.run(MAKE_APP.format(slug=self.slug)).strip()
        token = base64.b64encode(f":{self.key}".encode()).decode()
        self.headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}

    def with_faults(self, **faults: Any) -> "LiveTenant":
        """The same app; every request asks for these faults (tests/bookings/race_wsgi.py)."""
        faulty = copy.copy(self)
        faulty.headers = {**self.headers, "Fault": json.dumps(faults)}
        return faulty

    # --- Requests ---------------------------------------------------------------------------------
    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Request:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method, path, body, {**self.headers, **named})

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return call(self.service.url, self.request(method, path, body, **headers))

    def race(self, scripts: Sequence[Sequence[Request]]) -> list[list[Answer]]:
        """Every script in a process of its own, all at once."""
        return race(self.service.url, scripts)

    def race_each(self, requests: Sequence[Request]) -> list[Answer]:
        """Every request in a process of its own, all at once."""
        return [answers[0] for answers in self.race([[request] for request in requests])]

    @contextlib.contextmanager
    def paused_request(
        self, request: Request, *, at: str, folder: Path, **faults: Any
    ) -> Iterator[Future[Answer]]:
        """Inside the block the request stands before its first statement like `at`, then goes on.

        Only a faulty service can do that. `folder` is the test's own.
        """
        fault = json.dumps({"at": at, "gate": str(folder), **faults})
        request = request._replace(headers={**request.headers, "Fault": fault})
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(call, self.service.url, request)
            try:
                wait_until((folder / "reached").exists)
                yield answer
            finally:
                (folder / "open").touch()

    def booking(self, headers: dict[str, str] | None = None, **given: Any) -> Request:
        """POST /bookings with a customer and a title."""
        body = {"what": "Race", "customer": CUSTOMER, **given}
        return self.request("POST", "/bookings", body, **(headers or {}))

    def book(self, **given: Any) -> Any:
        """A booking that is made, without faults: its record."""
        answer = call(self.service.url, self.with_faults().booking(**given))
        assert answer.status == 201, answer
        return answer.data

    def act(self, booking_id: str, action: str, **headers: str) -> Request:
        return self.request("PUT", f"/bookings/{booking_id}/{action}", {}, **headers)

    def move(self, booking_id: str, times: dict[str, str], **given: Any) -> Request:
        return self.request("POST", f"/bookings/{booking_id}/reschedule", {**times, **given})

    def make_resource(self, **given: Any) -> Any:
        """The answer of POST /resources, with `calendars`."""
        return self.call("POST", "/resources", {"name": "Ada", "timezone": "UTC", **given}).data

    def make_resources(self, count: int, **given: Any) -> list[str]:
        """Their ids."""
        return [self.make_resource(**given)["id"] for _ in range(count)]

    def make_project(self, resource_ids: Sequence[str], mode: str, **given: Any) -> str:
        """Its id."""
        body = {"name": "Race", "resources": resource_ids, "availability": {"mode": mode}, **given}
        return self.call("POST", "/projects", body).data["id"]

    def state_of(self, booking_id: str) -> str:
        return self.call("GET", f"/bookings/{booking_id}").data["state"]

    def steps_of(self, booking_id: str) -> list[tuple[str, str, str]]:
        """Its history: (from, action, to)."""
        logs = self.call("GET", f"/bookings/{booking_id}?include=logs").data["logs"]
        return [(log["from_state"], log["action"], log["to_state"]) for log in logs]

    @property
    def first_lock(self) -> str:
        """The statement by which a writer begins to keep others out."""
        return "^BEGIN" if self.is_sqlite else "FOR (SHARE|NO KEY UPDATE)"

    # --- Rows -------------------------------------------------------------------------------------
    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement of our own returns; `?` stands for a value."""
        if not self.is_sqlite:
            sql = sql.replace("?", "%s")
        with open_database(self.service.database_url) as database:
            cursor = database.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    @property
    def is_sqlite(self) -> bool:
        return self.service.database_url.startswith("sqlite")

    def id(self, text: str) -> str:
        """An id as the database keeps it: SQLite has no type for it."""
        return uuid.UUID(text).hex if self.is_sqlite else text

    def held(self, resource_ids: Collection[str]) -> list[tuple[uuid.UUID, Any, Any]]:
        """(resource, start, end) of all time that normal bookings hold of these resources."""
        wanted = {uuid.UUID(resource_id) for resource_id in resource_ids}
        found = [(uuid.UUID(str(one)), start, end) for one, start, end in self.rows(_HELD)]
        return [row for row in found if row[0] in wanted]

    def wait_for_a_waiter(self) -> None:
        """Return when a request of the service waits for a lock: PostgreSQL tells."""
        waiting = """SELECT 1 FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'"""
        with open_database(self.service.database_url) as database:
            wait_until(lambda: bool(database.execute(waiting).fetchall()))

    def count_rows(self) -> dict[str, int]:
        """Of every table of the database."""
        if self.is_sqlite:
            tables = self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        else:
            tables = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        # One statement: another connection for each table would take most of a test's time.
        counts = [f"SELECT '{name}', count(*) FROM \"{name}\"" for (name,) in sorted(tables)]
        return dict(self.rows(" UNION ALL ".join(counts)))


def count_outcomes(answers: Iterable[Any]) -> Counter[str]:
    """Of answers, or of lists of them."""
    outcomes: Counter[str] = Counter()
    for answer in answers:
        outcomes.update([answer.outcome] if isinstance(answer, Answer) else count_outcomes(answer))
    return outcomes
