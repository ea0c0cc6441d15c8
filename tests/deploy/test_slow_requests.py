"""Slow requests to web itself end by themselves: scheduling/request_deadlines.py."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.services import Service

HEAD = b"POST /v2/auth HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: r1\r\n"
TIMED_OUT = {
    "error": "The body did not arrive in time. Send the request again.",
    "code": "request_timeout",
    "request_id": "r1",
}


@pytest.fixture(scope="module")
def hasty_service(start_service: Callable[..., Service]) -> Service:
    """One process with one thread, and deadlines of a second."""
    return start_service(workers=1, threads=1, wsgi="tests.hasty_wsgi")


@pytest.fixture
def drip() -> Iterator[Callable[[bytes, bytes], socket.socket]]:
    """drip(port, start, piece) -> a connection that sends a piece ten times a second, for ever."""
    stop = threading.Event()
    with ExitStack() as cleaning:
        cleaning.callback(stop.set)

        def start(port: int, begin: bytes, piece: bytes) -> socket.socket:
            wire = socket.create_connection(("127.0.0.1", port), timeout=60)
            cleaning.enter_context(closing(wire))
            wire.sendall(begin)
            thread = threading.Thread(target=send_for_ever, args=(wire, piece, stop))
            thread.start()
            cleaning.callback(thread.join)
            cleaning.callback(stop.set)
            return wire

        yield start


def send_for_ever(wire: socket.socket, piece: bytes, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        try:
            wire.sendall(piece)
        except OSError:
            return


def read_to_end(wire: socket.socket) -> bytes:
    received = b""
    try:
        while piece := wire.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass  # closed while bytes of ours were on their way
    return received


def test_slow_head_ends_without_an_answer(
    hasty_service: Service, drip: Callable[..., socket.socket]
) -> None:
    wire = drip(hasty_service.port, HEAD, b"X-Slow: 1\r\n")

    assert read_to_end(wire) == b""
    assert hasty_service.log("web") == ""


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"Content-Length: 200\r\n\r\n{", b" "),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"1\r\n \r\n"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
    ids=["length", "chunked", "chunk size"],
)
def test_slow_body_is_408(
    hasty_service: Service, drip: Callable[..., socket.socket], begin: bytes, piece: bytes
) -> None:
    wire = drip(hasty_service.port, HEAD + begin, piece)

    with closing(http.client.HTTPResponse(wire, method="POST")) as response:
        response.begin()
        answer = response.status, response.getheader("Connection"), json.load(response)
    rest = read_to_end(wire)

    assert (answer, rest) == ((408, "close", TIMED_OUT), b"")
    assert hasty_service.log("web") == ""


def test_idle_connections_and_pipelined_requests_have_no_deadline(
    hasty_service: Service, drip: Callable[..., socket.socket]
) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", hasty_service.port), timeout=60) as idle:
        idle.sendall(request * 2)
        first = read_answers(idle, 2)
        # Begins later, and ends by its deadline.
        slow = drip(hasty_service.port, HEAD, b"X-Slow: 1\r\n")
        read_to_end(slow)
        idle.sendall(request)
        second = read_answers(idle, 1)

    assert (first, second) == ([200, 200], [200])


def read_answers(wire: socket.socket, count: int) -> list[int]:
    """The statuses of as many answers of /healthz."""
    received = b""
    while received.count(b'{"status":"ok"}') < count:
        piece = wire.recv(65_536)
        assert piece, received
        received += piece
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]
