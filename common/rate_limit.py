"""Approximate request counters, to stop a runaway client: in Redis for all processes, else for each
process.
"""

import ipaddress
import threading
import time
from typing import Protocol

from django.conf import settings
from django.http import HttpRequest

from common.keyed_digests import keyed_digest

WINDOW = 60
MAX_KEYS = 50_000


class SharedCounter(Protocol):
    """Counts the hits of all processes."""

    def count(self, key: str, window: int) -> int | None:
        """Count a hit; return the hits of all processes in the window. None: not known."""


def digest_key(text: str) -> str:
    """A keyed digest of 32 characters: what is counted stores no address."""
    return keyed_digest("common.rate_limit", text).hex()[:32]


class RateWindow:
    """At most `limit` hits of a key per whole minute; 0 = no limit. Thread-safe.

    `shared` counts the hits of all processes. The process always counts its own hits, so that an
    outage of `shared` does not start a new count.
    """

    def __init__(self, limit: int, shared: SharedCounter | None = None) -> None:
        self.limit = limit
        self.shared = shared
        self.window = 0
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()

    def hit(self, key: str, now: float | None = None) -> tuple[bool, int, int]:
        """Count a hit. Returns (allowed, remaining hits, seconds until the window ends)."""
        now = time.time() if now is None else now
        window = int(now // WINDOW)
        count = self._count(key, window)
        if self.shared:
            count = max(count, self.shared.count(key, window) or 0)
        return (
            not self.limit or count <= self.limit,
            max(0, self.limit - count),
            seconds_until_reset(now),
        )

    def _count(self, key: str, window: int) -> int:
        """The hits of the key in this process; drops the counts of older windows."""
        with self.lock:
            if window != self.window:
                self.window, self.counts = window, {}
            count = self.counts.get(key, 0) + 1
            if key not in self.counts and len(self.counts) >= MAX_KEYS:
                # Drop the oldest key to bound memory; its count starts anew.
                del self.counts[next(iter(self.counts))]
            self.counts[key] = count
            return count


class RefusedKeys:
    """Keys that this process refuses until an instant (epoch seconds): a flood of refused requests
    runs no statement to be counted.
    """

    MAX = 10_000

    def __init__(self) -> None:
        self.ends: dict[str, float] = {}

    def add(self, key: str, until: float) -> None:
        if len(self.ends) >= self.MAX:
            self.ends.clear()
        self.ends[key] = until

    def seconds_left(self, key: str, now: float) -> float:
        """Seconds until the key is admitted again; 0 if it is not refused."""
        return max(0.0, self.ends.get(key, 0.0) - now)


def seconds_until_reset(now: float) -> int:
    """Return whole seconds until the window of `now` ends, 1 to 60."""
    return WINDOW - int(now % WINDOW)


def client_address(request: HttpRequest) -> str:
    """Return the client's IP address, as the outermost of TRUSTED_PROXIES proxies saw it.

    Each proxy appends the address of its caller to X-Forwarded-For; entries further left are claims
    of the client. 0 proxies: the address of the connection.
    """
    direct = request.META.get("REMOTE_ADDR", "")
    hops = settings.TRUSTED_PROXIES
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    if not hops or not forwarded:
        return direct
    addresses = forwarded.split(",")
    claimed = addresses[-min(hops, len(addresses))].strip()
    return claimed if is_ip_address(claimed) else direct


def is_behind_unknown_proxy(request: HttpRequest) -> bool:
    """Whether a proxy forwards the request that TRUSTED_PROXIES does not count: all customers then
    seem to have the proxy's address.
    """
    if settings.TRUSTED_PROXIES or not request.META.get("HTTP_X_FORWARDED_FOR"):
        return False
    direct = request.META.get("REMOTE_ADDR", "")
    return not is_ip_address(direct) or ipaddress.ip_address(direct).is_private


def customer_network(request: HttpRequest) -> str:
    """The client's address, or the /64 network of an IPv6 address, all of which one customer has.

    "" behind an unknown proxy: one address must never stand for all customers.
    """
    address = client_address(request)
    if is_behind_unknown_proxy(request) or not is_ip_address(address):
        return ""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed.packed, 64), strict=False))


def is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
