"""Redis flushed, gone, or mute: the API does not notice, deliveries go on (R12 to R14)."""

import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from tests.chaos.conftest import Deployment, p99, slug
from tests.live import LiveCaller

pytestmark = pytest.mark.redis
START = datetime(2031, 1, 6, tzinfo=UTC)


class Clients:
    """Ten bookings a second over HTTP, for as long as it is open."""

    def __init__(self, deployment: Deployment) -> None:
        made = deployment.fill(f"make_app({slug()!r}, 1)")
        self.caller = LiveCaller(deployment.service.url, made["key"])
        self.resource = made["resources"][0]
        self.codes: list[str] = []
        self.seconds: list[float] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Clients":
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(0.1):
            began = time.monotonic()
            self.codes.append(self.caller.post("/v2/bookings", self._body(number)).code)
            self.seconds.append(time.monotonic() - began)
            number += 1

    def _body(self, number: int) -> dict[str, Any]:
        start = START + timedelta(hours=number)
        return {
            "resource_id": self.resource,
            "what": "Meeting",
            "start": start.isoformat(),
            "end": (start + timedelta(hours=1)).isoformat(),
            "customer": {"name": "Ada", "email": "ada@example.com"},
        }


@pytest.mark.postgresql
@pytest.mark.chaos
def test_flushed_redis_loses_no_deliveries(deployment: Deployment) -> None:
    count, spread = deployment.size(2000, 100), deployment.size(60, 8)
    deployment.start_worker()
    deployment.service.start_beat()
    ids = deployment.fill(
        f"make_calls({slug()!r}, {[deployment.hooks.url()]!r}, {count}, {spread})"
    )
    client = redis.Redis.from_url(deployment.redis.url)
    flushes = 0
    while deployment.count_open():
        client.flushall()
        flushes += 1
        time.sleep(3 if deployment.full else 1)
    client.close()

    late = [call.at - ids[call.id] for call in deployment.hooks.calls]
    print(f"{count} rows, {flushes} flushes: p99 {p99(late):.1f} s late")
    assert flushes > 2
    assert deployment.hooks.count_by_id() == dict.fromkeys(ids, 1)


@pytest.mark.postgresql
@pytest.mark.chaos
def test_redis_outage_loses_no_deliveries(deployment: Deployment) -> None:
    deployment.service.start_web()
    deployment.start_worker()
    deployment.service.start_beat()
    with Clients(deployment) as clients:
        time.sleep(1)
        deployment.redis.kill()
        ids = deployment.fill(
            f"make_calls({slug()!r}, {[deployment.hooks.url()]!r}, {deployment.size(300, 40)}, 5)"
        )
        time.sleep(deployment.size(60, 5))
        deployment.wait_until_done(60, left=4)  # of the bookings that are just being made
        deployment.redis.start()
        time.sleep(deployment.size(10, 2))
    deployment.wait_until_done(60)
    mark = len(deployment.hooks.calls)
    late = [call.at - ids[call.id] for call in deployment.hooks.calls]
    after = deployment.fill(f"make_calls({slug()!r}, {[deployment.hooks.url('/after')]!r}, 5, 0)")
    deployment.wait_until_done(60)

    print(
        f"Redis gone: {len(clients.codes)} bookings, p99 {p99(clients.seconds) * 1000:.0f} ms;"
        f" calls p99 {p99(late):.1f} s late"
    )
    assert set(clients.codes) == {"201"}
    assert deployment.hooks.count_by_id() == dict.fromkeys([*ids, *after], 1)
    assert mark == len(ids)
    assert len(deployment.mails.mails) == len(clients.codes)
    deployment.verify()


@pytest.mark.chaos
def test_unresponsive_redis_does_not_delay_bookings(
    make_deployment: Callable[..., Deployment],
) -> None:
    """It takes connections and never answers: bookings are made as fast as ever."""
    deployment = make_deployment()
    deployment.start_worker()
    deployment.redis.kill()
    with socket.create_server(("127.0.0.1", deployment.redis.port), backlog=512):
        deployment.service.start_web()
        with Clients(deployment) as clients:
            time.sleep(deployment.size(60, 6))
        made = len(clients.codes)
        deployment.wait_until_done(60)

    print(f"mute Redis: {made} bookings, p99 {p99(clients.seconds) * 1000:.0f} ms")
    assert made > 10
    assert set(clients.codes) == {"201"}
    assert len(deployment.mails.mails) == made
