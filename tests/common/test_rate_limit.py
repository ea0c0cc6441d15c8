import os
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import RequestFactory

from common.limits import rate_limit
from common.limits.rate_limit import (
    RateKey,
    RateWindow,
    RefusedKeys,
    client_address,
    customer_network,
    digest_key,
    forwarded_by_unknown_proxy,
)
from common.limits.redis_counter import RedisCounter
from common.optional_redis import REDIS_PAUSE
from tests.services import free_port

ANN, BOB = RateKey(network="192.0.2.1"), RateKey(network="198.51.100.1")


def test_hits_of_one_minute():
    window = RateWindow(2)

    assert [window.hit(ANN, now) for now in (120, 130.5, 179.9, 180)] == [
        (True, 1, 60),
        (True, 0, 50),
        (False, 0, 1),
        (True, 1, 60),
    ]


def test_several_hits_at_once():
    window = RateWindow(5)

    assert [window.hit(ANN, 0, hits=hits)[:2] for hits in (1, 3, 3)] == [
        (True, 4),
        (True, 1),
        (False, 0),
    ]


def test_keys_are_counted_separately():
    window = RateWindow(1)

    assert [window.hit(key, 0)[0] for key in (ANN, BOB, ANN)] == [True, True, False]


def test_window_without_a_limit():
    window = RateWindow(0)

    assert [window.hit(ANN, 0) for _ in range(3)] == [(True, 0, 60)] * 3


def test_counts_are_kept_beyond_max_keys(monkeypatch):
    """A flood from many networks must not start the counts of others anew, nor fill the memory."""
    monkeypatch.setattr(rate_limit, "MAX_KEYS", 2)
    window = RateWindow(9)
    networks = ["192.0.2.1", "2001:db8:1:2::/64"]  # these have counts of their own
    networks += ["203.0.113.1", "203.0.113.2", "2001:db8:9:1::/64", "2001:db8:9:2::/64"]
    networks += ["198.51.100.1", "192.0.2.1", "203.0.113.3", "unknown"]

    for network in networks:
        window.hit(RateKey(network=network), 0)
    for credential in ("key", "key", "other"):
        window.hit(RateKey(credential), 0)
        window.hit(RateKey(credential, "198.51.100.7"), 0)

    assert window.counts == {
        RateKey(network="192.0.2.1"): 2,
        RateKey(network="2001:db8:1:2::/64"): 1,
        RateKey(network="203.0.113.0/24"): 3,
        RateKey(network="2001:db8:9::/48"): 2,
        RateKey(): 2,
        RateKey("key"): 4,
        RateKey("other"): 2,
    }


def test_old_windows_are_dropped():
    window = RateWindow(9)
    window.hit(ANN, 0)
    window.hit(BOB, 60)

    assert window.counts == {BOB: 1}


def test_concurrent_hits_are_all_counted():
    window = RateWindow(1000)

    with ThreadPoolExecutor(8) as pool:
        allowed = [hit[0] for hit in pool.map(lambda _: window.hit(ANN, 0), range(2000))]

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
        ("10.0.0.2", "::ffff:198.51.100.7", 1, "198.51.100.7", False),
        # A claim of the client itself.
        ("8.8.8.8", "6.6.6.6", 0, "8.8.8.8", False),
        ("::ffff:8.8.8.8", "6.6.6.6", 0, "8.8.8.8", False),
        ("10.0.0.2", None, 0, "10.0.0.2", False),
        ("10.0.0.2", "6.6.6.6", 1, "6.6.6.6", False),
        # Perhaps of a proxy that TRUSTED_PROXIES does not count: its own address counts.
        ("10.0.0.2", "6.6.6.6", 0, "10.0.0.2", True),
        ("::ffff:10.0.0.2", "6.6.6.6", 0, "10.0.0.2", True),
        ("127.0.0.1", "6.6.6.6", 0, "127.0.0.1", True),
        ("fd00::2", "6.6.6.6", 0, "fd00::/64", True),
        # A UNIX socket.
        ("", "6.6.6.6", 0, "unknown", True),
        ("", None, 0, "unknown", False),
    ],
)
def test_network_of_a_customer(direct, forwarded, hops, network, is_unknown, settings):
    settings.TRUSTED_PROXIES = hops
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR=direct)

    assert (customer_network(request), forwarded_by_unknown_proxy(request)) == (
        network,
        forwarded if is_unknown else "",
    )


def test_number_of_refused_keys_is_limited(monkeypatch):
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
    one, other, key = make_process(redis_url), make_process(redis_url), RateKey(uuid.uuid4().hex)

    hits = [process.hit(key, 30) for process in (one, other, one, other, one)]

    assert [(allowed, left) for allowed, left, _ in hits] == [
        (True, 2),
        (True, 1),
        (True, 0),
        (False, 0),
        (False, 0),
    ]
    assert one.hit(key, 90)[:2] == (True, 2)
    assert other.hit(key, 90, hits=2)[:2] == (True, 0)


@pytest.mark.redis
def test_redis_stores_a_digest_that_expires(redis_url):
    key = f"192.0.2.1 {uuid.uuid4().hex}"
    shared = RedisCounter(redis_url, seconds=5)

    shared.count(key, 7, 1)

    name = f"rate-limit:7:{digest_key(key)}"
    assert "192" not in digest_key(key).split()
    assert 0 < shared.client.ttl(name) <= 120


@pytest.fixture
def silent_server() -> Iterator[tuple[str, socket.socket]]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0", server


def test_local_count_while_redis_is_unresponsive(silent_server):
    url, server = silent_server
    window = RateWindow(2, RedisCounter(url))

    assert [window.hit(ANN, 30)[0] for _ in range(3)] == [True, True, False]

    server.setblocking(False)
    server.accept()[0].close()
    with pytest.raises(BlockingIOError):  # one connection: a failure is followed by a pause
        server.accept()


def test_redis_is_retried_after_the_pause(monkeypatch):
    shared = RedisCounter(f"redis://127.0.0.1:{free_port()}/0")
    asked = []
    incr = shared.client.incrby
    monkeypatch.setattr(
        shared.client, "incrby", lambda *values: asked.append(values) or incr(*values)
    )

    began = time.monotonic()
    counts = [shared.count("a", 0, 1), shared.count("a", 0, 1)]
    ended = time.monotonic()
    assert (counts, len(asked)) == ([None, None], 1)
    assert began + REDIS_PAUSE <= shared.paused_until <= ended + REDIS_PAUSE

    shared.paused_until = ended
    assert (shared.count("a", 0, 1), len(asked)) == (None, 2)
