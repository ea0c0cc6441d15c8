"""The availability core: how its time grows with days and busy time (P3).

The case: one resource in Berlin, open on weekdays 9 to 12 and 13 to 17; busy spans of 15 to 60
minutes; slots of 30 minutes every 15, buffer 10. Ratios are medians of alternating rounds in one
process.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from availability.core.constraints import parse_constraints
from availability.core.slots import ResourceTimeline, SlotRequest, find_slots
from availability.core.zones import DAY
from benchmarks.stage import Goal, milliseconds, time_each

ZONE = "Europe/Berlin"
RULES = parse_constraints(
    [
        {"allow_weekdays": {}},
        {"allow_hours": {"start": 9, "end": 17}},
        {"block_hours": {"start": 12, "end": 13}},
    ]
)
LENGTH, INCREMENT, BUFFER = 30 * 60, 15 * 60, 10 * 60
START = int(datetime(2026, 11, 2, 7, tzinfo=UTC).timestamp())


class Case(NamedTuple):
    """busy: sorted (start, end) in epoch seconds."""

    days: int
    busy: list[tuple[int, int]]


def make_case(days: int, count: int) -> Case:
    chance = random.Random(1)
    starts = sorted(START + chance.randrange(days * DAY) // 300 * 300 for _ in range(count))
    return Case(days, [(start, start + chance.choice((900, 1800, 3600))) for start in starts])


def find_slots_of(case: Case) -> object:
    timeline = ResourceTimeline("r", ZONE, (RULES,), case.busy)
    request = SlotRequest(START, START + case.days * DAY, LENGTH, BUFFER, INCREMENT)
    return find_slots("roundrobin_prioritized", [timeline], request)


def measure() -> Iterator[Goal]:
    cases = {
        "typical": make_case(28, 500),
        "days": make_case(180, 500),
        "busy": make_case(28, 5000),
    }
    times = time_each({name: partial(find_slots_of, case) for name, case in cases.items()})
    for name, run, most in (
        ("180 days compared with 28", "days", 7),
        ("5,000 busy spans compared with 500", "busy", 8),
    ):
        ratio = times[run] / times["typical"]
        note = f"{milliseconds(times[run])} against {milliseconds(times['typical'])}"
        yield Goal(f"P3 {name}", f"at most {most}x", ratio, note, ratio <= most)
