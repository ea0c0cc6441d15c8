"""HTTP calls to URLs that others chose, protected against server-side request forgery.

`send_request` needs only the start of the response, `fetch_body` all of it.

Built on urllib3 and not on requests-hardened: that library checks addresses with a function of its
own module, so that another policy can only be patched in, and it resolves the name, without a time
limit, before each call, even if a kept-alive connection is available. With both replaced, and with
the connections that a total deadline needs, nothing of it would be left. Its good parts are here
too: one look-up, every address checked, the connection pinned to a checked address, TLS for the
name.

No proxies, redirects, cookies or credentials from the environment: urllib3's pools use none.
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
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, NamedTuple

import certifi
import urllib3

from common.messages import Message, find_message
from common.net.deadline_watchdog import interrupt_at_deadline
from common.net.ssrf import (
    Address,
    UrlRefused,
    UrlTarget,
    addresses_problem,
    checked_target,
    literal_address,
)

LOOKUP_SECONDS = 3.0
MAX_LOOKUPS = 128  # concurrent, including abandoned ones
MAX_ADDRESSES = 3  # tried per name
MAX_HOSTS = 100  # with idle connections
MAX_IDLE = 64  # connections to one host
HEAD_BYTES = 65_536
BODY_BYTES = 20_000
PIECE_BYTES = 65_536

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
NETWORK_FAULTS = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)
TOO_LATE = Message("No response within the time limit.")
NOT_ALLOWED = "The address is not allowed."
TOO_LARGE = "The response is too large."
UNREADABLE = "The response's encoding can't be read."
CLOSED = "The connection was closed before a response arrived."
# The first match applies.
SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, TOO_LATE),
    (urllib3.exceptions.TimeoutError, TOO_LATE),
    (urllib3.exceptions.SSLError, "The TLS connection failed."),
    (OSError, CLOSED),
    (Exception, "The response is not HTTP."),
)


class CallResult(NamedTuple):
    """The result of one request."""

    status: int | None  # of a head that was complete within the deadline
    seconds: float
    error: str = ""  # a sentence if there is no status; never a body or an address
    excerpt: str = ""  # the start of the response's text
    retry_after: int | None = None  # seconds, with 429 and 503 only


class FetchResult(NamedTuple):
    """The result of one fetch. If the body is not complete, `error` is a sentence and `fault` its
    slug: refused (the address), failed (the network) or too_large.
    """

    status: int | None  # of a head that was complete within the deadline
    headers: Mapping[str, str] = {}  # case-insensitive names
    body: bytes = b""
    error: str = ""
    fault: str = ""
    retry_after: int | None = None  # seconds, with 429 and 503 only


class CallFailed(Exception):
    """There is no response; the message is a sentence for the user."""

    fault = "failed"


class AddressRefused(CallFailed):
    """The address is not allowed; nothing was sent."""

    fault = "refused"


class BodyTooLarge(CallFailed):
    """The body exceeds the maximum size."""

    fault = "too_large"


class StaleConnection(CallFailed):
    """The server had closed a kept-alive connection before the first byte of a response."""


def send_request(
    url: str, *, method: str, headers: Mapping[str, str], body: bytes, deadline: float = 15.0
) -> CallResult:
    """Send one request within `deadline` seconds of wall time. Network errors never raise.

    The call succeeds once the head is complete, even if the body is cut off.
    """
    start = time.monotonic()
    try:
        with _network.attempt(checked_target(url), start + deadline) as attempt:
            answer = attempt.open(method.upper(), {**headers, "Accept-Encoding": "identity"}, body)
            excerpt = read_excerpt(answer)
    except (UrlRefused, CallFailed) as failure:
        return CallResult(None, time.monotonic() - start, str(failure))
    return CallResult(
        answer.status,
        time.monotonic() - start,
        excerpt=excerpt,
        retry_after=requested_pause(answer),
    )


def fetch_body(
    url: str,
    *,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    deadline: float,
    most_bytes: int,
) -> FetchResult:
    """Send one request and read its whole response, within `deadline` seconds of wall time.

    A body of more than `most_bytes` is discarded, and reading stops as soon as it is too large.
    Network errors never raise.
    """
    ends = time.monotonic() + deadline
    fetched = FetchResult(None)
    try:
        with _network.attempt(checked_target(url), ends) as attempt:
            answer = attempt.open(method.upper(), {**headers, "Accept-Encoding": "identity"}, body)
            fetched = FetchResult(
                answer.status, answer.headers, b"", retry_after=requested_pause(answer)
            )
            return fetched._replace(body=read_whole(answer, attempt, most_bytes))
    except UrlRefused as refused:
        return fetched._replace(error=find_message(refused), fault=AddressRefused.fault)
    except CallFailed as failure:
        return fetched._replace(error=find_message(failure), fault=failure.fault)


def read_whole(answer: urllib3.BaseHTTPResponse, attempt: "HttpAttempt", most_bytes: int) -> bytes:
    """Read the whole body, decompressed. Raises CallFailed.

    If the body ends with the connection, an interruption looks like its end: hence the check of the
    deadline.
    """
    raw = bytearray()
    try:
        if (answer.length_remaining or 0) > most_bytes:
            raise BodyTooLarge(TOO_LARGE)
        while piece := answer.read1(PIECE_BYTES, decode_content=False):
            raw += piece
            if len(raw) > most_bytes:
                raise BodyTooLarge(TOO_LARGE)
        attempt.left()
    except NETWORK_FAULTS as fault:
        raise attempt.failure(fault) from fault
    finally:
        answer.close()
    return decompress(bytes(raw), answer.headers.get("Content-Encoding", ""), most_bytes)


def decompress(raw: bytes, encoding: str, most_bytes: int) -> bytes:
    """Decompress the body of a server that ignores `identity`; bounded, as 400 kB may unpack to 400
    MB.
    """
    if encoding.strip().lower() in ("", "identity") or not raw:
        return raw
    unpacking = zlib.decompressobj(wbits=47)  # gzip or zlib, by its first bytes
    try:
        whole = unpacking.decompress(raw, most_bytes + 1)
    except zlib.error as fault:
        raise CallFailed(UNREADABLE) from fault
    if len(whole) > most_bytes:
        raise BodyTooLarge(TOO_LARGE)
    if not unpacking.eof:
        raise CallFailed(UNREADABLE)
    return whole


def requested_pause(answer: urllib3.BaseHTTPResponse) -> int | None:
    """The seconds of Retry-After, for a 429 or 503; else None."""
    if answer.status not in (429, 503):
        return None
    return parse_retry_after(answer.headers.get("Retry-After", ""), datetime.now(UTC))


def read_excerpt(answer: urllib3.BaseHTTPResponse) -> str:
    """The text of the body, at most BODY_BYTES.

    Reads a short body to its end, which keeps the connection alive. Compressed bodies are not
    decoded: 400 kB may unpack to 400 MB.
    """
    raw = bytearray()
    with contextlib.suppress(*NETWORK_FAULTS):
        while piece := answer.read1(BODY_BYTES - len(raw), decode_content=False):
            raw += piece
    answer.close()
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        return ""
    return CONTROL.sub("", raw.decode(errors="replace"))


def parse_retry_after(text: str, now: datetime) -> int | None:
    """Seconds from a number or an HTTP date (RFC 9110 10.2.3); None if invalid."""
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return int(text)
    try:
        moment = parsedate_to_datetime(text)
        ahead = moment.replace(tzinfo=moment.tzinfo or UTC) - now
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0, math.ceil(ahead.total_seconds()))


def resolve_host(host: str, seconds: float, slots: threading.Semaphore) -> list[Address]:
    """All addresses of `host`. Uses a thread, since the resolver has no time limit."""
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


class HttpAttempt:
    """One attempt of a call: its target, its deadline, and a handle to shut its socket from
    outside.
    """

    def __init__(self, target: UrlTarget, ends: float, network: "ConnectionPools") -> None:
        self.target, self.ends, self.network = target, ends, network
        self.wants_fresh = False  # not on a kept-alive connection
        self.is_fresh = False  # the connection was opened for this call
        self.lock = threading.Lock()
        self.handle: socket.socket | None = None

    def left(self) -> float:
        """The remaining seconds. Raises CallFailed if there are none."""
        seconds = self.ends - time.monotonic()
        if seconds <= 0:
            raise CallFailed(TOO_LATE)
        return seconds

    def open(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> urllib3.BaseHTTPResponse:
        """The response with its head read. Raises CallFailed."""
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
        """Connect to a checked address; the name is not resolved again."""
        self.is_fresh = True
        seconds = min(LOOKUP_SECONDS, self.left())
        addresses = resolve_host(self.target.host, seconds, self.network.lookups)
        if addresses_problem(addresses, self.target.port):
            raise AddressRefused(NOT_ALLOWED)
        tried = addresses[:MAX_ADDRESSES]
        for count, address in enumerate(tried):
            with contextlib.suppress(OSError):
                return self.connect_to(address, self.left() / (len(tried) - count))
        self.left()
        raise CallFailed("The connection failed.")

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
        """Let `cut` shut down `sock` from now on.

        Uses a duplicate descriptor: that of `sock` may pass to TLS, or be closed and reused, during
        the cut.
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


class ConnectionPools:
    """State shared by the calls of one process."""

    def __init__(self) -> None:
        self.pools = urllib3.PoolManager(MAX_HOSTS, maxsize=MAX_IDLE)
        self.pools.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}
        self.lookups = threading.BoundedSemaphore(MAX_LOOKUPS)

    @contextlib.contextmanager
    def attempt(self, target: UrlTarget, ends: float) -> Iterator[HttpAttempt]:
        attempt = _running.attempt = HttpAttempt(target, ends, self)
        try:
            with interrupt_at_deadline(attempt):
                yield attempt
        finally:
            attempt.end()


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Trusts the public authorities and those of the operator's system."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context


# --- What urllib3 has to do differently -----------------------------------------------------------
class HeadFile:
    """Wraps the response's file while the head is read: bounded, and an interruption is not its
    end.

    http.client accepts a truncated head as complete, and one of 6 MB as valid.
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


class BoundedResponse(http.client.HTTPResponse):
    def begin(self) -> None:
        file = self.fp
        self.fp = HeadFile(file)  # type: ignore[assignment]  # only its lines are read meanwhile
        super().begin()
        self.fp = file


class PinnedConnection(urllib3.connection.HTTPConnection):
    """A connection to the target of this thread's attempt, watched while it is in use."""

    response_class = BoundedResponse

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


class HttpConnection(PinnedConnection, urllib3.connection.HTTPConnection):
    pass


class HttpsConnection(PinnedConnection, urllib3.connection.HTTPSConnection):
    pass


class HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = HttpConnection


class HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = HttpsConnection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, ssl_context=tls_context(), **kwargs)


_running = threading.local()
_network = ConnectionPools()


def _start_afresh() -> None:
    """Replace the pools after a fork: processes must not share connections."""
    global _network
    _network = ConnectionPools()


os.register_at_fork(after_in_child=_start_afresh)
