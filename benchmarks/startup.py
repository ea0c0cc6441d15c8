"""Warm start of `./run`: seconds to the first answer, memory (P12); cost of a key check (P13)."""

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from benchmarks.stage import Goal, Stage, own_postgres

ROOT = Path(__file__).resolve().parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).close()
    except (OSError, urllib.error.URLError):
        return False
    return True


def start_and_time_run(folder: str, log: Path) -> tuple[subprocess.Popen, float]:
    """Start `./run`; return it and the seconds until its first answer."""
    port = free_port()
    plain = {key: value for key, value in os.environ.items() if not key.endswith("_URL")}
    begin = time.perf_counter()
    with open(log, "wb") as file:
        run = subprocess.Popen(
            [ROOT / "run", "--port", str(port)],
            env=plain | {"VAR_DIR": folder},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    while not answers(port):
        if run.poll() is not None:
            raise RuntimeError(log.read_text())
        time.sleep(0.02)
    return run, time.perf_counter() - begin


def memory(run: subprocess.Popen) -> float:
    """Return the proportional memory of the process and all its descendants, in MB."""
    family = [psutil.Process(run.pid)]
    family += family[0].children(recursive=True)
    return sum(process.memory_full_info().pss for process in family) / 1e6


def measure_run() -> list[Goal]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        for _ in ("cold", "warm"):
            run, seconds = start_and_time_run(folder, log)
            try:
                while b"Ready: " not in log.read_bytes():
                    time.sleep(0.1)
                time.sleep(3)
                megabytes = memory(run)
            finally:
                run.send_signal(signal.SIGINT)
                run.wait(60)
    return [
        Goal("P12 ./run warm, first answer", "6 s", seconds, "seconds", seconds <= 6),
        Goal("P12 all its processes", "450 MB (PSS)", megabytes, "MB, when idle", megabytes <= 450),
    ]


def measure_authentication() -> list[Goal]:
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        found = stage.script("benchmarks.authentication")
    return [
        Goal("P13 queries of a check", "1", found["queries"], "queries", found["queries"] == 1),
        Goal(
            "P13 seconds of a check",
            "1 ms",
            found["seconds"] * 1000,
            "milliseconds",
            found["seconds"] <= 0.001,
        ),
    ]


def measure() -> list[Goal]:
    return measure_authentication() + measure_run()
