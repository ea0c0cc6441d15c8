"""Memory of `./run` after mixed requests (P21)."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from benchmarks.booking_creation import body_of
from benchmarks.stage import Goal, HttpClient, is_small
from benchmarks.startup import start_and_time_run

CLIENTS = 8
SIGNS = {"web": "gunicorn", "worker": " worker ", "beat": "scheduling.beat"}


def pss_by_part(run: "subprocess.Popen[bytes]") -> Counter[str]:
    """Return proportional memory in MB: of the supervisor, web, worker and beat."""
    sizes: Counter[str] = Counter()
    family = [psutil.Process(run.pid)]
    for process in family + family[0].children(recursive=True):
        words = " ".join(process.cmdline())
        found = [part for part, sign in SIGNS.items() if sign in words]
        part = found[0] if found else "supervisor"
        sizes[part] += process.memory_full_info().pss / 1e6
    return sizes


def send_mixed_requests(port: int, demo: dict[str, Any], number: int) -> None:
    """Send availability, bookings, lists and single bookings in turn, from 8 clients."""
    numbers, failures = count(), list[BaseException]()

    def work() -> None:
        client = HttpClient(port, demo["api_key"])
        listed = json.loads(client.call("GET", "/resources"))["data"]
        resource = listed[0]["id"]
        try:
            while (position := next(numbers)) < number:
                send_mixed_request(client, demo, resource, position)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def send_mixed_request(
    client: HttpClient, demo: dict[str, Any], resource: str, position: int
) -> None:
    kind = position % 4
    if kind == 0:
        client.call("POST", "/availability", {"project_id": demo["project_id"]})
    elif kind == 1:
        client.call("GET", "/bookings?limit=50")
    elif kind == 2:
        client.call("POST", "/bookings", body_of(resource, position), status=201)
    else:
        client.call("GET", "/customers")


def measure() -> list[Goal]:
    number = 500 if is_small() else 5000
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        os.environ["RATE_LIMIT_PER_MINUTE"] = "0"
        run, _ = start_and_time_run(folder, log)
        try:
            while b"Ready: " not in log.read_bytes():
                time.sleep(0.1)
            demo = json.loads((Path(folder) / "demo.json").read_text())
            idle = pss_by_part(run)
            send_mixed_requests(port_of(log), demo, number)
            time.sleep(3)
            busy = pss_by_part(run)
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(60)
    note = ", ".join(f"{part} {size:.0f}" for part, size in busy.items())
    total = sum(busy.values())
    return [
        Goal(
            f"P21 memory of ./run after {number} mixed requests",
            "at most 450 MB (PSS)",
            total,
            f"MB: {note}; idle {sum(idle.values()):.0f}",
            total <= 450,
        )
    ]


def port_of(log: Path) -> int:
    """Return the port of `Ready: http://127.0.0.1:8000   (Ctrl-C stops)`."""
    return int(log.read_text().partition("Ready: http://127.0.0.1:")[2].split("/")[0])
