"""What the counters of public requests cost: public bookings with limits against public bookings
without, in turn, over HTTP.
"""

import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.stage import Goal, Stage, milliseconds, own_postgres, time_each

SLOT = timedelta(minutes=5)
COUNTERS = (
    "public_bookings_per_address_per_hour",
    "public_bookings_per_email_per_day",
    "public_bookings_per_app_per_minute",
)
NO_LIMIT, NEVER_REACHED = 0, 1_000_000


def make_booker(stage: Stage, slug: str, limit: int) -> Callable[[], bytes]:
    """Make an app with these limits; the function makes the public booking of its next slot."""
    key = stage.script("benchmarks.fill", slug)["key"]
    client = stage.client(key)
    client.call("PUT", f"/apps/{slug}", {"settings": dict.fromkeys(COUNTERS, limit)})
    resource = {"name": "Ada", "timezone": "UTC"}
    made = json.loads(client.call("POST", "/resources", resource, status=201))["data"]
    body = {
        "name": "Check-up",
        "resources": [made["id"]],
        "booking": {"what": "Check-up"},
        "availability": {"length": "5 minutes", "to": "365 days"},
    }
    project = json.loads(client.call("POST", "/projects", body, status=201))["data"]["id"]
    widget = json.loads(client.call("POST", "/credentials", {"kind": "widget"}, status=201))
    public = stage.client(widget["data"]["key"])
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=2)
    numbers = count()

    def book() -> bytes:
        number = next(numbers)
        start = first + SLOT * number
        return public.call(
            "POST",
            "/bookings",
            {
                "project_id": project,
                "start": start.isoformat(),
                "end": (start + SLOT).isoformat(),
                "customer": {"name": "Marty McFly", "email": f"marty{number}@example.com"},
            },
            status=201,
        )

    return book


def measure_database(url: str, folder: Path, name: str) -> Goal:
    stage = Stage(url, folder)
    try:
        stage.start()
        make = partial(make_booker, stage)
        runs = {"without": make("unlimited", NO_LIMIT), "with": make("limited", NEVER_REACHED)}
        times = time_each(runs, rounds=15)
    finally:
        stage.stop()
    ratio = times["with"] / times["without"]
    return Goal(
        f"Counters: a public booking with limits, {name}",
        "at most 1.05x without",
        ratio,
        f"{milliseconds(times['with'])} against {milliseconds(times['without'])}",
        ratio <= 1.05,
    )


def measure() -> list[Goal]:
    with tempfile.TemporaryDirectory() as folder, own_postgres() as url:
        found = [measure_database(url, Path(folder), "PostgreSQL")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        return [*found, measure_database(f"sqlite:///{path / 'db.sqlite3'}", path, "SQLite")]
