from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import RequestFactory

from common import rate_limit
from common.rate_limit import RateWindow, client_address


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
    assert window.is_spent("a", 0) is False


def test_is_spent_counts_nothing():
    window = RateWindow(1)

    assert [window.is_spent("a", 0), window.is_spent("a", 0)] == [False, False]
    window.hit("a", 0)
    assert (window.is_spent("a", 0), window.is_spent("a", 60)) == (True, False)


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
