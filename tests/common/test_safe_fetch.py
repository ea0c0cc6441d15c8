"""`fetch`: what is said of calls in test_safe_http, and the whole body within its bounds."""

import gzip
import time
import zlib
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import psutil
import pytest

from common.net import deadline_watchdog, safe_http
from common.net.safe_http import FetchResult
from tests.notifications.receiver import Receiver, Request, Visit, fresh_network

TOO_LATE = "No response within the time limit."
TOO_LARGE = "The response is too large."
CLOSED = "The connection was closed before a response arrived."
NO_HTTP = "The response is not HTTP."
NO_CODE = "The response's encoding can't be read."
NO_ANSWER = FetchResult(None, {}, b"", CLOSED, "failed")


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
    settings.WEBHOOK_HTTPS_ONLY = False
    with fresh_network(monkeypatch):
        yield


def fetch(url: str, **given: Any) -> FetchResult:
    request = {"method": "GET", "headers": {}, "body": b"", "deadline": 10.0, "most_bytes": 1000}
    return safe_http.fetch_body(url, **{**request, **given})


def without_headers(fetched: FetchResult) -> FetchResult:
    return fetched._replace(headers={})


def answered(head: str, body: bytes = b"") -> bytes:
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def fetched_from(answer: Any, **given: Any) -> FetchResult:
    with Receiver(answer) as receiver:
        return without_headers(fetch(receiver.url, **given))


def chunked(*pieces: bytes) -> bytes:
    said = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + said + b"0\r\n\r\n"


def say_and_close(said: bytes) -> Any:
    def answer(visit: Visit) -> bool:
        visit.sock.sendall(said)
        return True

    return answer


def test_request_and_response():
    answer = answered('HTTP/1.1 207 Multi-Status\r\nETag: "a"\r\nDAV: 1', b"<a/>")

    with Receiver(answer) as receiver:
        fetched = fetch(
            f"http://localhost:{receiver.port}/caf%C3%A9/",
            method="propfind",
            headers={"Depth": "1", "User-Agent": "ours"},
            body=b"<b/>",
        )

    assert without_headers(fetched) == FetchResult(207, {}, b"<a/>")
    assert (fetched.headers["etag"], fetched.headers["DAV"]) == ('"a"', "1")
    assert receiver.requests == [
        Request(
            "PROPFIND /caf%C3%A9/ HTTP/1.1",
            {
                "host": f"localhost:{receiver.port}",
                "accept-encoding": "identity",
                "content-length": "4",
                "depth": "1",
                "user-agent": "ours",
            },
            b"<b/>",
        )
    ]


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (answered("HTTP/1.1 200 OK"), b""),
        (answered("HTTP/1.1 200 OK", b"x" * 1000), b"x" * 1000),
        (chunked(b"x" * 999, b"y"), b"x" * 999 + b"y"),
        (say_and_close(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000), b"x" * 1000),
        (answered("HTTP/1.1 200 OK\r\nContent-Encoding: identity", b"\x00\xff"), b"\x00\xff"),
        (
            answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", gzip.compress(b"ab", mtime=0)),
            b"ab",
        ),
        (answered("HTTP/1.1 200 OK\r\nContent-Encoding: DEFLATE", zlib.compress(b"ab")), b"ab"),
    ],
)
def test_whole_body(answer, body):
    assert fetched_from(answer) == FetchResult(200, {}, body)


@pytest.mark.parametrize(
    "answer",
    [
        answered("HTTP/1.1 200 OK", b"x" * 1001),
        b"HTTP/1.1 200 OK\r\nContent-Length: 209715200\r\n\r\n",
        chunked(b"x" * 1000, b"y"),
        say_and_close(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001),
        answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", gzip.compress(b"a" * 1001, mtime=0)),
    ],
)
def test_too_large_body_is_refused(answer):
    assert fetched_from(answer) == FetchResult(200, {}, b"", TOO_LARGE, "too_large")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nok", CLOSED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", CLOSED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok\r\n", CLOSED),
        (answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", b"plain"), NO_CODE),
        (answered("HTTP/1.1 200 OK\r\nContent-Encoding: br", b"plain"), NO_CODE),
        (
            answered(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip", gzip.compress(b"a", mtime=0)[:-3]
            ),
            NO_CODE,
        ),
    ],
)
def test_truncated_body_is_an_error(answer, error):
    fetched = fetched_from(say_and_close(answer))

    assert (fetched.status, fetched.body, fetched.fault) == (200, b"", "failed")
    assert fetched.error in (error, NO_HTTP)


@pytest.mark.parametrize(
    "answer", [say_and_close(b""), say_and_close(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n")]
)
def test_malformed_responses_are_errors(answer):
    assert fetched_from(answer) == NO_ANSWER


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n384\r\n",
    ],
)
def test_slow_response_is_cut_off_at_the_deadline(head):
    with Receiver(lambda visit: receiver.drip([head], b"H")(visit)) as receiver:
        begin = time.monotonic()
        fetched = fetch(receiver.url, deadline=0.4)

    status = 200 if head else None
    assert without_headers(fetched) == FetchResult(status, {}, b"", TOO_LATE, "failed")
    assert time.monotonic() - begin < 10
    assert deadline_watchdog._watchdog.attempts == set()


def test_retry_after_of_a_response():
    answer = answered("HTTP/1.1 429 Busy\r\nRetry-After: 7", b"later")

    assert fetched_from(answer) == FetchResult(429, {}, b"later", retry_after=7)


def test_redirect_is_not_followed():
    with Receiver(answered("HTTP/1.1 200 OK")) as other:
        fetched = fetched_from(answered(f"HTTP/1.1 302 Found\r\nLocation: {other.url}"))

    assert (fetched, other.visits) == (FetchResult(302), [])


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://10.0.0.1/", "Must be a public address."),
        ("http://[fd00::1]/", "Must be a public address."),
        ("ftp://example.com/", "Must be an http or https address."),
        ("http://ada:pw@example.com/", "Must be an http or https address."),
    ],
)
def test_address_is_refused(url, error):
    assert fetch(url) == FetchResult(None, {}, b"", error, "refused")


def test_name_of_a_private_address_is_refused(monkeypatch):
    monkeypatch.setattr(
        safe_http.socket, "getaddrinfo", lambda *args, **kwargs: [(2, 1, 6, "", ("10.0.0.1", 0))]
    )

    fetched = fetch("http://calendar.example.com/")

    assert fetched == FetchResult(None, {}, b"", "The address is not allowed.", "refused")


def test_connection_is_reused_only_after_a_whole_body():
    with Receiver(answered("HTTP/1.1 200 OK", b"x" * 100)) as receiver:
        for most_bytes in (100, 100, 99, 100):
            fetch(receiver.url, most_bytes=most_bytes)

    assert [visit.count for visit in receiver.visits] == [3, 1]


BOMB = gzip.compress(bytes(50_000_000))


def flood(visit: Visit) -> bool:
    visit.sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        visit.sock.sendall(b"x" * 65_536)


@pytest.mark.parametrize(
    "answer", [answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", BOMB), flood]
)
def test_memory_does_not_grow(answer):
    process = psutil.Process()
    with Receiver(answer) as receiver:
        fetch(receiver.url)
        before = process.memory_info().rss
        results = [
            without_headers(fetch(receiver.url, most_bytes=100_000 + number))
            for number in range(20)
        ]
        grown = process.memory_info().rss - before

    assert results == [FetchResult(200, {}, b"", TOO_LARGE, "too_large")] * 20
    assert grown <= 5 * 2**20
