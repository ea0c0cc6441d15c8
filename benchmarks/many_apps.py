"""The back office and the API's lists with ten apps and with ten thousand (N3)."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.cpu_time import cpu_per_call
from benchmarks.stage import Goal, Stage, is_small, milliseconds, own_postgres

FEW = 10
SHORTEST = 0.002  # seconds: the smallest denominator, because ratios of milliseconds are noise
LISTS = ("resources", "projects", "bookings", "customers", "calendars", "webhooks", "schedules")


def measure_requests(apps: int) -> dict[str, float]:
    """Return the CPU seconds of web and PostgreSQL of each path."""
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            filled = stage.script("benchmarks.fill", "apps", str(apps))
            stage.start()
            client = stage.client(filled["key"])
            runs = {f"/v2/{name}": partial(client.call, "GET", f"/{name}") for name in LISTS}
            for path in filled["pages"]:
                runs[path] = partial(read_page, stage.service.url + path, filled["session"])
            spent = cpu_per_call(stage, url, runs, rounds=3, per_round=5)
            return {path: sum(times) for path, times in spent.items()}
        finally:
            stage.stop()


def read_page(url: str, session: str) -> bytes:
    with urlopen(Request(url, headers={"Cookie": f"sessionid={session}"}), timeout=120) as answer:
        assert answer.url == url, f"{url} leads to {answer.url}"
        return answer.read()


def measure() -> Iterator[Goal]:
    """Yield the page and the list that grow most."""
    apps = 1_000 if is_small() else 10_000
    few, many = measure_requests(FEW), measure_requests(apps)
    ratios = {path: seconds / max(few[path], SHORTEST) for path, seconds in many.items()}
    for kind, begin in (("pages of the back office", "/admin/"), ("lists", "/v2/")):
        of_kind = [path for path in many if path.startswith(begin)]
        path = max(of_kind, key=lambda each: ratios[each])
        yield Goal(
            f"N3 {len(of_kind)} {kind}, {apps:,} apps: the one that grows most",
            f"at most 3x with {FEW} apps",
            ratios[path],
            f"{path}: CPU {milliseconds(many[path])} and {milliseconds(few[path])}",
            ratios[path] <= 3,
        )
