"""Push messages of Google at 200 per second, against a null endpoint at the same rate.

A request takes from the time when it should have been sent, so a slow answer counts for those that
wait behind it, too.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import quantiles

from benchmarks.stage import Goal, HttpClient, Stage, is_small, milliseconds, own_postgres
from tests import services

PER_SECOND = 200
CLIENTS = 8
GOAL = 0.05  # seconds, p99
PATH = "/calendars/notifications/google"

Send = Callable[[HttpClient], object]


def send_at_rate(stage: Stage, key: str, send: Send, seconds: float) -> list[float]:
    """Send at the rate, from clients with a connection each; return the seconds that each took."""
    begin = time.perf_counter() + 0.2

    def run(number: int) -> list[float]:
        client, times = stage.client(key), []
        client.connection.connect()
        for count in range(number, int(seconds * PER_SECOND), CLIENTS):
            due = begin + count / PER_SECOND
            time.sleep(max(0.0, due - time.perf_counter()))
            send(client)
            times.append(time.perf_counter() - due)
        return times

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [each for times in pool.map(run, range(CLIENTS)) for each in times]


def measure_rate(stage: Stage) -> Goal:
    filled = stage.script("benchmarks.fill", "channels")
    messages = cycle(filled["messages"])
    rounds, seconds = (2, 5) if is_small() else (3, 20)
    sends: dict[str, Send] = {
        "null": lambda client: client.call("POST", "/null/2", {}),
        "message": lambda client: client.call("POST", PATH, status=202, headers=next(messages)),
    }
    times: dict[str, list[float]] = {name: [] for name in sends}
    for send in sends.values():
        send_at_rate(stage, filled["key"], send, 1)
    for _ in range(rounds):
        for name, send in sends.items():
            times[name] += send_at_rate(stage, filled["key"], send, seconds)
    percentiles = {name: quantiles(found, n=100) for name, found in times.items()}
    p99, null_p99 = percentiles["message"][98], percentiles["null"][98]
    p50, null_p50 = percentiles["message"][49], percentiles["null"][49]
    return Goal(
        f"POST {PATH}, p99 at {PER_SECOND} per second",
        f"{GOAL * 1000:.0f} ms",
        p99 * 1000,
        f"ms; {p99 / null_p99:.2f}x the null POST ({milliseconds(null_p99)}); p50"
        f" {milliseconds(p50)} and {milliseconds(null_p50)}; {len(times['message'])} messages",
        p99 <= GOAL,
    )


def measure() -> Iterator[Goal]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(own_postgres())
        stage = Stage(url, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stage.env["RATE_LIMIT_PER_MINUTE"] = "0"  # all messages come from one address here
        if services.Redis.is_installed():
            redis = services.Redis()
            stack.callback(redis.stop)
            redis.start()
            stage.env["REDIS_URL"] = redis.url
        stack.callback(stage.stop)
        stage.start(workers=2)
        yield measure_rate(stage)
