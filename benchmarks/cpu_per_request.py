"""CPU time of web and of PostgreSQL per request: what docs/operations.md plans machines by.

The access log is on and
goes to a file, in JSON, as in production.
"""

import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from benchmarks.booking_creation import body_of
from benchmarks.cpu_time import cpu_per_call
from benchmarks.endpoints import WEEKS
from benchmarks.stage import Goal, Stage, milliseconds, own_postgres


def measure() -> list[Goal]:
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        stage.env["LOG_LEVEL"], stage.env["LOG_FORMAT"] = "INFO", "json"
        try:
            stage.start()
            return _measure(stage, url)
        finally:
            stage.stop()


def _measure(stage: Stage, url: str) -> list[Goal]:
    filled = stage.script("benchmarks.fill", "small")
    client = stage.client(filled["key"])
    first, second = filled["resources"][:2]
    numbers = count()
    one = {"resources": [first], **WEEKS}
    runs: dict[str, Callable[[], bytes]] = {
        "an empty request": lambda: client.call("POST", "/null/100", one),
        "POST /availability, 28 days": lambda: client.call("POST", "/availability", one),
        "POST /bookings": lambda: client.call(
            "POST", "/bookings", body_of(second, next(numbers)), status=201
        ),
        "GET /bookings": lambda: client.call("GET", "/bookings"),
    }
    return [
        Goal(
            f"CPU time of {name}",
            "reported",
            of_web * 1000,
            f"web {milliseconds(of_web)}, PostgreSQL {milliseconds(of_postgres)}",
        )
        for name, (of_web, of_postgres) in cpu_per_call(stage, url, runs).items()
    ]
