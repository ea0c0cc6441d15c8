"""CPU time of web and of PostgreSQL per request: what docs/operations.md plans machines by.

CPU time, unlike duration, hardly depends on what else the machine does. The access log is on and
goes to a file, in JSON, as in production.
"""

import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

import psutil
import psycopg

from benchmarks.booking_creation import body_of
from benchmarks.endpoints import WEEKS
from benchmarks.stage import Goal, Stage, milliseconds, own_postgres

ROUNDS, PER_ROUND = 5, 100


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
    web = psutil.Process(stage.service.processes["web"].pid)
    postmaster = _postmaster(url)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(PER_ROUND):
            run()
    for _ in range(ROUNDS):
        for name, run in runs.items():
            before = cpu_of(web), cpu_of(postmaster)
            for _ in range(PER_ROUND):
                run()
            spent = cpu_of(web) - before[0], cpu_of(postmaster) - before[1]
            times[name].append((spent[0] / PER_ROUND, spent[1] / PER_ROUND))
    goals = []
    for name, found in times.items():
        of_web, of_postgres = (median(part) for part in zip(*found, strict=True))
        note = f"web {milliseconds(of_web)}, PostgreSQL {milliseconds(of_postgres)}"
        goals.append(Goal(f"CPU time of {name}", "reported", of_web * 1000, note))
    return goals


def cpu_of(process: psutil.Process) -> float:
    """Return the CPU seconds of the process and its children, ended ones too."""
    own = process.cpu_times()
    spent = own.user + own.system + own.children_user + own.children_system
    for child in process.children(recursive=True):
        times = child.cpu_times()
        spent += times.user + times.system
    return spent


def _postmaster(url: str) -> psutil.Process:
    with psycopg.connect(url) as connection:
        parent = psutil.Process(connection.info.backend_pid).parent()
    if parent is None:
        raise RuntimeError("PostgreSQL must run on this machine")
    return parent
