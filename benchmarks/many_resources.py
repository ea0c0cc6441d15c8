"""Projects of many resources (P18, P19), and requests of many clients at once (P22)."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
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

LENGTH = timedelta(minutes=15)
DAYS = 200  # bookings of projects start within their window of a year


def measure_slots(stage: Stage, small: dict, many: dict) -> list[Goal]:
    """P19: POST /availability for 500 free resources, and for 100 with 500 events each."""
    client, owner = stage.client(small["key"]), stage.client(many["key"])
    one = {"resources": small["resources"][:1], **WEEKS}
    hundred = {"resources": small["resources"], **WEEKS}
    free = {"project_id": many["projects"]["500"], **WEEKS}
    three = {"requires": requirements(small["resources"]), **WEEKS}
    packed = {key: value for key, value in hundred.items() if key != "timeslot_increments"}
    times = time_each(
        {
            "one": lambda: client.call("POST", "/availability", one),
            "free": lambda: owner.call("POST", "/availability", free),
            "hundred": lambda: client.call("POST", "/availability", hundred),
            "exclusive": lambda: client.call(
                "POST", "/availability", {**hundred, "mode": "exclusive"}
            ),
            "mutual": lambda: client.call("POST", "/availability", {**hundred, "mode": "mutual"}),
            "three": lambda: client.call("POST", "/availability", three),
            "packed": lambda: client.call("POST", "/availability", packed),
        }
    )
    rows = (
        ("a project of 500 free resources, 28 days", "free", 30),
        ("100 resources x 500 events", "hundred", 8),
        ("the same, mode exclusive", "exclusive", None),
        ("the same, mode mutual", "mutual", None),
        ("the same, without increments", "packed", None),
    )
    goals = [
        Goal(
            f"P19 POST /availability, {name}",
            f"at most {most}x P4" if most else "reported",
            ratio := times[run] / times["one"],
            f"{milliseconds(times[run])} against {milliseconds(times['one'])}",
            ratio <= most if most else None,
        )
        for name, run, most in rows
    ]
    ratio = times["three"] / times["exclusive"]
    note = f"{milliseconds(times['three'])} against {milliseconds(times['exclusive'])}"
    name = "P19 POST /availability, 3 requirements over the 100 resources"
    return [*goals, Goal(name, "at most 4x mode exclusive", ratio, note, ratio <= 4)]


def requirements(resources: list[str]) -> list[dict[str, Any]]:
    """Three requirements, each of a third of the resources."""
    return [{"name": str(number), "any_of": resources[number::3]} for number in range(3)]


def starts(days: int = DAYS) -> Iterator[datetime]:
    """Starts from Monday to Friday, 13:00 to 16:45 Berlin time in summer and winter, in turn."""
    first = datetime.now(UTC).replace(hour=13, minute=0, second=0, microsecond=0)
    for quarter in range(8):
        for day in range(2, days):
            start = first + timedelta(days=day) + LENGTH * quarter
            if start.weekday() < 5:
                yield start


Call = Callable[[HttpClient], bytes]


def make_booker(
    *, emails: Sequence[str] = ("marty@example.com",), days: int = DAYS, **target: str
) -> Call:
    """Return a function that books the target's next time, for these customers in turn."""
    times, addresses = starts(days), cycle(emails)

    def book(client: HttpClient) -> bytes:
        start = next(times)
        body = {
            **target,
            "start": start.isoformat(),
            "end": (start + LENGTH).isoformat(),
            "what": "Meeting",
            "customer": {"name": "Marty McFly", "email": next(addresses)},
        }
        return client.call("POST", "/bookings", body, status=201)

    return book


def measure_bookings(stage: Stage, many: dict) -> list[Goal]:
    """P18: POST /bookings by a project, against one by a resource."""
    client = stage.client(many["key"])
    bookers = {"resource": make_booker(resource_id=many["resources"][0])}
    bookers |= {size: make_booker(project_id=found) for size, found in many["projects"].items()}
    times = time_each({name: partial(book, client) for name, book in bookers.items()})
    return [
        Goal(
            f"P18 POST /bookings by a project of {size} resources",
            f"at most {most}x one by a resource" if most else "reported",
            ratio := times[size] / times["resource"],
            f"{milliseconds(times[size])} against {milliseconds(times['resource'])}",
            ratio <= most if most else None,
        )
        for size, most in (("10", None), ("500", 2), ("10000", 6))
    ]


# --- Many clients ---------------------------------------------------------------------------------
SECONDS, ROUNDS = 1.5, 3


def run_clients(stage: Stage, key: str, calls: list[Call]) -> tuple[float, list[float]]:
    """Call all at once for some seconds; return calls per second and the seconds of each call."""

    def work(call: Call) -> list[float]:
        client, times = stage.client(key), []
        while (start := time.perf_counter()) < until:
            call(client)
            times.append(time.perf_counter() - start)
        return times

    began = time.perf_counter()
    until = began + (SECONDS / 2 if is_small() else SECONDS)
    with ThreadPoolExecutor(len(calls)) as pool:
        times = [spent for found in pool.map(work, calls) for spent in found]
    return len(times) / (time.perf_counter() - began), times


def poster(path: str, body: Any) -> Call:
    return lambda client: client.call("POST", path, body)


def measure_load(stage: Stage, small: dict, many: dict) -> Iterator[Goal]:
    """P22: requests a second as a share of null requests, and p99 against p50."""
    weeks = {size: {"resources": small["resources"][:size], **WEEKS} for size in (1, 10, 100)}
    answer = stage.client(small["key"]).call("POST", "/availability", weeks[1])
    null = poster(f"/null/{len(answer)}", weeks[1])
    kinds: dict[str, tuple[str, list[Call]]] = {
        f"availability of {size}": (small["key"], [poster("/availability", body)] * 32)
        for size, body in weeks.items()
    }
    own = [make_booker(resource_id=resource_id) for resource_id in many["resources"][1:]]
    kinds["bookings by resource"] = many["key"], own
    of_project = [make_booker(project_id=many["projects"]["500"]) for _ in range(32)]
    kinds["bookings by a project of 500"] = many["key"], of_project
    for clients in (8, 32):
        for name, (key, calls) in kinds.items():
            rounds = [
                (
                    run_clients(stage, small["key"], [null] * clients)[0],
                    *run_clients(stage, key, calls[:clients]),
                )
                for _ in range(ROUNDS)
            ]
            share = median(rate / of_null for of_null, rate, _ in rounds)
            rate = median(rate for _, rate, _ in rounds)
            cuts = quantiles([spent for *_, times in rounds for spent in times], n=100)
            spread = cuts[98] / cuts[49]
            yield Goal(
                f"P22 {clients} clients, {name}",
                "p99 at most 3x p50" if clients == 32 else "reported",
                spread,
                f"p99 {milliseconds(cuts[98])}, p50 {milliseconds(cuts[49])};"
                f" {rate:.0f} a second, {share:.2f} of null",
                spread <= 3 if clients == 32 else None,
            )


def measure() -> Iterator[Goal]:
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            stage.start(workers=2)
            small = stage.script("benchmarks.fill", "small")
            many = stage.script("benchmarks.fill", "many")
            yield from measure_slots(stage, small, many)
            yield from measure_bookings(stage, many)
            yield from measure_load(stage, small, many)
        finally:
            stage.stop()
