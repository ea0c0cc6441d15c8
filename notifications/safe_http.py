"""The doors for HTTP calls to addresses that others chose.

`call` is content with how the answer begins, `fetch` wants all of it.

Built on urllib3 and not on requests-hardened: that library asks a function of its own module about
addresses, so that another policy can only be patched in, and it resolves the name, in unbounded
time, before each call, also where a kept-alive connection waits. With both replaced, and with the
connections that a total deadline needs, nothing of it would be left. What it does well is here too:
one look-up, each answer judged, the connection pinned to a judged address under the name's own TLS.

No proxies, redirects, cookies or credentials from the environment: urllib3's pools know of none.
"""

import contextlib
import functools
import http.client
import math
import os
import queue
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, NamedTuple

import certifi
import urllib3

from notifications.watchdog import watched
from scheduling.api.addresses import (
    Address,
    Target,
    UrlRefused,
    addresses_problem,
    checked_target,
    literal_address,
)

LOOKUP_SECONDS = 3.0
MOST_LOOKUPS = 128  # at a time, with those that nobody waits for any more
MOST_ADDRESSES = 3  # of one name are tried
MOST_HOSTS = 100  # keep idle connections
MOST_IDLE = 64  # connections to one host
HEAD_BYTES = 65_536
BODY_BYTES = 20_000
PIECE_BYTES = 65_536

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
NETWORK_FAULTS = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)
TOO_LATE = "No answer within the time limit."
NOT_ALLOWED = "The address is not allowed."
TOO_LARGE = "The answer is too large."
UNREADABLE = "The answer's encoding can't be read."
CLOSED = "The connection was closed before an answer came."
# The first that fits.
SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, TOO_LATE),
    (urllib3.exceptions.TimeoutError, TOO_LATE),
    (urllib3.exceptions.SSLError, "No secure connection could be made."),
    (OSError, CLOSED),
    (Exception, "The answer is not HTTP."),
)


class Reply(NamedTuple):
    """What one try came to."""

    status: int | None  # of a head that was complete within the deadline
    seconds: float
    error: str = ""  # a sentence where there is no status; never a body or an address
    excerpt: str = ""  # how the answer's text begins
    retry_after: int | None = None  # seconds, with 429 and 503 only


class Fetched(NamedTuple):
    """What one fetch came to. Where the body is not there as a whole, `error` is a sentence, and
    `fault` the slug for it: refused (the address), failed (the network) or too_large."""

    status: int | None  # of a head that was complete within the deadline
    headers: Mapping[str, str] = {}  # by names in any case
    body: bytes = b""
    error: str = ""
    fault: str = ""
    retry_after: int | None = None  # seconds, with 429 and 503 only


class CallFailed(Exception):
    """There is no answer; the message is a sentence for whoever asks why."""

    fault = "failed"


class AddressRefused(CallFailed):
    """Nothing is sent to this address."""

    fault = "refused"


class TooLarge(CallFailed):
    """The body has more bytes than are wanted."""

    fault = "too_large"


class StaleConnection(CallFailed):
    """A kept-alive connection was closed at its other end, without a byte of an answer."""


def call(
    url: str, *, method: str, headers: Mapping[str, str], body: bytes, deadline: float = 15.0
) -> Reply:
    """One request, within `deadline` seconds of wall time. Raises for nothing the network does.

    Once the head is complete the call has succeeded, also if its body is cut off.
    """
    start = time.monotonic()
    try:
        with _network.attempt(checked_target(url), start + deadline) as attempt:
            answer = attempt.open(method.upper(), {**headers, "Accept-Encoding": "identity"}, body)
            excerpt = read_excerpt(answer)
    except (UrlRefused, CallFailed) as failure:
        return Reply(None, time.monotonic() - start, str(failure))
    return Reply(
        answer.status,
        time.monotonic() - start,
        excerpt=excerpt,
        retry_after=wanted_pause(answer),
    )


def fetch(
    url: str,
    *,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    deadline: float,
    most_bytes: int,
) -> Fetched:
    """One request and its whole answer, within `deadline` seconds of wall time.

    Of a body of more than `most_bytes` nothing is kept, and no more is read than tells so. Raises
    for nothing the network does.
    """
    ends = time.monotonic() + deadline
    fetched = Fetched(None)
    try:
        with _network.attempt(checked_target(url), ends) as attempt:
            answer = attempt.open(method.upper(), {**headers, "Accept-Encoding": "identity"}, body)
            fetched = Fetched(answer.status, answer.headers, b"", retry_after=wanted_pause(answer))
            return fetched._replace(body=read_whole(answer, attempt, most_bytes))
    except UrlRefused as refused:
        return fetched._replace(error=str(refused), fault=AddressRefused.fault)
    except CallFailed as failure:
        return fetched._replace(error=str(failure), fault=failure.fault)


def read_whole(answer: urllib3.BaseHTTPResponse, attempt: "Attempt", most_bytes: int) -> bytes:
    """The body to its end, unpacked. Raises CallFailed.

    Where the body ends with the connection, a cut looks like its end: hence the look at the clock.
    """
    raw = bytearray()
    try:
        if (answer.length_remaining or 0) > most_bytes:
            raise TooLarge(TOO_LARGE)
        while piece := answer.read1(PIECE_BYTES, decode_content=False):
            raw += piece
            if len(raw) > most_bytes:
                raise TooLarge(TOO_LARGE)
        attempt.left()
    except NETWORK_FAULTS as fault:
        raise attempt.failure(fault) from fault
    finally:
        answer.close()
    return unpacked(bytes(raw), answer.headers.get("Content-Encoding", ""), most_bytes)


def unpacked(raw: bytes, encoding: str, most_bytes: int) -> bytes:
    """Of a server that packs although it was asked not to; 400 kB may be 400 MB."""
    if encoding.strip().lower() in ("", "identity") or not raw:
        return raw
    unpacking = zlib.decompressobj(wbits=47)  # gzip or zlib, by its first bytes
    try:
        whole = unpacking.decompress(raw, most_bytes + 1)
    except zlib.error as fault:
        raise CallFailed(UNREADABLE) from fault
    if len(whole) > most_bytes:
        raise TooLarge(TOO_LARGE)
    if not unpacking.eof:
        raise CallFailed(UNREADABLE)
    return whole


def wanted_pause(answer: urllib3.BaseHTTPResponse) -> int | None:
    """Seconds, where the answer is one of those that may ask for a pause."""
    if answer.status not in (429, 503):
        return None
    return retry_after(answer.headers.get("Retry-After", ""), datetime.now(UTC))


def read_excerpt(answer: urllib3.BaseHTTPResponse) -> str:
    """The text of the body. Reads to the end of a short one, which keeps the connection alive; of a
    long one no more than BODY_BYTES, undecoded: 400 kB may unpack to 400 MB.
    """
    raw = bytearray()
    with contextlib.suppress(*NETWORK_FAULTS):
        while piece := answer.read1(BODY_BYTES - len(raw), decode_content=False):
            raw += piece
    answer.close()
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        return ""
    return CONTROL.sub("", raw.decode(errors="replace"))


def retry_after(text: str, now: datetime) -> int | None:
    """Seconds from a number or an HTTP date (RFC 9110 10.2.3); None for anything else."""
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return int(text)
    try:
        moment = parsedate_to_datetime(text)
        ahead = moment.replace(tzinfo=moment.tzinfo or UTC) - now
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0, math.ceil(ahead.total_seconds()))


def look_up(host: str, seconds: float, slots: threading.Semaphore) -> list[Address]:
    """Every address of `host`. The resolver has no time limit of its own, hence the thread."""
    literal = literal_address(host)
    if literal:
        return [literal]
    answers: queue.SimpleQueue[list[Address]] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            answers.put([ip_address(entry[4][0]) for entry in entries])
        except (OSError, ValueError):
            answers.put([])
        finally:
            slots.release()

    addresses: list[Address] = []
    if slots.acquire(timeout=seconds):
        threading.Thread(target=resolve, daemon=True).start()
        with contextlib.suppress(queue.Empty):
            addresses = answers.get(timeout=seconds)
    if not addresses:
        raise CallFailed("The host name could not be resolved.")
    return addresses


class Attempt:
    """One call: where it goes, when it has to end, and how its socket is shut from outside."""

    def __init__(self, target: Target, ends: float, network: "Network") -> None:
        self.target, self.ends, self.network = target, ends, network
        self.wants_fresh = False  # no kept-alive connection
        self.is_fresh = False  # the connection was made for this call
        self.lock = threading.Lock()
        self.handle: socket.socket | None = None

    def left(self) -> float:
        """Seconds; raises CallFailed when there are none."""
        seconds = self.ends - time.monotonic()
        if seconds <= 0:
            raise CallFailed(TOO_LATE)
        return seconds

    def open(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> urllib3.BaseHTTPResponse:
        """The answer with its head read. Raises CallFailed."""
        try:
            return self.send(method, headers, body)
        except StaleConnection:
            self.wants_fresh = True
            return self.send(method, headers, body)

    def send(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> urllib3.BaseHTTPResponse:
        scheme, host, port, path = self.target
        pool = self.network.pools.connection_from_host(host, port, scheme)
        try:
            answer = pool.urlopen(
                method,
                path,
                body=body or None,
                headers=headers,
                timeout=self.left(),
                retries=False,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                decode_content=False,
            )
        except NETWORK_FAULTS as fault:
            raise self.failure(fault) from fault
        if time.monotonic() > self.ends:
            answer.close()
            raise CallFailed(TOO_LATE)
        return answer

    def failure(self, fault: Exception) -> CallFailed:
        self.left()
        cause = fault.args[-1] if isinstance(fault, urllib3.exceptions.ProtocolError) else fault
        if isinstance(cause, ConnectionResetError | BrokenPipeError) and not self.is_fresh:
            return StaleConnection(CLOSED)
        return CallFailed(next(text for kind, text in SENTENCES if isinstance(cause, kind)))

    def connect(self) -> socket.socket:
        """To an address that was judged: the name is not looked up again."""
        self.is_fresh = True
        seconds = min(LOOKUP_SECONDS, self.left())
        addresses = look_up(self.target.host, seconds, self.network.lookups)
        if addresses_problem(addresses, self.target.port):
            raise AddressRefused(NOT_ALLOWED)
        tried = addresses[:MOST_ADDRESSES]
        for count, address in enumerate(tried):
            with contextlib.suppress(OSError):
                return self.connect_to(address, self.left() / (len(tried) - count))
        self.left()
        raise CallFailed("No connection could be made.")

    def connect_to(self, address: Address, seconds: float) -> socket.socket:
        sock = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(seconds)
            sock.connect((str(address), self.target.port))
            sock.settimeout(self.left())
            self.watch(sock)
        except BaseException:
            sock.close()
            raise
        return sock

    def watch(self, sock: socket.socket) -> None:
        """From now on `cut` shuts `sock`.

        By a descriptor of its own: that of `sock` goes over to TLS, or is closed and given to
        another connection, in the moment of the cut.
        """
        self.end()
        number = os.dup(sock.fileno())
        with self.lock:
            self.handle = socket.socket(sock.family, sock.type, sock.proto, fileno=number)

    def cut(self) -> None:
        with self.lock:
            if self.handle:
                with contextlib.suppress(OSError):
                    self.handle.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        with self.lock:
            if self.handle:
                self.handle.close()


class Network:
    """What the calls of one process share."""

    def __init__(self) -> None:
        self.pools = urllib3.PoolManager(MOST_HOSTS, maxsize=MOST_IDLE)
        self.pools.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}
        self.lookups = threading.BoundedSemaphore(MOST_LOOKUPS)

    @contextlib.contextmanager
    def attempt(self, target: Target, ends: float) -> Iterator[Attempt]:
        attempt = _running.attempt = Attempt(target, ends, self)
        try:
            with watched(attempt):
                yield attempt
        finally:
            attempt.end()


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Trusts the public authorities and those that the operator gave to the system."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context


# --- What urllib3 has to do differently -----------------------------------------------------------
class HeadFile:
    """The file of an answer while its head is read: bounded, and never ended by a cut.

    http.client takes a head that breaks off for a complete one, and one of 6 MB for fit.
    """

    def __init__(self, file: Any) -> None:
        self.file, self.left, self.has_begun = file, HEAD_BYTES, False
        self.close, self.flush = file.close, file.flush

    def readline(self, limit: int) -> bytes:
        try:
            self.has_begun = self.has_begun or bool(self.file.peek(1))
            line = self.file.readline(limit)
        except ConnectionResetError as fault:
            raise ConnectionAbortedError if self.has_begun else fault from None
        self.left -= len(line)
        if self.left < 0:
            raise http.client.LineTooLong("head")
        if self.has_begun and not line.endswith(b"\n"):
            raise ConnectionAbortedError
        return line


class Answer(http.client.HTTPResponse):
    def begin(self) -> None:
        file = self.fp
        self.fp = HeadFile(file)
        super().begin()
        self.fp = file


class Pinned:
    """A connection to where the attempt of this thread says, watched while it serves it."""

    response_class = Answer
    sock: socket.socket | None
    close: Callable[[], None]

    def _new_conn(self) -> socket.socket:
        return _running.attempt.connect()

    def request(self, *args: Any, **kwargs: Any) -> None:
        attempt = _running.attempt
        if self.sock and not attempt.is_fresh:
            if attempt.wants_fresh:
                self.close()
            else:
                attempt.watch(self.sock)
        super().request(*args, **kwargs)


class HttpConnection(Pinned, urllib3.connection.HTTPConnection):
    pass


class HttpsConnection(Pinned, urllib3.connection.HTTPSConnection):
    pass


class HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = HttpConnection


class HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = HttpsConnection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, ssl_context=tls_context(), **kwargs)


_running = threading.local()
_network = Network()


def _start_afresh() -> None:
    """After a fork: connections may not be shared."""
    global _network
    _network = Network()


os.register_at_fork(after_in_child=_start_afresh)
