import os
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import RequestFactory

from common import rate_limit
from common.optional_redis import REDIS_PAUSE
from common.rate_limit import (
    RateWindow,
    RefusedKeys,
    client_address,
    customer_network,
    digest_key,
    is_behind_unknown_proxy,
)
from common.redis_counter import RedisCounter
from tests.services import free_port


def test_hits_of_one_minute():
    window = RateWindow(2)

    assert [window.hit("a", now) for now in (120, 130.5, 179.9, 180)] == [
        (True, 1, 60),
        (True, 0, 50),
        (False, 0, 1),
        (True, 1, 60),
    ]


def test_keys_are_counted_apart():
    window = RateWindow(1)

    assert (window.hit("a", 0)[0], window.hit("b", 0)[0], window.hit("a", 0)[0]) == (
        True,
        True,
        False,
    )


def test_no_limit():
    window = RateWindow(0)

    assert [window.hit("a", 0) for _ in range(3)] == [(True, 0, 60)] * 3


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_KEYS", 3)
    window = RateWindow(9)

    for key in "abcad":
        window.hit(key, 0)

    assert window.counts == {"b": 1, "c": 1, "d": 1}


def test_old_windows_are_dropped():
    window = RateWindow(9)
    window.hit("a", 0)
    window.hit("b", 60)

    assert window.counts == {"b": 1}


def test_threads_lose_no_hit():
    window = RateWindow(1000)

    with ThreadPoolExecutor(8) as pool:
        allowed = [hit[0] for hit in pool.map(lambda _: window.hit("a", 0), range(2000))]

    assert sum(allowed) == 1000


@pytest.mark.parametrize(
    ("hops", "forwarded", "address"),
    [
        (0, None, "9.9.9.9"),
        (0, "1.1.1.1", "9.9.9.9"),
        (1, None, "9.9.9.9"),
        (1, "1.1.1.1", "1.1.1.1"),
        (1, "6.6.6.6, 1.1.1.1", "1.1.1.1"),
        (2, "6.6.6.6, 1.1.1.1, 2.2.2.2", "1.1.1.1"),
        (2, "1.1.1.1", "1.1.1.1"),
        (1, "2001:db8::1", "2001:db8::1"),
        (1, "6.6.6.6, nonsense", "9.9.9.9"),
        (1, "x" * 5000, "9.9.9.9"),
    ],
)
def test_client_address(hops, forwarded, address, settings):
    settings.TRUSTED_PROXIES = hops
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR="9.9.9.9")

    assert client_address(request) == address


@pytest.mark.parametrize(
    ("direct", "forwarded", "hops", "network", "is_unknown"),
    [
        ("203.0.113.9", None, 0, "203.0.113.9", False),
        ("2001:db8:1:2:3::4", None, 0, "2001:db8:1:2::/64", False),
        ("2001:db8:1:2:ffff::1", None, 0, "2001:db8:1:2::/64", False),
        ("::ffff:198.51.100.7", None, 0, "198.51.100.7", False),
        # A claim of the client itself.
        ("8.8.8.8", "6.6.6.6", 0, "8.8.8.8", False),
        ("10.0.0.2", None, 0, "10.0.0.2", False),
        ("10.0.0.2", "6.6.6.6", 1, "6.6.6.6", False),
        # A proxy that TRUSTED_PROXIES does not count.
        ("10.0.0.2", "6.6.6.6", 0, "", True),
        ("127.0.0.1", "6.6.6.6", 0, "", True),
        ("fd00::2", "6.6.6.6", 0, "", True),
        ("", "6.6.6.6", 0, "", True),
        # A UNIX socket without a header.
        ("", None, 0, "", False),
    ],
)
def test_the_network_of_a_customer(direct, forwarded, hops, network, is_unknown, settings):
    settings.TRUSTED_PROXIES = hops
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR=direct)

    assert (customer_network(request), is_behind_unknown_proxy(request)) == (network, is_unknown)


def test_refused_keys_are_bounded(monkeypatch):
    monkeypatch.setattr(RefusedKeys, "MAX", 2)
    refused = RefusedKeys()

    for key in "abc":
        refused.add(key, 60)

    assert [refused.seconds_left(key, 45) for key in "abc"] == [0, 0, 15]
    assert refused.seconds_left("c", 60) == 0


# --- Over all processes ---------------------------------------------------------------------------
@pytest.fixture
def redis_url() -> str:
    return os.environ["REDIS_URL"]


def make_process(url: str, limit: int = 3) -> RateWindow:
    """The counter of one process, with time enough for a busy machine."""
    return RateWindow(limit, RedisCounter(url, seconds=5))


@pytest.mark.redis
def test_processes_share_the_counts(redis_url):
    one, other, key = make_process(redis_url), make_process(redis_url), uuid.uuid4().hex

    hits = [process.hit(key, 30) for process in (one, other, one, other, one)]

    assert [(allowed, left) for allowed, left, _ in hits] == [
        (True, 2),
        (True, 1),
        (True, 0),
        (False, 0),
        (False, 0),
    ]
    assert one.hit(key, 90)[:2] == (True, 2)


@pytest.mark.redis
def test_redis_stores_a_digest_that_expires(redis_url):
    key = f"192.0.2.1 {uuid.uuid4().hex}"
    shared = RedisCounter(redis_url, seconds=5)

    shared.count(key, 7)

    name = f"rate-limit:7:{digest_key(key)}"
    assert "192" not in digest_key(key).split()
    assert 0 < shared.client.ttl(name) <= 120


@pytest.fixture
def silent_server() -> Iterator[tuple[str, socket.socket]]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0", server


def test_a_process_counts_alone_while_redis_is_silent(silent_server):
    url, server = silent_server
    window = RateWindow(2, RedisCounter(url))

    assert [window.hit("a", 30)[0] for _ in range(3)] == [True, True, False]

    server.setblocking(False)
    server.accept()[0].close()
    with pytest.raises(BlockingIOError):  # one connection: a failure is followed by a pause
        server.accept()


def test_redis_is_asked_again_after_the_pause(monkeypatch):
    shared = RedisCounter(f"redis://127.0.0.1:{free_port()}/0")
    asked = []
    incr = shared.client.incr
    monkeypatch.setattr(shared.client, "incr", lambda name: asked.append(name) or incr(name))

    began = time.monotonic()
    counts = [shared.count("a", 0), shared.count("a", 0)]
    ended = time.monotonic()
    assert (counts, len(asked)) == ([None, None], 1)
    assert began + REDIS_PAUSE <= shared.paused_until <= ended + REDIS_PAUSE

    shared.paused_until = ended
    assert (shared.count("a", 0), len(asked)) == (None, 2)
