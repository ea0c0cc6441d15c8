"""Redis flushed, gone, or mute: the API does not notice, deliveries go on (R12 to R14)."""

import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from tests.chaos.conftest import House, p99, slug
from tests.live import LiveCaller

pytestmark = pytest.mark.redis
START = datetime(2031, 1, 6, tzinfo=UTC)


class Clients:
    """Ten bookings a second over HTTP, for as long as it is open."""

    def __init__(self, house: House) -> None:
        made = house.fill(f"make_app({slug()!r}, 1)")
        self.caller = LiveCaller(house.service.url, made["key"])
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
def test_a_flushed_redis_loses_nothing(house: House) -> None:
    count, spread = house.size(2000, 100), house.size(60, 8)
    house.start_worker()
    house.service.start_beat()
    ids = house.fill(f"make_calls({slug()!r}, {[house.hooks.url()]!r}, {count}, {spread})")
    client = redis.Redis.from_url(house.redis.url)
    flushes = 0
    while house.count_open():
        client.flushall()
        flushes += 1
        time.sleep(3 if house.full else 1)
    client.close()

    late = [call.at - ids[call.id] for call in house.hooks.calls]
    print(f"{count} rows, {flushes} flushes: p99 {p99(late):.1f} s late")
    assert flushes > 2
    assert house.hooks.count_by_id() == dict.fromkeys(ids, 1)


@pytest.mark.postgresql
@pytest.mark.chaos
def test_redis_is_gone_for_a_while(house: House) -> None:
    house.service.start_web()
    house.start_worker()
    house.service.start_beat()
    with Clients(house) as clients:
        time.sleep(1)
        house.redis.kill()
        ids = house.fill(
            f"make_calls({slug()!r}, {[house.hooks.url()]!r}, {house.size(300, 40)}, 5)"
        )
        time.sleep(house.size(60, 5))
        house.wait_until_done(60, left=4)  # of the bookings that are just being made
        house.redis.start()
        time.sleep(house.size(10, 2))
    house.wait_until_done(60)
    mark = len(house.hooks.calls)
    late = [call.at - ids[call.id] for call in house.hooks.calls]
    after = house.fill(f"make_calls({slug()!r}, {[house.hooks.url('/after')]!r}, 5, 0)")
    house.wait_until_done(60)

    print(
        f"Redis gone: {len(clients.codes)} bookings, p99 {p99(clients.seconds) * 1000:.0f} ms;"
        f" calls p99 {p99(late):.1f} s late"
    )
    assert set(clients.codes) == {"201"}
    assert house.hooks.count_by_id() == dict.fromkeys([*ids, *after], 1)
    assert mark == len(ids)
    assert len(house.mails.mails) == len(clients.codes)
    house.verify()


@pytest.mark.chaos
def test_a_redis_that_says_nothing(make_house: Callable[..., House]) -> None:
    """It takes connections and never answers: bookings are made as fast as ever."""
    house = make_house()
    house.start_worker()
    house.redis.kill()
    with socket.create_server(("127.0.0.1", house.redis.port), backlog=512):
        house.service.start_web()
        with Clients(house) as clients:
            time.sleep(house.size(60, 6))
        made = len(clients.codes)
        house.wait_until_done(60)

    print(f"mute Redis: {made} bookings, p99 {p99(clients.seconds) * 1000:.0f} ms")
    assert made > 10
    assert set(clients.codes) == {"201"}
    assert len(house.mails.mails) == made
