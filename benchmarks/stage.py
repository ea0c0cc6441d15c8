"""The benchmarks' environment: a database of their own, the real service, a light client.

Databases are created on the PostgreSQL server of DATABASE_URL, else on a throwaway server with
fsync off: without disk waits the goals are harder to reach.
"""

import atexit
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests import services


class Goal(NamedTuple):
    """One line of the report. `value` is a ratio unless the note says otherwise."""

    name: str
    target: str
    value: float
    note: str
    reached: bool | None = None  # None: only reported


def million() -> int:
    """Return how many rows a large table has: a million, or a tenth of it with `--small`."""
    return 100_000 if is_small() else 1_000_000


def is_small() -> bool:
    return "BENCH_SMALL" in os.environ


SETTINGS: dict[str, object] = {"DJANGO_SETTINGS_MODULE": "benchmarks.settings"}
# What all benchmarks of a run share, until its end.
_shared = contextlib.ExitStack()
atexit.register(_shared.close)


@contextlib.contextmanager
def own_postgres() -> Iterator[str]:
    """Yield the URL of a migrated PostgreSQL database without rows."""
    template = migrated_database()
    name = f"{template}_{uuid.uuid4().hex[:12]}"
    services.run_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield services.database_url(name)
    services.run_sql(f"DROP DATABASE {name} WITH (FORCE)")


@cache
def migrated_database() -> str:
    """Return the name of the database that is copied: some benchmarks take less than migrating."""
    os.environ["TEST_ENGINE"] = "postgresql"
    given = os.environ.get("DATABASE_URL", "")
    if not given.startswith("postgres"):
        server = services.PostgreSQL()
        _shared.callback(server.stop)
        server.start()
        given = server.url
    os.environ["TEST_SERVER_URL"] = given
    folder = Path(_shared.enter_context(tempfile.TemporaryDirectory()))
    url = _shared.enter_context(services.own_database(folder, migrated=False))
    services.Service(folder, url, SETTINGS).manage("migrate", "--verbosity", "0")
    return urlsplit(url).path[1:]


class Stage:
    """Starts and stops the service on a database, which is migrated or a new SQLite file.

    `script` runs modules with its settings.
    """

    def __init__(self, database_url: str, folder: Path) -> None:
        self.service = services.Service(folder, database_url, SETTINGS)
        if database_url.startswith("sqlite"):
            self.service.manage("migrate", "--verbosity", "0")

    @property
    def env(self) -> dict[str, str]:
        return self.service.env

    def start(self, *, workers: int = 1) -> None:
        self.service.start_web(workers=workers, threads=4)

    def stop(self) -> None:
        self.service.stop()

    def script(self, module: str, *args: str) -> Any:
        """Run `python -m module` in the service's environment; return its last line as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", module, *args],
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])

    def client(self, key: str) -> "HttpClient":
        return HttpClient(self.service.port, key)


# The server closes connections that are idle for longer.
MAX_IDLE = 1.0


class HttpClient:
    def __init__(self, port: int, key: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.last_call = 0.0
        self.headers = {
            "Authorization": "Basic " + b64encode(f":{key}".encode()).decode(),
            "Content-Type": "application/json",
        }

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] = {},
    ) -> bytes:
        """Return the answer's bytes. Another status than the expected one ends the benchmark."""
        content = None if body is None else json.dumps(body).encode()
        if time.perf_counter() - self.last_call > MAX_IDLE:
            self.connection.close()  # the next request opens it again, without Nagle's algorithm
        self.connection.request(method, f"/v2{path}", content, {**self.headers, **headers})
        answer = self.connection.getresponse()
        read = answer.read()
        self.last_call = time.perf_counter()
        if answer.status != status:
            raise RuntimeError(f"{method} {path}: {answer.status} {read[:500]!r}")
        return read


def time_each(
    runs: dict[str, Callable[[], object]], *, rounds: int = 9, seconds: float = 0.25
) -> dict[str, float]:
    """Return seconds per call, as medians over rounds A B C A B C ...: drift affects all alike."""
    if is_small():
        rounds, seconds = min(rounds, 3), min(seconds, 0.1)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            count, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < seconds or not count:
                run()
                count += 1
            times[name].append(spent / count)
    return {name: median(found) for name, found in times.items()}


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
