"""The dearest requests, of public keys and others: CPU time, memory, size of the answer (N2)."""

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil

from benchmarks.cpu_time import cpu_of, postmaster
from benchmarks.endpoints import WEEKS
from benchmarks.stage import Goal, Stage, own_postgres

TRIES = 3
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
SECONDS = {"server key": 1.0, "widget key": 0.3}
MEMORY, SIZE = 100, 10  # MB
YEAR = {**WEEKS, "to": "366 days"}
# About as many days, slots and rules as one request may have for 100 resources.
DAYS = {**WEEKS, "to": "175 days"}
MINUTES = {**WEEKS, "to": "69 days", "timeslot_increments": "1 minute"}
RULES = [{"block_hours": {"start": f"{hour}:00", "end": f"{hour}:05"}} for hour in range(15)]


def requests(stage: Stage) -> dict[str, Callable[[], bytes]]:
    """Return name, which begins with the key in SECONDS, -> request."""
    filled = stage.script("benchmarks.fill", "small")
    owner = stage.client(filled["key"])
    body = {"name": "All", "resources": filled["resources"], "availability": DAYS}
    project = json.loads(owner.call("POST", "/projects", body, status=201))["data"]["id"]
    made = json.loads(owner.call("POST", "/credentials", {"kind": "widget"}, status=201))
    widget = stage.client(made["data"]["key"])
    four, hundred = {"resources": filled["resources"][:4]}, {"resources": filled["resources"]}
    slots, explain, public = "/availability", "/availability/explain", {"project_id": project}
    ask, ask_in_public = partial(partial, owner.call, "POST"), partial(partial, widget.call, "POST")
    return {
        "server key: explain, 4 resources, 366 days": ask(explain, {**YEAR, **four}),
        "server key: explain, 100 resources, 28 days (refused)": ask(
            explain, {**WEEKS, **hundred}, status=422
        ),
        "server key: each minute of 69 days": ask(slots, {**MINUTES, **hundred}),
        "server key: 366 days, 7 rules": ask(slots, {**YEAR, **hundred, "constraints": RULES[:7]}),
        "widget key: 175 days, 15 rules": ask_in_public(slots, {**public, "constraints": RULES}),
        "widget key: 175 days": ask_in_public(slots, public),
        "widget key: dates of 175 days": ask_in_public(f"{slots}/dates", public),
    }


def measure() -> Iterator[Goal]:
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            stage.start()
            calls = requests(stage)
            (web,) = psutil.Process(stage.service.processes["web"].pid).children()
            database, idle = postmaster(url), web.memory_info().rss
            for name, call in calls.items():
                most = SECONDS[name.partition(":")[0]]
                costs = [_measure_cost(web, database, call) for _ in range(TRIES)]
                seconds = min(cost[0] for cost in costs)
                memory, size = max(cost[1] for cost in costs) - idle / 1e6, costs[0][2]
                yield Goal(
                    f"N2 {name}",
                    f"at most {most} s of CPU, {MEMORY} MB of memory, {SIZE} MB of answer",
                    seconds,
                    f"s; {memory:.0f} MB of memory, {size:.2f} MB of answer",
                    seconds <= most and memory <= MEMORY and size <= SIZE,
                )
        finally:
            stage.stop()


def _measure_cost(
    web: psutil.Process, database: psutil.Process, call: Callable[[], bytes]
) -> tuple[float, float, float]:
    """Return CPU seconds of web and PostgreSQL, web's peak of memory and the answer's size (MB)."""
    Path(f"/proc/{web.pid}/clear_refs").write_text("5")  # the peak begins anew
    began = cpu_of(web) + cpu_of(database)
    answer = call()
    spent = cpu_of(web) + cpu_of(database) - began
    kilobytes = PEAK.findall(Path(f"/proc/{web.pid}/status").read_text())[0]
    return spent, int(kilobytes) * 1024 / 1e6, len(answer) / 1e6
