"""Completing bookings whose time is over (P26)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stage import Goal, Stage, is_small, own_postgres

GOAL = 500  # a second


def measure() -> Iterator[Goal]:
    count = 300 if is_small() else 2000
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        rate = stage.script("benchmarks.completions_in_process", str(count))
    name, note = "P26 completed bookings", f"a second, {count} bookings, one process"
    yield Goal(name, f"at least {GOAL} a second", rate, note, rate >= GOAL)
