"""The availability core against `portion` and against a loop over datetimes (goals P1 to P3).

python -m benchmarks.core

The case: one resource in Berlin, open on weekdays 9 to 12 and 13 to 17; busy spans of 15 to 60
minutes; slots of 30 minutes every 15, buffer 10. All start from rules and integers and return the
same list of (start, end). Ratios are medians of alternating rounds in one process.
"""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from time import perf_counter
from typing import NamedTuple
from zoneinfo import ZoneInfo

import portion

from availability.core import constraints, slots
from availability.core.constraints import parse_constraints
from availability.core.slots import ResourceTimeline, SlotRequest, find_slots
from availability.core.zones import DAY

ZONE = "Europe/Berlin"
RULES = parse_constraints(
    [
        {"allow_weekdays": {}},
        {"allow_hours": {"start": 9, "end": 17}},
        {"block_hours": {"start": 12, "end": 13}},
    ]
)
OPENINGS = ((9, 12), (13, 17))
LENGTH, INCREMENT, BUFFER = 30, 15, 10  # minutes
START = int(datetime(2026, 11, 2, 7, tzinfo=UTC).timestamp())
ROUNDS = 15

Slots = list[tuple[int, int]]


class Case(NamedTuple):
    """busy: sorted (start, end) in epoch seconds."""

    days: int
    busy: list[tuple[int, int]]

    @property
    def end(self) -> int:
        return START + self.days * DAY


def make_case(days: int, count: int, *, seed: int = 1) -> Case:
    chance = random.Random(seed)
    starts = sorted(START + chance.randrange(days * DAY) // 300 * 300 for _ in range(count))
    return Case(days, [(start, start + chance.choice((900, 1800, 3600))) for start in starts])


TYPICAL = make_case(28, 500)


def with_core(case: Case) -> Slots:
    agenda = ResourceTimeline("r", ZONE, (RULES,), case.busy)
    demand = SlotRequest(START, case.end, LENGTH * 60, BUFFER * 60, INCREMENT * 60)
    return find_slots("roundrobin_prioritized", [agenda], demand)  # type: ignore[return-value]


def with_cold_core(case: Case) -> Slots:
    """Run the core with empty caches, except the zone's offset changes."""
    for cached in (constraints.make_weekly_pattern, constraints._expand_cached, slots._grid_cached):
        cached.cache_clear()
    return with_core(case)


def local_openings(case: Case) -> list[tuple[datetime, datetime]]:
    zone = ZoneInfo(ZONE)
    first = datetime.fromtimestamp(START, zone).date()
    days = (first + timedelta(days=n) for n in range(case.days + 1))
    return [
        (datetime(day.year, day.month, day.day, opens, tzinfo=zone),
         datetime(day.year, day.month, day.day, closes, tzinfo=zone))
        for day in days
        if day.weekday() < 5
        for opens, closes in OPENINGS
    ]  # fmt: skip


def with_portion_library(case: Case) -> Slots:
    """Subtract widened busy time from windows with portion; starts count from the opening."""
    windows = [(int(a.timestamp()), int(b.timestamp())) for a, b in local_openings(case)]
    opened = portion.Interval(*(portion.closedopen(a, b) for a, b in windows))
    busy = portion.Interval(
        *(portion.closedopen(a - BUFFER * 60, b + BUFFER * 60) for a, b in case.busy)
    )
    free = (opened & portion.closedopen(START, case.end)) - busy
    found = []
    upcoming = iter(windows)
    opening, closing = next(upcoming)
    for gap in free:
        while closing <= gap.lower:
            opening, closing = next(upcoming)
        first = gap.lower + (opening - gap.lower) % (INCREMENT * 60)
        for start in range(first, gap.upper - LENGTH * 60 + 1, INCREMENT * 60):
            found.append((start, start + LENGTH * 60))
    return found


def with_datetimes(case: Case) -> Slots:
    """Compare every candidate of a day with that day's busy spans, as is often done."""
    length, increment, buffer = (timedelta(minutes=n) for n in (LENGTH, INCREMENT, BUFFER))
    start, end = (datetime.fromtimestamp(at, UTC) for at in (START, case.end))
    taken: dict[object, list[tuple[datetime, datetime]]] = {}
    for a, b in case.busy:
        since = datetime.fromtimestamp(a, UTC) - buffer
        until = datetime.fromtimestamp(b, UTC) + buffer
        for day in {since.date(), until.date()}:
            taken.setdefault(day, []).append((since, until))
    found = []
    for opens, closes in local_openings(case):
        at, last = opens.astimezone(UTC), closes.astimezone(UTC) - length
        today = taken.get(at.date(), [])
        while at <= last:
            ends = at + length
            if start <= at and ends <= end and not any(a < ends and at < b for a, b in today):
                found.append((int(at.timestamp()), int(ends.timestamp())))
            at += increment
    return found


def time_of(run: Callable[[], object]) -> float:
    """Return the mean seconds of a run, over about 20 milliseconds of runs."""
    began = perf_counter()
    run()
    repeats = max(1, int(0.02 / (perf_counter() - began)))
    began = perf_counter()
    for _ in range(repeats):
        run()
    return (perf_counter() - began) / repeats


def compare(run: Callable[[], object], base: Callable[[], object]) -> tuple[float, float, float]:
    """Return (median of base/run, seconds of run, seconds of base), alternating the two."""
    pairs = [(time_of(run), time_of(base)) for _ in range(ROUNDS)]
    ratio = median(b / a for a, b in pairs)
    return ratio, median(a for a, _ in pairs), median(b for _, b in pairs)


def check_same_answers() -> None:
    """Check that all three ways find the same slots; otherwise their times mean nothing."""
    for case in (make_case(28, 500), make_case(28, 50), make_case(180, 500)):
        found = [(start, end) for start, end, *_ in with_core(case)]
        if not found == with_portion_library(case) == with_datetimes(case):
            raise AssertionError("the implementations disagree")


def measure() -> list[tuple[str, str, float, str]]:
    """Return (goal, target, measured ratio, note) for P1, P2 and both halves of P3."""
    check_same_answers()
    goals = (
        ("P1", ">= 20x faster than portion", partial(with_portion_library, TYPICAL)),
        ("P2", ">= 8x faster than a datetime loop per day", partial(with_datetimes, TYPICAL)),
        ("P3", "180 days <= 7x 28 days", partial(with_core, make_case(180, 500))),
        ("P3", "5000 busy <= 8x 500 busy", partial(with_core, make_case(28, 5000))),
    )
    rows = []
    for goal, target, rival in goals:
        ratio, own, other = compare(partial(with_core, TYPICAL), rival)
        rows.append((goal, target, ratio, f"{other * 1e6:.0f} us / {own * 1e6:.0f} us"))
    return rows


def measure_many(agendas: int = 100) -> float:
    """Return milliseconds for many resources that share their rules, with 500 busy spans each."""
    many = [
        ResourceTimeline(n, ZONE, (RULES,), make_case(28, 500, seed=n).busy) for n in range(agendas)
    ]
    demand = SlotRequest(START, START + 28 * DAY, LENGTH * 60, BUFFER * 60, INCREMENT * 60)
    times = [time_of(lambda: find_slots("roundrobin_random", many, demand)) for _ in range(ROUNDS)]
    return median(times) * 1e3


if __name__ == "__main__":
    for goal, target, ratio, note in measure():
        print(f"{goal}  {target:45} {ratio:6.1f}x  {note}")
    cold, own, other = compare(
        *(partial(way, TYPICAL) for way in (with_cold_core, with_portion_library))
    )
    print(f"    {'P1 with cold caches':45} {cold:6.1f}x  {other * 1e6:.0f} us / {own * 1e6:.0f} us")
    print(f"    100 agendas x 500 busy, shared rules {measure_many():15.1f} ms")
