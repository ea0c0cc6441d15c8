"""Projects of many resources: a booking that takes any of them, and their free times (P18, P19)."""

import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.endpoints import WEEKS
from benchmarks.stage import (
    Goal,
    HttpClient,
    Stage,
    is_small,
    milliseconds,
    own_postgres,
    time_each,
)

HOUR = timedelta(hours=1)
APART = timedelta(weeks=17)  # no other project's bookings take the shared resources


def working_hours(monday: datetime) -> Iterator[datetime]:
    """Yield the starts of each working day from this week on, outside lunch in Berlin."""
    for week in count():
        for day in range(5):
            for hour in (8, 9, 12, 13, 14):
                yield monday + timedelta(weeks=week, days=day, hours=hour)


class Bookings:
    """Books a project at another time in each call."""

    def __init__(self, client: HttpClient, project_id: str, starts: Iterator[datetime]) -> None:
        self.client = client
        self.project_id = project_id
        self.starts = starts

    def __call__(self) -> bytes:
        start = next(self.starts)
        body = {
            "project_id": self.project_id,
            "start": start.isoformat(),
            "end": (start + HOUR).isoformat(),
            "what": "Meeting",
            "customer": {"name": "Marty McFly", "email": "marty@example.com"},
        }
        return self.client.call("POST", "/bookings", body, status=201)


def measure_bookings(client: HttpClient, projects: Mapping[str, str]) -> Iterator[Goal]:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today + timedelta(days=7 - today.weekday())
    bookings = {
        size: Bookings(client, key, working_hours(monday + APART * number))
        for number, (size, key) in enumerate(projects.items())
    }
    times = time_each(bookings)
    one = times.pop("1")
    for (size, seconds), most in zip(times.items(), (2, 6), strict=True):
        yield Goal(
            f"P18 a booking by a project of {int(size):,} resources",
            f"at most {most}x a project of one",
            seconds / one,
            f"{milliseconds(seconds)} against {milliseconds(one)}",
            seconds <= most * one,
        )


def measure_search(client: HttpClient, filled: Mapping[str, Any]) -> Goal:
    """Compare the free times of 500 resources without events with P4's one."""
    one = {"resources": filled["busy"], **WEEKS}
    free = {"resources": filled["free"], **WEEKS, "mode": "roundrobin_prioritized"}
    times = time_each(
        {
            "one": lambda: client.call("POST", "/availability", one),
            "free": lambda: client.call("POST", "/availability", free),
        }
    )
    growth = times["free"] / times["one"]
    return Goal(
        "P19 POST /availability, 500 free resources, 28 days",
        "at most 30x P4",
        growth,
        milliseconds(times["free"]),
        growth <= 30,
    )


def measure() -> Iterator[Goal]:
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            most = 2_000 if is_small() else 10_000
            filled = stage.script("benchmarks.fill", "large_projects", str(most))
            stage.start()
            client = stage.client(filled["key"])
            yield from measure_bookings(client, filled["projects"])
            yield measure_search(client, filled)
        finally:
            stage.stop()
