"""The dearest requests that the API answers: CPU time, memory and size of the answer (N2)."""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.cpu_time import cpu_of, postmaster
from benchmarks.endpoints import WEEKS
from benchmarks.stage import Goal, HttpClient, Stage, own_postgres

TRIES = 3
MAX_SECONDS, MAX_PUBLIC_SECONDS = 1.0, 0.3
MAX_MEMORY, MAX_ANSWER = 100.0, 10.0  # MB
BOOKINGS = 1_000
BOOKING_INCLUDES = (
    *("attributes", "event", "calendar", "resource.calendars", "customers", "meta", "logs"),
    *("project.resources", "available_actions", "customer_action_links", "event_notifications"),
)
YEAR = {**WEEKS, "to": "366 days"}
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


Call = Callable[[], bytes]


class Cost(NamedTuple):
    """CPU seconds of web and PostgreSQL, peak of web's memory above its size before all requests,
    and the answer's size, in MB.
    """

    seconds: float
    memory: float
    answer: float


def cost_of(web: psutil.Process, database: psutil.Process, idle: int, call: Call) -> Cost:
    """Return the least CPU time of some tries, and the highest peak. `idle`: bytes."""
    costs = []
    for _ in range(TRIES):
        Path(f"/proc/{web.pid}/clear_refs").write_text("5")  # the peak begins anew
        began = cpu_of(web) + cpu_of(database)
        answer = call()
        spent = cpu_of(web) + cpu_of(database) - began
        matched = PEAK.search(Path(f"/proc/{web.pid}/status").read_text())
        peak = int(matched[1]) * 1024 if matched else 0
        costs.append(Cost(spent, (peak - idle) / 1e6, len(answer) / 1e6))
    return Cost(*map(max, zip(*costs, strict=True)))._replace(
        seconds=min(cost.seconds for cost in costs)
    )


def windows(count: int) -> list[dict[str, Any]]:
    """Return as many rules of a minute a week."""
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    return [
        {
            "block_day_and_time": {
                "day": days[number % 5],
                "start": f"{number // 5 % 24:02}:{number // 120 * 10:02}",
                "end": f"{number // 5 % 24:02}:{number // 120 * 10 + 1:02}",
            }
        }
        for number in range(count)
    ]


def requests(stage: Stage) -> dict[str, tuple[float, Call]]:
    """Return name -> the CPU seconds that are allowed, and the request."""
    small = stage.script("benchmarks.fill", "small")
    many = stage.script("benchmarks.fill", "many")
    listed = stage.script("benchmarks.listing_rows", str(BOOKINGS))
    client, owner = stage.client(small["key"]), stage.client(many["key"])
    bookings = stage.client(listed["key"])
    made = owner.call("POST", "/credentials", {"kind": "widget"}, status=201)
    widget = stage.client(json.loads(made)["data"]["key"])
    hundred = {"resources": small["resources"], **WEEKS}
    minutes = {**hundred, "to": "69 days", "timeslot_increments": "1 minute"}
    ruled = {**hundred, "to": "366 days", "constraints": windows(50)}
    five_hundred = {"project_id": many["projects"]["500"]}
    whole = many["projects"]["10000"]

    def post(caller: HttpClient, path: str, body: Any, status: int = 200) -> Call:
        return lambda: caller.call("POST", path, body, status=status)

    def get(caller: HttpClient, path: str) -> Call:
        return lambda: caller.call("GET", path)

    explain, few = "/availability/explain", {**YEAR, "resources": small["resources"][:4]}
    keyed = {
        "POST /availability, 100 resources x 500 events": post(client, "/availability", hundred),
        "POST /availability, 100 resources each minute for 69 days": post(
            client, "/availability", minutes
        ),
        "POST /availability, 100 resources for a year, 50 rules": post(
            client, "/availability", ruled
        ),
        "explain, 100 resources x 500 events (422)": post(client, explain, hundred, 422),
        "explain, 4 resources x 500 events": post(client, explain, few),
        "POST /availability, a project of 500, a year": post(
            owner, "/availability", {**YEAR, **five_hundred}
        ),
        "GET /projects/:id of 10,000 resources": get(owner, f"/projects/{whole}"),
        "GET /projects/:id?include=resources of 10,000": get(
            owner, f"/projects/{whole}?include=resources"
        ),
        "GET /resources?limit=1000 with includes": get(
            owner, "/resources?limit=1000&include=calendars,availability_constraints"
        ),
        "GET /bookings?limit=1000 with includes": get(
            bookings, f"/bookings?limit=1000&include={','.join(BOOKING_INCLUDES)}"
        ),
    }
    public = {
        "public: POST /availability, a project of 500": post(
            widget, "/availability", {**WEEKS, **five_hundred}
        ),
        "public: GET /projects/embed/:id of 10,000": get(widget, f"/projects/embed/{whole}"),
    }
    return {
        **{name: (MAX_SECONDS, call) for name, call in keyed.items()},
        **{name: (MAX_PUBLIC_SECONDS, call) for name, call in public.items()},
    }


def measure() -> list[Goal]:
    goals = []
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            stage.start()
            calls = requests(stage)
            (web,) = psutil.Process(stage.service.processes["web"].pid).children()
            database, idle = postmaster(url), web.memory_info().rss
            for name, (most, call) in calls.items():
                cost = cost_of(web, database, idle, call)
                is_reached = all(
                    spent <= allowed
                    for spent, allowed in zip(cost, (most, MAX_MEMORY, MAX_ANSWER), strict=True)
                )
                goals.append(
                    Goal(
                        f"N2 {name}",
                        f"at most {most} s CPU, 100 MB memory, 10 MB answer",
                        cost.seconds,
                        f"memory {cost.memory:.0f} MB, answer {cost.answer:.2f} MB",
                        is_reached,
                    )
                )
        finally:
            stage.stop()
    return sorted(goals, key=lambda goal: -goal.value)
