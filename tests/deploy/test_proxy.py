"""The proxies of deploy/ in front of a live service, and how long web keeps connections."""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.proxies import CADDYFILE, HAPROXY, NGINX, PREPARE, Proxy, running
from tests.live import CUSTOMER, LiveApp
from tests.services import Service

SLOW_CLIENTS = 200
CLIENTS_PER_ADDRESS = 50
SECONDS = 30  # that an answer may take on a busy machine; behind slow clients it takes minutes


@pytest.fixture(scope="module")
def service(start_service: Callable[..., Service]) -> Service:
    """One process with two threads: the fewer there are, the less it takes to keep them."""
    return start_service(
        workers=1, threads=2, TRUST_PROXY="true", TRUSTED_PROXIES=1, LOG_LEVEL="INFO",
        LOG_FORMAT="json",
    )  # fmt: skip


@pytest.fixture(params=PREPARE)
def proxy(request: pytest.FixtureRequest, service: Service, tmp_path: Path) -> Iterator[Proxy]:
    with running(request.param, tmp_path, service.port) as proxy:
        yield proxy


def call(
    proxy: Proxy, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body). Caddy 2.6 forgets a request whose client closes its side, as
    LiveCaller does."""
    content = b"" if body is None else json.dumps(body).encode()
    named = {"Host": "localhost", "Connection": "close", **headers}
    if body is not None:
        named |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in named.items())]
    with closing(proxy.connect()) as wire:
        wire.settimeout(SECONDS)
        # A proxy that refuses a body closes its side while we send.
        with suppress(ConnectionError, ssl.SSLEOFError):
            wire.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        with closing(http.client.HTTPResponse(wire, method=method)) as answer:
            answer.begin()
            return answer.status, dict(answer.headers), answer.read()


def test_client_address_is_forwarded(service: Service, proxy: Proxy) -> None:
    claims = {"X-Forwarded-For": "203.0.113.9", "X-Request-Id": f"docs-{proxy.name}"}

    status, _, _ = call(proxy, "GET", "/docs", **claims)

    lines = [json.loads(line) for line in service.log("web").splitlines()]
    clients = [line["client"] for line in lines if line.get("request_id") == f"docs-{proxy.name}"]
    assert (status, clients) == (200, ["127.0.0.1"]), proxy.log()


@pytest.mark.parametrize("path", ["/metrics", "/metrics?a=b", "/%6detrics", "/metric%73"])
def test_metrics_are_hidden(service: Service, proxy: Proxy, path: str) -> None:
    before = service.log("web").count("/metrics")

    status, _, _ = call(proxy, "GET", path)

    assert (status, service.log("web").count("/metrics")) == (404, before)


@pytest.mark.parametrize("proxy", ["haproxy", "nginx"], indirect=True)
def test_body_over_one_megabyte_is_refused(proxy: Proxy) -> None:
    """Caddy refuses it too: 2.6 with 502, newer ones with 413."""
    status, _, _ = call(proxy, "POST", "/v2/auth", {"email": "x" * 1_100_000})

    assert status == 413


# --- Slow clients ---------------------------------------------------------------------------------
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b"Content-Length: 200\r\n\r\n{"


@contextmanager
def slow_clients(proxy: Proxy) -> Iterator[None]:
    """Half of them are slow in the head, half in the body. One that is closed comes again.

    Begins when all are connected and have sent three bytes.
    """
    stop, ready = threading.Event(), threading.Event()
    with ExitStack() as cleaning:
        wires = [start_slowly(proxy, number) for number in range(SLOW_CLIENTS)]
        cleaning.callback(lambda: [wire.close() for wire in wires])
        thread = threading.Thread(target=drip, args=(proxy, wires, stop, ready))
        thread.start()
        cleaning.callback(thread.join)
        cleaning.callback(stop.set)
        assert ready.wait(120)
        yield


def start_slowly(proxy: Proxy, number: int) -> socket.socket:
    wire = proxy.connect(f"127.0.1.{1 + number // CLIENTS_PER_ADDRESS}")
    path = (b"/v2/auth", b"/v2/bookings")[number // 2 % 2]
    wire.sendall(HEAD % path + (BODY if number % 2 else b"X-Slow: "))
    return wire


def drip(
    proxy: Proxy, wires: list[socket.socket], stop: threading.Event, ready: threading.Event
) -> None:
    rounds = 0
    while not stop.wait(2):
        for number, wire in enumerate(wires):
            try:
                wire.sendall(b" ")
            except OSError:
                wire.close()
                with suppress(OSError):
                    wires[number] = start_slowly(proxy, number)
        rounds += 1
        if rounds == 3:
            ready.set()


def test_slow_clients_do_not_delay_others(service: Service, proxy: Proxy) -> None:
    app = LiveApp(service)
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    key = app.headers["Authorization"]

    answers = []
    with slow_clients(proxy):
        for hour in range(9, 12):
            booking = {
                "resource_id": resource["id"],
                "what": "Check-up",
                "customer": CUSTOMER,
                "start": f"2031-01-02 {hour:02}:00:00",
                "end": f"2031-01-02 {hour:02}:30:00",
            }
            answers.append(call(proxy, "GET", "/healthz")[0])
            answers.append(call(proxy, "POST", "/v2/bookings", booking, Authorization=key)[0])

    assert answers == [200, 201] * 3, proxy.log()


# Of a connection that is reset before the handshake begins, `ssl` leaves a socket to collect.
@pytest.mark.filterwarnings("ignore:unclosed <ssl:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("proxy", ["haproxy"], indirect=True)
def test_a_client_has_at_most_a_hundred_connections(proxy: Proxy) -> None:
    """Of nginx, only whole requests count; Caddy has no such limit."""
    with ExitStack() as cleaning:
        for _ in range(100):
            wire = cleaning.enter_context(closing(proxy.connect("127.0.2.1")))
            # Answered by the proxy itself; then the connection may be idle for a minute.
            wire.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert wire.recv(12) == b"HTTP/1.1 404"
        with pytest.raises(OSError):  # noqa: PT011  # a reset, or the end of the handshake
            proxy.connect("127.0.2.1")

        status, _, _ = call(proxy, "GET", "/healthz")

    assert status == 200


# --- Idle connections -----------------------------------------------------------------------------
@pytest.mark.parametrize(("keepalive", "seconds", "is_open"), [(1, 30, False), (75, 4, True)])
def test_idle_connections_stay_open_for_the_setting(
    start_service: Callable[..., Service], keepalive: int, seconds: int, is_open: bool
) -> None:
    """gunicorn's own default is two seconds, and the proxies keep connections for 60."""
    service = start_service(WEB_KEEPALIVE=keepalive)
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = b""
        while b'"ok"' not in answer:
            answer += connection.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200")
        connection.settimeout(seconds)
        try:
            was_closed = connection.recv(65_536) == b""
        except TimeoutError:
            was_closed = False
    service.stop()

    assert was_closed is not is_open


def test_proxies_end_idle_connections_before_web_does() -> None:
    assert "keepalive 60s" in CADDYFILE
    assert "keepalive_timeout 60s" in NGINX
    assert "http-keep-alive 60s" in HAPROXY
