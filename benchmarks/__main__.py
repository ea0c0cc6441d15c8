"""All benchmarks: python -m benchmarks [--small] [PART]..., by the names of `PARTS`.

load: ten minutes of 32 clients; runs only when it is named.
--small: all of them in some minutes, with a tenth of the rows and fewer rounds.
Prints each goal with its target and the measured figure; both parts of a ratio come from the same
run. Nothing is asserted: a busy machine is not a failure.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from benchmarks import (
    booking_creation,
    core,
    dearest_requests,
    deliveries,
    desk,
    endpoints,
    large_projects,
    listings,
    load_run,
    many_apps,
    notifications,
    reports,
)
from benchmarks.stage import Goal

PARTS: dict[str, Callable[[], Iterable[Goal]]] = {
    "core": core.measure,
    "endpoints": endpoints.measure,
    "large_projects": large_projects.measure,
    "dearest_requests": dearest_requests.measure,
    "many_apps": many_apps.measure,
    "desk": desk.measure,
    "listings": listings.measure,
    "reports": reports.measure,
    "notifications": notifications.measure,
    "creation": booking_creation.measure,
    "deliveries": deliveries.measure,
    "load": load_run.measure,
}
ALONE = frozenset({"load"})  # only when it is named
SIGNS = {True: "reached", False: "MISSED", None: ""}


def report(goals: Iterable[Goal]) -> None:
    for goal in goals:
        sign = SIGNS[goal.reached]
        print(
            f"| {goal.name} | {goal.target} | {goal.value:.2f} | {goal.note} | {sign} |", flush=True
        )


def main() -> None:
    names = [name for name in sys.argv[1:] if name != "--small"]
    if "--small" in sys.argv:
        os.environ["BENCH_SMALL"] = "1"
    chosen = names or [name for name in PARTS if name not in ALONE]
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        sys.exit(f"Unknown: {' '.join(unknown)}. There are: {' '.join(PARTS)}.")
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores"
    )
    print("\n| goal | target | measured | | |\n|---|---|---|---|---|", flush=True)
    for name in chosen:
        report(PARTS[name]())


if __name__ == "__main__":
    main()
