"""Webhook calls: how many per second (P9), how late (P10), and with a long queue (P11); mails."""

import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stage import Goal, Stage, is_small, million, own_postgres
from tests import services


@contextlib.contextmanager
def sink(delay_ms: int) -> Iterator[int]:
    """Start a receiver in a process of its own; yield its port."""
    port = services.free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.sink", str(port), str(delay_ms)],
        preexec_fn=services.end_with_parent,
    )
    try:
        until = time.monotonic() + 10
        while True:
            try:
                read_seen(port)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def few(count: int) -> int:
    return count // 3 if is_small() else count


def read_seen(port: int) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/seen")
    return json.loads(connection.getresponse().read())


def measure_rate(stage: Stage, delay_ms: int, count: int, target: float) -> Goal:
    with sink(delay_ms) as port:
        found = stage.script("benchmarks.deliveries_in_process", "rate", str(port), str(count))
    return Goal(
        f"P9 webhook calls, receiver answers after {delay_ms} ms",
        f"at least {target} of a bare pool",
        found["share"],
        f"{found['dispatcher']:.0f} against {found['pool']:.0f} a second",
        found["share"] >= target,
    )


def measure_depth(stage: Stage) -> Goal:
    with sink(0) as port:
        found = stage.script("benchmarks.deliveries_in_process", "depth", str(port))
    share = found["100000"] / found["10000"]
    return Goal(
        "P11 100,000 rows due",
        "at least 0.8 of the rate with 10,000",
        share,
        f"{found['100000']:.0f} against {found['10000']:.0f} a second",
        share >= 0.8,
    )


def measure_claims(stage: Stage, backlog: int) -> Iterator[Goal]:
    found = stage.script("benchmarks.deliveries_in_process", "claims", "0", str(backlog))
    for name, seconds in found.items():
        ratio = seconds["beside"] / seconds["empty"]
        yield Goal(
            f"P24 a claim beside {backlog:,} due calls: {name}",
            "at most 2x one with an empty queue",
            ratio,
            f"{seconds['beside'] * 1000:.1f} and {seconds['empty'] * 1000:.1f} ms",
            ratio <= 2,
        )


def measure_empty_lanes(stage: Stage, checks: int) -> Iterator[Goal]:
    found = stage.script("benchmarks.deliveries_in_process", "empty", "0", str(checks))
    for lanes, seconds in found.items():
        yield Goal(
            f"P24 another app's call is claimed beside {checks:,} due checks, empty lanes: {lanes}",
            "within 2 s",
            seconds["first"],
            f"s; {seconds['all']:.1f} s until no check is due",
            seconds["first"] <= 2,
        )


def measure_lock_waits(stage: Stage) -> Goal:
    with sink(0) as port:
        found = stage.script(
            "benchmarks.deliveries_in_process", "share", str(port), str(few(20_000))
        )
    return Goal(
        "P25 4 dispatcher processes on one queue: time of statements that wait for locks",
        "under a fifth",
        found["waiting"],
        f"{found['all']:.0f} calls a second, {found['one']:.0f} by one process",
        found["waiting"] < 0.2,
    )


def measure_lateness(stage: Stage) -> Goal:
    """Measure with the real worker and beat, woken over Redis."""
    stage.service.start_worker(concurrency=2)
    stage.service.start_beat()
    with sink(0) as port:
        due = stage.script("benchmarks.deliveries_in_process", "fill", str(port), str(few(3000)))
        time.sleep(max(due.values()) - time.time() + 4)
        seen = read_seen(port)
    late = sorted(seen[key] - at for key, at in due.items() if key in seen)
    p99 = late[int(len(late) * 0.99)] * 1000
    return Goal(
        "P10 due to received at 200 a second, p99",
        "150 ms",
        p99,
        f"ms; median {late[len(late) // 2] * 1000:.0f}, latest {late[-1] * 1000:.0f};"
        f" {len(late)} of {len(due)} arrived",
        p99 <= 150 and len(late) == len(due),
    )


def measure_mails(stage: Stage) -> Goal:
    port = services.free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.mail_sink", str(port)],
        preexec_fn=services.end_with_parent,
    )
    stage.env["EMAIL_URL"] = f"smtp://127.0.0.1:{port}"
    try:
        spent = stage.script("benchmarks.mails", "20" if is_small() else "50") * 1000
    finally:
        process.kill()
        process.wait()
        del stage.env["EMAIL_URL"]
    return Goal("P20 the two mails of a booking", "8 ms of CPU", spent, "ms", spent <= 8)


def measure() -> Iterator[Goal]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(own_postgres())
        stage = Stage(url, folder)
        stack.callback(stage.stop)
        stage.env["WEBHOOK_ALLOWED_NETWORKS"] = "127.0.0.0/8"
        yield measure_mails(stage)
        yield measure_rate(stage, 0, few(3000), 0.75)
        yield measure_rate(stage, 50, few(3000), 0.8)
        yield measure_depth(stage)
        yield from measure_claims(stage, million())
        yield from measure_empty_lanes(stage, million() // 10)
        yield measure_lock_waits(stage)
        if services.Redis.is_installed():
            redis = services.Redis()
            stack.callback(redis.stop)
            redis.start()
            stage.env["REDIS_URL"] = redis.url
            stage.env["DELIVERY_ENDPOINT_CAP"] = "16"
            yield measure_lateness(stage)
