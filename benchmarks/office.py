"""The back office's lists with a thousand bookings and with a million."""

import http.client
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.stage import Goal, Stage, million, milliseconds, own_postgres, time_each

FEW = 1_000
TARGET = 3
# Seconds: the smallest denominator, because ratios of milliseconds are noise.
SHORTEST = 0.005


def page_reader(stage: Stage) -> Callable[[str, str], bytes]:
    """Return the function that reads a page, as whom the session's cookie says."""
    connection = http.client.HTTPConnection("127.0.0.1", stage.service.port, timeout=120)

    def get(path: str, cookie: str) -> bytes:
        connection.request("GET", path, headers={"Cookie": f"sessionid={cookie}"})
        answer = connection.getresponse()
        page = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return page

    return get


def measure_pages(stage: Stage, log_ins: dict[str, str], paths: list[str]) -> dict[Any, float]:
    get = page_reader(stage)
    runs = {
        (who, path): lambda path=path, cookie=cookie: get(path, cookie)
        for who, cookie in log_ins.items()
        for path in paths
    }
    return time_each(runs, rounds=3, seconds=0.2)


def measure() -> list[Goal]:
    found = []
    for total in (FEW, million()):
        with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
            stage = Stage(url, Path(folder))
            try:
                filled = stage.script("benchmarks.office_rows", str(total))
                stage.start()
                found.append(measure_pages(stage, filled["log_ins"], filled["paths"]))
            finally:
                stage.stop()
    small, large = found
    goals = []
    for (who, path), seconds in large.items():
        ratio = seconds / max(small[who, path], SHORTEST)
        note = f"{milliseconds(seconds)} against {milliseconds(small[who, path])}"
        goals.append(Goal(f"{path} as {who}", f"at most {TARGET}x", ratio, note, ratio <= TARGET))
    return sorted(goals, key=lambda goal: -goal.value)
