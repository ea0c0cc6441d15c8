"""Booking creation: the service function against bare INSERTs, and over HTTP (P6).

Also: bookings with webhooks (N1), and a series against one booking and its own changes (P23). The
in-process half is benchmarks.create_booking_vs_inserts, run in the service's environment.
"""

import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cpu_time import cpu_per_call
from benchmarks.stage import Goal, HttpClient, Stage, milliseconds, own_postgres

START = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def body_of(resource_id: str, number: int) -> dict[str, Any]:
    start = START + HOUR * number
    return {
        "resource_id": resource_id,
        "start": start.isoformat(),
        "end": (start + HOUR).isoformat(),
        "what": "Meeting",
        "customer": {"name": "Marty McFly", "email": "marty@example.com"},
        "event_notifications": [reminder(60), reminder(15)],
    }


def reminder(minutes: int) -> dict[str, Any]:
    return {
        "type": "email",
        "settings": {"recipient": "customer"},
        "when": {"type": "before", "unit": "mins", "time": minutes},
    }


def measure_series(stage: Stage, key: str, resource_id: str) -> float:
    """Return seconds per POST /bookings of a series of 52 weeks, each at another hour."""
    client = stage.client(key)
    times = []
    for number in range(15):
        body = {**body_of(resource_id, number), "recurrence": "FREQ=WEEKLY;COUNT=52"}
        start = time.perf_counter()
        client.call("POST", "/bookings", body, status=201)
        times.append(time.perf_counter() - start)
    return median(times)


LONG = 366
LONG_START = START + timedelta(days=2000)
ELSEWHEN = START + timedelta(days=4000)


def measure_long_series(stage: Stage, key: str, resource_id: str) -> dict[str, float]:
    """Return median seconds to make, move and cancel a series of 366 days.

    `wait`: the longest time of another client's booking of the resource during a move or
    cancellation.
    """
    client = stage.client(key)
    times: dict[str, list[float]] = {"make": [], "move": [], "cancel": []}
    waits: list[float] = []
    times_of_others = count()
    for number in range(5):
        start = LONG_START + HOUR * 2 * number
        span = {"start": start.isoformat(), "end": (start + HOUR).isoformat()}
        body = {**body_of(resource_id, 0), **span, "recurrence": f"FREQ=DAILY;COUNT={LONG}"}
        made = _time(times["make"], partial(client.call, "POST", "/bookings", body, status=201))
        booking = json.loads(made)["data"]["id"]
        later = {"start": span["end"], "end": (start + 2 * HOUR).isoformat(), "scope": "all"}
        with _other_bookings(stage, key, resource_id, times_of_others, waits):
            path, whole = f"/bookings/{booking}", {"scope": "all"}
            _time(times["move"], partial(client.call, "POST", f"{path}/reschedule", later))
            _time(times["cancel"], partial(client.call, "PUT", f"{path}/cancel", whole))
    return {name: median(found) for name, found in times.items()} | {"wait": max(waits)}


def _time(times: list[float], call: Callable[[], bytes]) -> bytes:
    start = time.perf_counter()
    answer = call()
    times.append(time.perf_counter() - start)
    return answer


@contextlib.contextmanager
def _other_bookings(
    stage: Stage, key: str, resource_id: str, numbers: Iterator[int], waits: list[float]
) -> Iterator[None]:
    """Book the resource repeatedly as another client, and record the time of each booking."""
    over = threading.Event()

    def book() -> None:
        client = stage.client(key)
        while not over.is_set():
            start = ELSEWHEN + HOUR * next(numbers)
            span = {"start": start.isoformat(), "end": (start + HOUR).isoformat()}
            body = {**body_of(resource_id, 0), **span}
            _time(waits, partial(client.call, "POST", "/bookings", body, status=201))

    thread = threading.Thread(target=book)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


WEBHOOK_TARGETS = {1: 1.15, 100: 1.5}


def measure_webhooks(url: str, folder: Path) -> Iterator[Goal]:
    """Compare the CPU time of web and PostgreSQL for bookings of apps with and without webhooks."""
    stage = Stage(url, folder)
    try:
        stage.start()
        apps = stage.script("benchmarks.fill", "webhooks")
        numbers = count()

        def book(client: HttpClient, resource_id: str) -> bytes:
            return client.call("POST", "/bookings", body_of(resource_id, next(numbers)), status=201)

        runs = {
            name: partial(book, stage.client(filled["key"]), filled["resources"][0])
            for name, filled in apps.items()
        }
        spent = {name: sum(parts) for name, parts in cpu_per_call(stage, url, runs).items()}
    finally:
        stage.stop()
    for webhooks, target in WEBHOOK_TARGETS.items():
        ratio = spent[str(webhooks)] / spent["0"]
        yield Goal(
            f"N1 POST /bookings with webhooks: {webhooks}",
            f"at most {target}x one without",
            ratio,
            f"CPU {milliseconds(spent[str(webhooks)])} against {milliseconds(spent['0'])}",
            ratio <= target,
        )


def measure_database(url: str, folder: Path, name: str, target: float) -> list[Goal]:
    stage = Stage(url, folder)
    try:
        stage.start(workers=2)
        rates = stage.script("benchmarks.create_booking_vs_inserts", str(stage.service.port))
        ratio = rates["bare"] / rates["service"]
        found = [
            Goal(
                f"P6 create_booking, {name}",
                f"at least {target} of bare INSERTs",
                ratio,
                f"{milliseconds(rates['service'])} against {milliseconds(rates['bare'])}",
                ratio >= target,
            )
        ]
        return found + measure_served(stage, rates, name)
    finally:
        stage.stop()


def measure_served(stage: Stage, rates: dict[str, Any], name: str) -> list[Goal]:
    key, resources = rates["key"], rates["resources"]
    posted = rates["http"]
    of_service, of_inserts = rates["service"] / posted, rates["bare"] / posted
    note = f"{milliseconds(posted)} against {milliseconds(rates['service'])}"
    bare_note = f"{milliseconds(posted)} against {milliseconds(rates['bare'])}"
    found = [
        Goal(
            f"P6 POST /bookings, {name}",
            "at least 0.6 of create_booking's rate",
            of_service,
            note,
            of_service >= 0.6,
        ),
        Goal(
            f"P6' POST /bookings, {name}",
            "at least 0.4 of bare INSERTs",
            of_inserts,
            bare_note,
            of_inserts >= 0.4,
        ),
    ]
    series = measure_series(stage, key, resources[-1])
    found.append(
        Goal(
            f"A series of 52 in one request, {name}",
            "at most 15x one booking",
            series / posted,
            f"{milliseconds(series)} against {milliseconds(posted)}",
            series <= 15 * posted,
        )
    )
    long = measure_long_series(stage, key, resources[-1])
    found += [
        Goal(
            f"P23 a series of {LONG}: {change} it, {name}",
            "at most 2x making it",
            long[change] / long["make"],
            f"{milliseconds(long[change])} against {milliseconds(long['make'])}",
            long[change] <= 2 * long["make"],
        )
        for change in ("move", "cancel")
    ]
    found.append(
        Goal(
            f"P23 the longest wait of another booking of that resource, {name}",
            "at most 1 s",
            long["wait"],
            "seconds",
            long["wait"] <= 1,
        )
    )
    return found


def measure() -> list[Goal]:
    with tempfile.TemporaryDirectory() as folder, own_postgres() as url:
        found = measure_database(url, Path(folder), "PostgreSQL", 0.4)
        found += measure_webhooks(url, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        return found + measure_database(f"sqlite:///{path / 'db.sqlite3'}", path, "SQLite", 0.5)
