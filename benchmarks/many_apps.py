"""The back office and the API's lists with ten apps and with ten thousand (N3)."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.cpu_time import cpu_per_call
from benchmarks.office import page_reader
from benchmarks.stage import Goal, Stage, is_small, milliseconds, own_postgres

FEW = 10
TARGET = 3
# Seconds: the smallest denominator, because ratios of milliseconds are noise.
SHORTEST = 0.002


def many() -> int:
    return 1_000 if is_small() else 10_000


def measure_requests(stage: Stage, url: str, apps: int) -> dict[str, float]:
    """Return the CPU seconds of web and PostgreSQL of each page and list."""
    filled = stage.script("benchmarks.many_apps_rows", str(apps))
    stage.start()
    get = page_reader(stage)
    client = stage.client(filled["key"])
    pages: dict[str, Callable[[], bytes]] = {
        f"{path} as {who}": lambda path=path, cookie=cookie: get(path, cookie)
        for who, cookie in filled["log_ins"].items()
        for path in (*filled["pages"], *(filled["staff_pages"] if who == "staff" else ()))
    }
    lists: dict[str, Callable[[], bytes]] = {
        f"GET {path}": lambda path=path: client.call("GET", path) for path in filled["lists"]
    }
    found = cpu_per_call(stage, url, pages, rounds=3, per_round=8)
    found |= cpu_per_call(stage, url, lists, rounds=3)
    return {name: sum(times) for name, times in found.items()}


def measure() -> list[Goal]:
    found = []
    for apps in (FEW, many()):
        with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
            stage = Stage(url, Path(folder))
            try:
                found.append(measure_requests(stage, url, apps))
            finally:
                stage.stop()
    small, large = found
    goals = []
    for name, seconds in large.items():
        ratio = seconds / max(small[name], SHORTEST)
        note = f"CPU {milliseconds(seconds)} against {milliseconds(small[name])}"
        goals.append(
            Goal(f"N3 {name}, {many():,} apps", "at most 3x 10 apps", ratio, note, ratio <= TARGET)
        )
    return sorted(goals, key=lambda goal: -goal.value)
