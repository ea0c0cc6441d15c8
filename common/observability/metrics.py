"""Counts of the processes themselves: requests of web and tasks of workers.

prometheus_client keeps them in files below PROMETHEUS_MULTIPROC_DIR, one per process, because a
scrape reaches any one process. `ops/metrics.py` adds them up, with what the database says.
"""

import functools
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, Histogram, Metric, multiprocess

REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
TASK_BUCKETS = (0.01, 0.05, 0.25, 1, 5, 10, 30, 60)
FOLDER = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])  # set by the settings
FOLDER.mkdir(parents=True, exist_ok=True)

# Functions that return a metric by its labels: to find it costs more than to count. Labels make a
# file only when they are first used: commands of manage.py leave none.
request_seconds = functools.cache(
    Histogram(
        "http_request_duration_seconds",
        "Requests by method, route and class of the status.",
        ("method", "route", "status"),
        buckets=REQUEST_BUCKETS,
    ).labels
)
requests_in_progress = functools.cache(
    Gauge(
        "http_requests_in_progress",
        "Requests being served; each takes one of web_threads.",
        ("method",),
        multiprocess_mode="livesum",
    ).labels
)
task_seconds = functools.cache(
    Histogram(
        "task_duration_seconds",
        "Tasks of workers by name and result (success, failure, retry).",
        ("task", "result"),
        buckets=TASK_BUCKETS,
    ).labels
)
# A counter that begins at 1 has no increase: Prometheus would miss the first failure of a process.
task_last_failure = functools.cache(
    Gauge(
        "task_last_failure_timestamp_seconds",
        "When a task last failed (Unix time).",
        ("task",),
        multiprocess_mode="max",
    ).labels
)


def report_threads(threads: int) -> None:
    """Called once by each web process."""
    gauge = Gauge(
        "web_threads",
        "Threads of all web processes: requests served at once.",
        multiprocess_mode="livesum",
    )
    gauge.set(threads)


class ProcessCollector(multiprocess.MultiProcessCollector):
    """Reads the files of all processes that share the folder."""

    def collect(self) -> Iterable[Metric]:
        """Return the sums. A process opens its file before the file has a first byte: an empty file
        has no counts yet, and the library can't read it. `remove_old_files` may remove a file that
        was found: then the folder is listed again."""
        while True:
            files = [str(file) for file in FOLDER.glob("*.db") if _size(file)]
            with suppress(FileNotFoundError):
                return self.merge(files)


def _size(file: Path) -> int:
    """Return the bytes of a file, 0 if there is none."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def process_registry() -> CollectorRegistry:
    """Return the sums over all processes that share the folder."""
    registry = CollectorRegistry()
    ProcessCollector(registry)
    return registry


def forget_process(pid: int) -> None:
    """Remove the gauges of an ended process; its counts stay in the sums."""
    multiprocess.mark_process_dead(pid)


def remove_old_files() -> None:
    """Remove the files of processes that run no more: at the start of web all counts begin anew."""
    for file in FOLDER.glob("*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with suppress(FileNotFoundError):
                file.unlink()
