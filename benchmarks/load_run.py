"""Ten minutes of load: availability, bookings, lists and webhooks at once, from 32 clients.

Another app of the installation has a million bookings. Prints requests, answers 5xx, p50, p99 and
memory of every minute. Meant for a quiet machine.
"""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from statistics import quantiles

import psutil

from benchmarks.deliveries import sink
from benchmarks.endpoints import WEEKS
from benchmarks.stage import Goal, HttpClient, Stage, is_small, million, milliseconds, own_postgres

CLIENTS = 32
CUSTOMERS = 50  # of each client
DAYS = 1000  # no client runs out of free times
LENGTH = timedelta(minutes=15)

Call = Callable[[HttpClient], bytes]


def starts() -> Iterator[datetime]:
    """Starts from Monday to Friday, 13:00 to 16:45 Berlin time in summer and winter, in turn."""
    first = datetime.now(UTC).replace(hour=13, minute=0, second=0, microsecond=0)
    for quarter in range(8):
        for day in range(2, DAYS):
            start = first + timedelta(days=day) + LENGTH * quarter
            if start.weekday() < 5:
                yield start


def make_booker(resource_id: str, emails: Sequence[str]) -> Call:
    """Return a function that books the resource's next time, for these customers in turn."""
    times, addresses = starts(), cycle(emails)

    def book(client: HttpClient) -> bytes:
        start = next(times)
        body = {
            "resource_id": resource_id,
            "start": start.isoformat(),
            "end": (start + LENGTH).isoformat(),
            "what": "Meeting",
            "customer": {"name": "Marty McFly", "email": next(addresses)},
        }
        return client.call("POST", "/bookings", body, status=201)

    return book


def calls_of(resource_id: str) -> dict[str, Call]:
    """Return the calls of one client, in turn; its bookings are of its own resource and customers:
    bookings of one customer wait for each other, and few people book hundreds of times.
    """
    search = {"resources": [resource_id], **WEEKS}
    emails = [f"{number}.{resource_id}@example.com" for number in range(CUSTOMERS)]
    return {
        "POST /availability": lambda client: client.call("POST", "/availability", search),
        "POST /bookings": make_booker(resource_id, emails),
        "GET /bookings": lambda client: client.call("GET", "/bookings?limit=20"),
        "GET /customers": lambda client: client.call("GET", "/customers?limit=20"),
    }


class Load:
    """32 clients that call until the end of the block; `take` returns what they did since."""

    def __init__(self, stage: Stage, key: str, resources: list[str]) -> None:
        self.over = threading.Event()
        self.times: list[tuple[str, float]] = []
        self.failures: list[str] = []
        self.threads = [
            threading.Thread(target=self._work, args=(stage.client(key), calls_of(resource)))
            for resource in resources[:CLIENTS]
        ]

    def _work(self, client: HttpClient, calls: dict[str, Call]) -> None:
        for name, call in cycle(calls.items()):
            if self.over.is_set():
                return
            start = time.perf_counter()
            try:
                call(client)
            except (RuntimeError, OSError) as error:
                self.failures.append(str(error))
                client.connection.close()
            self.times.append((name, time.perf_counter() - start))

    def take(self) -> tuple[list[tuple[str, float]], list[str]]:
        times, self.times = self.times, []
        failures, self.failures = self.failures, []
        return times, failures

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        for thread in self.threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in self.threads:
                thread.join()


def memory_of(stage: Stage) -> float:
    """Return the proportional memory of web, worker and beat in MB."""
    found = [psutil.Process(process.pid) for process in stage.service.processes.values()]
    family = {child for process in found for child in [process, *process.children(recursive=True)]}
    return sum(process.memory_full_info().pss for process in family) / 1e6


def measure() -> Iterator[Goal]:
    minutes, length = (3, 10) if is_small() else (10, 60)
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder, sink(0) as port:
        stage = Stage(url, Path(folder))
        stage.env["WEBHOOK_ALLOWED_NETWORKS"] = "127.0.0.0/8"
        try:
            stage.script("benchmarks.listing_rows", str(million()))
            stage.start(workers=2)
            stage.service.start_worker(concurrency=2)
            stage.service.start_beat()
            filled = stage.script("benchmarks.fill", "load")
            hook = {"url": f"http://127.0.0.1:{port}/"}
            stage.client(filled["key"]).call("POST", "/webhooks", hook, status=201)
            yield from measure_minutes(stage, filled, minutes, length)
        finally:
            stage.stop()


def measure_minutes(stage: Stage, filled: dict, minutes: int, length: int) -> Iterator[Goal]:
    load = Load(stage, filled["key"], filled["resources"])
    everything: list[tuple[str, float]] = []
    memory: list[float] = []
    failed = 0
    with load.running():
        for minute in range(1, minutes + 1):
            time.sleep(length)
            times, failures = load.take()
            everything += times
            failed += len(failures)
            memory.append(memory_of(stage))
            cuts = quantiles([seconds for _, seconds in times], n=100)
            note = f"{len(times) / length:.0f} requests a second, p50 {milliseconds(cuts[49])},"
            note += f" p99 {milliseconds(cuts[98])}, {memory[-1]:.0f} MB"
            note += f"; {failures[0]}" if failures else ""
            yield Goal(f"Load, minute {minute}: failures", "0", len(failures), note, not failures)
    yield Goal("Load: failures in all", "0", failed, f"of {len(everything)} requests", not failed)
    cuts = quantiles([seconds for _, seconds in everything], n=100)
    yield Goal("Load: p99 / p50", "at most 3", cuts[98] / cuts[49], "", cuts[98] <= 3 * cuts[49])
    for name in calls_of(""):
        cuts = quantiles([seconds for of, seconds in everything if of == name], n=100)
        note = f"p50 {milliseconds(cuts[49])}, p99 {milliseconds(cuts[98])}"
        yield Goal(f"Load: p99 / p50 of {name}", "reported", cuts[98] / cuts[49], note, None)
    growth = memory[-1] / memory[min(1, len(memory) - 1)]
    yield Goal("Load: memory after the second minute", "flat", growth, "times", growth <= 1.1)
