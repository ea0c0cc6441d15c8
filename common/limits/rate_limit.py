"""Approximate request counters, to stop a runaway client: in Redis for all processes, else for each
process.
"""

import ipaddress
import threading
import time
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import NamedTuple, Protocol

from django.conf import settings
from django.http import HttpRequest

from common.keyed_digests import keyed_digest

WINDOW = 60
MAX_KEYS = 50_000
# A request counts once more for each 10 ms of CPU time that it has used: 6,000 a minute are no more
# than one core.
CPU_SECONDS = 0.01
NO_ADDRESS = "unknown"

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class SharedCounter(Protocol):
    """Counts the hits of all processes."""

    def count(self, key: str, window: int, hits: int) -> int | None:
        """Count hits; return the hits of all processes in the window. None: not known."""


def digest_key(text: str) -> str:
    """A keyed digest of 32 characters: what is counted stores no address."""
    return keyed_digest("common.limits.rate_limit", text).hex()[:32]


class RateKey(NamedTuple):
    """Whose requests are counted: those of a credential, of a network, or of a credential in a
    network. `network`: of `customer_network`.
    """

    credential: str = ""
    network: str = ""

    def __str__(self) -> str:
        return f"{self.credential} {self.network}"


class RateWindow:
    """At most `limit` hits of a key per whole minute; 0 = no limit. Thread-safe.

    `shared` counts the hits of all processes. The process always counts its own hits, so that an
    outage of `shared` does not start a new count.

    Memory is bounded, and no count is dropped before its minute ends: after MAX_KEYS keys, others
    are counted by their /24 (IPv4) or /48 (IPv6), and after as many of these by their credential.
    """

    def __init__(self, limit: int, shared: SharedCounter | None = None) -> None:
        self.limit = limit
        self.shared = shared
        self.window = 0
        self.counts: dict[RateKey, int] = {}
        self.lock = threading.Lock()

    def hit(
        self, key: RateKey, now: float | None = None, *, hits: int = 1
    ) -> tuple[bool, int, int]:
        """Count hits. Returns (allowed, remaining hits, seconds until the window ends)."""
        now = time.time() if now is None else now
        window = int(now // WINDOW)
        key, count = self._count(key, window, hits)
        if self.shared:
            count = max(count, self.shared.count(str(key), window, hits) or 0)
        return (
            not self.limit or count <= self.limit,
            max(0, self.limit - count),
            seconds_until_reset(now),
        )

    def _count(self, key: RateKey, window: int, hits: int) -> tuple[RateKey, int]:
        """The counted key and its hits in this process; drops the counts of older windows."""
        with self.lock:
            if window != self.window:
                self.window, self.counts = window, {}
            if key not in self.counts and len(self.counts) >= MAX_KEYS:
                key = self._overflow_key(key)
            count = self.counts[key] = self.counts.get(key, 0) + hits
            return key, count

    def _overflow_key(self, key: RateKey) -> RateKey:
        wide = key._replace(network=_wider_network(key.network))
        is_counted = wide in self.counts or len(self.counts) < 2 * MAX_KEYS
        return wide if is_counted else RateKey(key.credential)


class CountedRequest:
    """A request in the count of its key, and the headers' numbers."""

    def __init__(self, window: RateWindow, key: RateKey) -> None:
        self.window = window
        self.key = key
        self.limit = window.limit
        self.began = time.thread_time()
        self.is_allowed, self.remaining, self.reset = window.hit(key)

    def count_cpu_time(self) -> None:
        """Count the request again for each CPU_SECONDS that this thread has used for it."""
        hits = int((time.thread_time() - self.began) / CPU_SECONDS)
        if hits:
            _, self.remaining, self.reset = self.window.hit(self.key, hits=hits)


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


def read_client_address(request: HttpRequest) -> Address | None:
    """Return `client_address`, an IPv4 address mapped into IPv6 as itself; None: not known."""
    return _read_address(client_address(request))


def customer_network(request: HttpRequest) -> str:
    """The client's address, or the /64 network of an IPv6 address, all of which one customer has.

    Behind a proxy that TRUSTED_PROXIES does not count, the proxy's. Without an address (a UNIX
    socket): NO_ADDRESS.
    """
    address = read_client_address(request)
    if address is None:
        return NO_ADDRESS
    return str(address if address.version == 4 else _network_of(address, 64))


def _wider_network(network: str) -> str:
    """The /24 or /48 of a network of `customer_network`."""
    address = _read_address(network.partition("/")[0])
    if address is None:
        return network
    return str(_network_of(address, 24 if address.version == 4 else 48))


def _network_of(address: Address, prefix: int) -> Network:
    return ipaddress.ip_network((address.packed, prefix), strict=False)


def forwarded_by_unknown_proxy(request: HttpRequest) -> str:
    """Return the request's X-Forwarded-For if TRUSTED_PROXIES is 0 and a proxy may have sent it,
    as the peer has a private address or none; else "".
    """
    peer = _read_address(request.META.get("REMOTE_ADDR", ""))
    if settings.TRUSTED_PROXIES or (peer and not peer.is_private):
        return ""
    return request.META.get("HTTP_X_FORWARDED_FOR", "")


def is_ip_address(text: str) -> bool:
    return _read_address(text) is not None


def _read_address(text: str) -> Address | None:
    """The address, an IPv4 address that is mapped into IPv6 as itself; None if it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
