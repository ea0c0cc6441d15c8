"""Approximate request counters per process, to stop a runaway client."""

import ipaddress
import threading
import time

from django.conf import settings
from django.http import HttpRequest

WINDOW = 60
MAX_KEYS = 50_000


class RateWindow:
    """At most `limit` hits of a key per whole minute; 0 = no limit. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.window = 0
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()

    def hit(self, key: str, now: float | None = None) -> tuple[bool, int, int]:
        """Count a hit. Returns (allowed, remaining hits, seconds until the window ends)."""
        now = time.time() if now is None else now
        with self.lock:
            count = self.hits(key, now) + 1
            if key not in self.counts and len(self.counts) >= MAX_KEYS:
                # Drop the oldest key to bound memory; its count starts anew.
                del self.counts[next(iter(self.counts))]
            self.counts[key] = count
        return (
            not self.limit or count <= self.limit,
            max(0, self.limit - count),
            seconds_until_reset(now),
        )

    def is_spent(self, key: str, now: float | None = None) -> bool:
        """Return whether the next hit would be refused; counts nothing."""
        now = time.time() if now is None else now
        with self.lock:
            return bool(self.limit) and self.hits(key, now) >= self.limit

    def hits(self, key: str, now: float) -> int:
        """Return hits of the key in the window of `now`; drops the counts of older windows."""
        window = int(now // WINDOW)
        if window != self.window:
            self.window, self.counts = window, {}
        return self.counts.get(key, 0)


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


def is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
