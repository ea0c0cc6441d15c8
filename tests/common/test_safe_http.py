"""Calls to receivers that behave, misbehave and mean harm: real ones, on loopback.

Times are only compared with how long the call would have taken without its bound.
"""

import contextlib
import gzip
import os
import random
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import psutil
import pytest
from cryptography import x509

from common.net import deadline_watchdog, safe_http
from common.net.safe_http import CallResult, parse_retry_after
from tests.certificates import write_certificate
from tests.notifications.receiver import OK, Receiver, Request, Visit, fresh_network

TOO_LATE = "No response within the time limit."
CLOSED = "The connection was closed before a response arrived."
NO_HTTP = "The response is not HTTP."
LONG = 10.0  # seconds; far more than any deadline here


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
    settings.WEBHOOK_HTTPS_ONLY = False
    with fresh_network(monkeypatch):
        yield


def call(url: str, deadline: float = 10.0, **given: Any) -> CallResult:
    request = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": b"{}"}
    return safe_http.send_request(url, deadline=deadline, **{**request, **given})


def without_time(reply: CallResult) -> CallResult:
    assert reply.seconds >= 0
    return reply._replace(seconds=0)


def answered(head: str, body: bytes = b"") -> bytes:
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def reply_to(answer: Any, **given: Any) -> CallResult:
    with Receiver(answer) as receiver:
        return without_time(call(receiver.url, **given))


# --- What is sent ---------------------------------------------------------------------------------
def test_request_is_sent_as_given():
    body = '{"name": "Grüße"}'.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "ours", "webhook-id": "ntf_1"}

    with Receiver(OK) as receiver:
        url = f"http://localhost:{receiver.port}/größe/a%20b?c=d&e=%2F"
        reply = safe_http.send_request(url, method="put", headers=headers, body=body)

    assert without_time(reply) == CallResult(200, 0, excerpt="ok")
    assert receiver.requests == [
        Request(
            "PUT /gr%C3%B6%C3%9Fe/a%20b?c=d&e=%2F HTTP/1.1",
            {
                "host": f"localhost:{receiver.port}",
                "accept-encoding": "identity",
                "content-length": str(len(body)),
                "content-type": "application/json",
                "user-agent": "ours",
                "webhook-id": "ntf_1",
            },
            body,
        )
    ]


def test_get_without_a_body():
    with Receiver(OK) as receiver:
        call(receiver.url, method="GET", headers={"User-Agent": "ours"}, body=b"")

    host = f"127.0.0.1:{receiver.port}"
    assert receiver.requests == [
        Request(
            "GET /hook HTTP/1.1",
            {"host": host, "accept-encoding": "identity", "user-agent": "ours"},
            b"",
        )
    ]


def test_environment_proxy_is_not_used(monkeypatch):
    with Receiver(OK) as receiver, Receiver(OK) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        reply = call(receiver.url)

    assert (reply.status, len(receiver.requests), proxy.requests) == (200, 1, [])


# --- What comes back ------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [200, 201, 202, 299, 400, 404, 410, 418, 500, 502, 599, 999])
def test_each_status(status):
    answer = answered(f"HTTP/1.1 {status} Said\r\nRetry-After: 7", b"text")

    assert reply_to(answer) == CallResult(status, 0, excerpt="text")


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body(status):
    assert reply_to(f"HTTP/1.1 {status} Nothing\r\n\r\n".encode()) == CallResult(status, 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status):
    with Receiver(OK) as other:
        answer = answered(f"HTTP/1.1 {status} Moved\r\nLocation: {other.url}")
        reply = reply_to(answer)

    assert reply == CallResult(status, 0)
    assert other.visits == []


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1", 1), ("99999", 99_999), ("0", 0), ("soon", None), ("-5", None), ("", None)],
)
def test_retry_after(status, text, seconds):
    answer = answered(f"HTTP/1.1 {status} Busy\r\nRetry-After: {text}")

    assert reply_to(answer) == CallResult(status, 0, retry_after=seconds)


NOW = datetime(2026, 11, 20, 10, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        ("Fri, 20 Nov 2026 10:01:00 GMT", 60),
        ("Fri, 20 Nov 2026 11:01:00 +0100", 60),
        ("Fri, 20 Nov 2026 10:01:00 -0000", 60),
        ("Fri, 20 Nov 2026 09:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 99 Nov 2026 10:00:00 GMT", None),
        ("Fri, 20 Nov 99999 10:00:00 GMT", None),
        ("Fri, 20 Nov 2026 10:00:00 +9999999999", None),
        ("9" * 5000, None),
        ("٣", None),
        ("1.5", None),
        ("1e3", None),
        ("Fri", None),
        (",", None),
    ],
)
def test_retry_after_as_a_date_or_nonsense(text, seconds):
    assert parse_retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        (b"", ""),
        ("Grüße 🔑".encode(), "Grüße 🔑"),
        (b"a\x00b\x1b[31mc\r\nd\te\x7f", "ab[31mc\nd\te"),
        ("a\x85b".encode(), "ab"),
        (b"\xff\xfe caf\xe9", "\ufffd\ufffd caf\ufffd"),
        (b"x" * 1001, "x" * 1001),
        (b"\x00" * 5000 + b"x" * 5000, "x" * 5000),
        (b"x" * 20_000, "x" * 20_000),
        (b"x" * 20_001, "x" * 20_000),
    ],
)
def test_excerpt_of_each_body(body, excerpt):
    assert reply_to(answered("HTTP/1.1 200 OK", body)) == CallResult(200, 0, excerpt=excerpt)


def test_excerpt_of_chunks():
    answer = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: z\r\n\r\n"
    )

    assert reply_to(answer) == CallResult(200, 0, excerpt="abcde")


def test_no_excerpt_of_a_compressed_body():
    answer = answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", gzip.compress(b"text"))

    assert reply_to(answer) == CallResult(200, 0)


def say_and_close(said: bytes) -> Any:
    def answer(visit: Visit) -> bool:
        visit.sock.sendall(said)
        return True

    return answer


def reset(visit: Visit) -> bool:
    visit.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return True


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reset, CLOSED),
        (say_and_close(b""), CLOSED),
        (say_and_close(b"HTTP/1.1 200"), CLOSED),
        (say_and_close(b"HTTP/1.1 200 OK\r\n"), CLOSED),
        (say_and_close(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"), CLOSED),
        (say_and_close(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r"), CLOSED),
        (b"220 mail.example ESMTP ready\r\n", NO_HTTP),
        (b"SSH-2.0-OpenSSH_9.2\r\n", NO_HTTP),
        (b"-ERR unknown command\r\n", NO_HTTP),
        (b"\r\n\r\n", NO_HTTP),
        (b"\x15\x03\x01\x00\x02\x02\x46\n", NO_HTTP),
        (b"HTTP/1.1 two-hundred OK\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 20 OK\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 2000 OK\r\n\r\n", NO_HTTP),
        (b"HTTP/2 200\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 " + b"x" * 100_000 + b"\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"x" * 30_000 + b"\r\n") * 3 + b"\r\n", NO_HTTP),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 4000, NO_HTTP),
    ],
)
def test_malformed_responses_are_errors(answer, error):
    assert reply_to(answer) == CallResult(None, 0, error)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nnonsense\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n-5\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
def test_responses_with_a_broken_body(answer):
    """The head decides."""
    assert reply_to(say_and_close(answer)) == CallResult(200, 0, excerpt="ok")


def test_random_responses_do_not_raise():
    chance, replies = random.Random(7), []
    pieces = [
        *(b"HTTP/1.1 ", b"200", b" OK", b"\r\n", b"\n", b": ", b"5", b"-1", b"\x00", b"\xff"),
        *(b"Content-Length: ", b"Transfer-Encoding: chunked", b"Connection: keep-alive"),
        *(b"Content-Encoding: gzip", b"Retry-After: ", b"Set-Cookie: a=b", b"Location: //"),
    ]

    def babble(visit: Visit) -> bool:
        visit.sock.sendall(b"".join(chance.choices(pieces, k=chance.randint(0, 20))))
        return True

    with Receiver(babble) as receiver:
        for _ in range(300):
            replies.append(call(receiver.url))

    assert {reply.error for reply in replies if reply.status is None} <= {CLOSED, NO_HTTP}


# --- How long it takes ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("said", "then"),
    [
        (b"", b""),
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_slow_head_is_cut_off(said, then):
    with Receiver(lambda visit: receiver.drip([said], then)(visit)) as receiver:
        reply = call(receiver.url, deadline=0.4)

    assert without_time(reply) == CallResult(None, 0, TOO_LATE)
    assert 0.4 <= reply.seconds < LONG


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n",
    ],
)
def test_slow_body_is_cut_off_and_status_kept(head):
    with Receiver(lambda visit: receiver.drip([head, b"begin "], b"x")(visit)) as receiver:
        reply = call(receiver.url, deadline=0.4)

    assert reply.excerpt.startswith("begin ")
    assert without_time(reply)._replace(excerpt="") == CallResult(200, 0)
    assert 0.4 <= reply.seconds < LONG


def test_unread_request_is_cut_off():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        reply = call(url, deadline=0.4, body=b"x" * 30_000_000)

    assert without_time(reply) == CallResult(None, 0, TOO_LATE)
    assert 0.4 <= reply.seconds < LONG


@pytest.fixture
def slow_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    end = threading.Event()

    def resolve(*args: Any, **kwargs: Any) -> Any:
        end.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    yield
    end.set()


NOT_RESOLVED = "The host name could not be resolved."


def test_slow_resolver_is_cut_off(slow_resolver):
    reply = call("http://slow.example/", deadline=0.3)

    assert without_time(reply) == CallResult(None, 0, NOT_RESOLVED)
    assert 0.3 <= reply.seconds < LONG


def test_name_lookup_has_its_own_timeout(slow_resolver, monkeypatch):
    monkeypatch.setattr(safe_http, "LOOKUP_SECONDS", 0.2)

    reply = call("http://slow.example/", deadline=60)

    assert without_time(reply) == CallResult(None, 0, NOT_RESOLVED)
    assert reply.seconds < LONG


def test_number_of_hanging_lookups_is_limited(slow_resolver, monkeypatch):
    monkeypatch.setattr(safe_http._network, "lookups", threading.BoundedSemaphore(3))
    before = threading.active_count()

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: call(f"http://slow-{n}.example/", 0.2), range(8)))
        left = threading.active_count() - before

    assert {without_time(reply) for reply in replies} == {CallResult(None, 0, NOT_RESOLVED)}
    assert left <= 8 + 3 + 1  # the callers, the look-ups, the watchdog


def test_watchdog_is_empty_after_calls():
    with Receiver(OK) as receiver, ThreadPoolExecutor(8) as pool:
        list(pool.map(call, [receiver.url] * 16))

    assert deadline_watchdog._watchdog.attempts == set()


# --- How much memory it takes ---------------------------------------------------------------------
FLOOD = b"x" * 65_536
BOMB = gzip.compress(b"\x00" * 50_000_000)


def endless(head: bytes, piece: bytes) -> Any:
    def answer(visit: Visit) -> bool:
        visit.sock.sendall(head)
        while True:
            visit.sock.sendall(piece)

    return answer


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", BOMB), CallResult(200, 0)),
        (endless(b"HTTP/1.1 200 OK\r\n\r\n", FLOOD), CallResult(200, 0, excerpt="x" * 20_000)),
        (
            endless(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n", FLOOD),
            CallResult(200, 0, excerpt="x" * 20_000),
        ),
        (
            endless(b"HTTP/1.1 200 OK\r\n", b"X: " + FLOOD[9:] + b"\r\n"),
            CallResult(None, 0, NO_HTTP),
        ),
        (endless(b"HTTP/1.1 200 OK\r\nX: ", FLOOD), CallResult(None, 0, NO_HTTP)),
    ],
    ids=["gzip bomb", "endless body", "3 GB body", "endless head", "endless line"],
)  # fmt: skip
def test_memory_does_not_grow(answer, reply):
    process = psutil.Process()
    with Receiver(answer) as receiver:
        call(receiver.url)
        before = process.memory_info().rss
        replies = [without_time(call(receiver.url)) for _ in range(20)]
        grown = process.memory_info().rss - before

    assert replies == [reply] * 20
    assert grown <= 5 * 2**20


# --- Connections ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        answered("HTTP/1.1 200 OK"),
        answered("HTTP/1.1 200 OK", b"x" * 19_999),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
def test_connections_are_reused(answer):
    with Receiver(answer) as receiver:
        for _ in range(3):
            call(receiver.url)

    assert (len(receiver.requests), len(receiver.visits)) == (3, 1)


@pytest.mark.parametrize(
    "answer",
    [
        answered("HTTP/1.1 200 OK\r\nConnection: close"),
        answered("HTTP/1.1 200 OK", b"x" * 20_001),
        say_and_close(b"HTTP/1.1 200 OK\r\n\r\nok"),
        say_and_close(OK),
    ],
)
def test_connections_that_cannot_be_reused(answer):
    with Receiver(answer) as receiver:
        errors = [call(receiver.url).error for _ in range(3)]

    assert errors == [""] * 3
    assert (len(receiver.requests), len(receiver.visits)) == (3, 3)


def answer_first_only(visit: Visit) -> bool:
    """A server that gives a connection up in the moment in which it is used again."""
    if visit.count == 1:
        visit.sock.sendall(OK)
    return visit.count > 1


def test_closed_idle_connection_is_replaced():
    with Receiver(answer_first_only) as receiver:
        statuses = [call(receiver.url).status for _ in range(4)]

    assert statuses == [200] * 4
    assert [visit.count for visit in receiver.visits] == [2, 2, 2, 1]


def test_stale_connection_is_replaced_once():
    """Not by another old one: with many of them a call would be repeated as often."""
    together = threading.Barrier(4)

    def answer(visit: Visit) -> bool:
        if visit.count == 1 and len(receiver.visits) <= 4:
            together.wait(10)
            visit.sock.sendall(OK)
            return False
        return True

    with Receiver(answer) as receiver:
        with ThreadPoolExecutor(4) as pool:
            first = list(pool.map(call, [receiver.url] * 4))
        before = len(receiver.requests)
        reply = call(receiver.url)

    assert [one.status for one in first] == [200] * 4
    assert without_time(reply) == CallResult(None, 0, CLOSED)
    assert (before, len(receiver.requests)) == (4, 6)


def test_new_connection_is_not_retried():
    with Receiver(say_and_close(b"")) as receiver:
        reply = call(receiver.url)

    assert without_time(reply) == CallResult(None, 0, CLOSED)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("second", [b"HTTP/1.1 200 OK\r\nX", b"H", b"HTTP/1.1 200 OK\r\n"])
@pytest.mark.parametrize("is_reset", [False, True])
def test_started_response_is_not_retried(second, is_reset):
    is_read = threading.Event()

    def answer(visit: Visit) -> bool:
        visit.sock.sendall(OK if visit.count == 1 else second)
        if visit.count > 1 and is_reset:
            is_read.wait(0.2)
            return reset(visit)
        return visit.count > 1

    with Receiver(answer) as receiver:
        replies = [without_time(call(receiver.url)) for _ in range(2)]

    assert replies == [CallResult(200, 0, excerpt="ok"), CallResult(None, 0, CLOSED)]
    assert len(receiver.requests) == 2


def test_reset_idle_connection_is_replaced():
    def answer(visit: Visit) -> bool:
        if visit.count > 1:
            return reset(visit)
        visit.sock.sendall(OK)
        return False

    with Receiver(answer) as receiver:
        statuses = [call(receiver.url).status for _ in range(3)]

    assert statuses == [200] * 3
    assert [visit.count for visit in receiver.visits] == [2, 2, 1]


def test_timeout_on_a_reused_connection_is_not_retried():
    def answer(visit: Visit) -> bool:
        if visit.count > 1:
            return receiver.drip([b""], b"")(visit)
        visit.sock.sendall(OK)
        return False

    with Receiver(answer) as receiver:
        replies = [without_time(call(receiver.url, deadline=0.4)) for _ in range(2)]

    assert replies == [CallResult(200, 0, excerpt="ok"), CallResult(None, 0, TOO_LATE)]
    assert len(receiver.requests) == 2


def test_many_threads_share_few_connections():
    with Receiver(OK) as receiver, ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(call, [receiver.url] * 640))

    assert {without_time(reply) for reply in replies} == {CallResult(200, 0, excerpt="ok")}
    assert len(receiver.requests) == 640
    assert len(receiver.visits) <= 64


def test_no_file_descriptors_leak(monkeypatch):
    process = psutil.Process()
    before = process.num_fds()

    with fresh_network(monkeypatch), Receiver(answer_first_only) as receiver:
        for _ in range(20):
            call(receiver.url)
        call(receiver.url, deadline=0)
        call("http://127.0.0.1:1/")

    # The receiver's side of a connection is closed by a thread.
    end = time.monotonic() + LONG
    while process.num_fds() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert process.num_fds() <= before


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_process_has_its_own_connections_and_watchdog():
    def answer(visit: Visit) -> bool:
        if visit.count == 1 and len(receiver.visits) == 1:
            visit.sock.sendall(OK)
            return False
        return receiver.drip([b"HTTP/1.1 200 OK\r\n"], b"X: y\r\n")(visit)

    with Receiver(answer) as receiver:
        call(receiver.url)
        heard, told = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                os.write(told, call(receiver.url, deadline=0.4).error.encode())
            os._exit(0)
        os.close(told)
        is_heard = bool(select.select([heard], [], [], LONG)[0])
        said = os.read(heard, 100).decode() if is_heard else "nothing"
        os.close(heard)
        os.waitpid(child, 0)

    assert said == TOO_LATE
    assert [visit.count for visit in receiver.visits] == [1, 1]


# --- TLS ------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """Key and certificate of hook.example, signed by itself."""
    path = tmp_path_factory.mktemp("tls") / "hook.pem"
    return write_certificate(path, x509.DNSName("hook.example"))


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The receiver's side; every name is this machine, and this certificate is trusted."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(safe_http, "tls_context", lambda: trusting)
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [entry])
    return server


def wrapped(context: ssl.SSLContext) -> Any:
    return lambda sock: context.wrap_socket(sock, server_side=True)


def test_tls_server_name_is_the_host_name(tls):
    names = []
    tls.sni_callback = lambda sock, name, context: names.append(name)

    with Receiver(OK, wrapped(tls)) as receiver:
        replies = [without_time(call(f"https://hook.example:{receiver.port}/")) for _ in range(3)]

    assert replies == [CallResult(200, 0, excerpt="ok")] * 3
    assert names == ["hook.example"]
    assert {request.headers["host"] for request in receiver.requests} == {
        f"hook.example:{receiver.port}"
    }


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1"])
def test_tls_of_another_name_is_refused(tls, host):
    with Receiver(OK, wrapped(tls)) as receiver:
        reply = call(f"https://{host}:{receiver.port}/")

    assert without_time(reply) == CallResult(None, 0, "The TLS connection failed.")
    assert receiver.requests == []


def test_untrusted_tls_certificate_is_refused(tls, monkeypatch):
    monkeypatch.setattr(safe_http, "tls_context", ssl.create_default_context)

    with Receiver(OK, wrapped(tls)) as receiver:
        reply = call(f"https://hook.example:{receiver.port}/")

    assert without_time(reply) == CallResult(None, 0, "The TLS connection failed.")
    assert receiver.requests == []


def test_tls_to_a_plain_http_server_is_refused(tls):
    with Receiver(b"HTTP/1.1 400 Bad Request\r\n\r\n") as receiver:
        receiver.answer = OK
        reply = call(f"https://hook.example:{receiver.port}/", deadline=0.5)

    assert reply.status is None


def test_hanging_tls_handshake_is_cut_off(tls):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reply = call(f"https://hook.example:{listener.getsockname()[1]}/", deadline=0.4)

    assert without_time(reply) == CallResult(None, 0, TOO_LATE)
    assert reply.seconds < LONG


def test_slow_head_over_tls_is_cut_off(tls):
    drip = [b"HTTP/1.1 200 OK\r\n"]
    with Receiver(lambda visit: receiver.drip(drip, b"X: y\r\n")(visit), wrapped(tls)) as receiver:
        reply = call(f"https://hook.example:{receiver.port}/", deadline=0.4)

    assert without_time(reply) == CallResult(None, 0, TOO_LATE)
    assert reply.seconds < LONG


def test_closed_idle_tls_connection_is_replaced(tls):
    with Receiver(answer_first_only, wrapped(tls)) as receiver:
        statuses = [call(f"https://hook.example:{receiver.port}/").status for _ in range(3)]

    assert statuses == [200] * 3
    assert [visit.count for visit in receiver.visits] == [2, 2, 1]
