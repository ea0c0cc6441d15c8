"""An HTTP server on loopback in the place of the providers' servers: the gateway.

The first segment of a path is the real host: `<gateway.url>/www.googleapis.com/calendar/v3/...`. A
fake registers its hosts with `gateway.serve`. The gateway logs every request, counts those of one
account at a time, and answers otherwise where a test wants a fault.
"""

import json
import re
import socket
import threading
import time
import traceback
import urllib.parse
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol


class Violation(Exception):
    """The request has something that the real API does not have; the message is a sentence."""


class Clock:
    """The fake's own time. It runs with the real time until it is set."""

    def __init__(self) -> None:
        self._stopped_at: datetime | None = None
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Aware, in UTC."""
        return (self._stopped_at or datetime.now(UTC)) + self._ahead

    def set(self, at: datetime) -> None:
        """Stop the clock at this aware time."""
        self._stopped_at, self._ahead = at.astimezone(UTC), timedelta()

    def advance(self, **length: float) -> None:
        """advance(days=7): the arguments of a timedelta."""
        self._ahead += timedelta(**length)


@dataclass(frozen=True)
class Request:
    """One request as it arrived.

    host and path are the real ones, the path without the query and still quoted. query: all values
    of each parameter. headers: names in lower case. concurrent: requests of the same account that
    are being answered, with this one.
    """

    method: str
    host: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    at: datetime
    account: str = ""
    concurrent: int = 1

    def __str__(self) -> str:
        return f"{self.method} {self.host}{self.path}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        """The fields of a form, the last value of each."""
        return dict(urllib.parse.parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def bearer(self) -> str:
        """The access token, or ""."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token if kind.lower() == "bearer" else ""


@dataclass(frozen=True)
class Response:
    """`body`: text and bytes as they are, None for none, anything else as JSON."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    @property
    def content_type(self) -> str:
        return "text/html" if isinstance(self.body, str | bytes) else "application/json"


class FakeProvider(Protocol):
    """What answers the requests to one or more hosts, from several threads at a time."""

    def account_of(self, request: Request) -> str:
        """Return the account whose requests are counted together; "" for none."""

    def respond(self, request: Request) -> Response:
        """Answer; raise Violation for what the real API does not have."""

    def refuse(self, request: Request, sentence: str) -> Response:
        """Return the provider's answer 400 for a Violation."""


@dataclass
class Fault:
    """The next `times` requests whose method is `method` ("": any), and whose host and path match
    the pattern, get `response`; with None, the connection ends without an answer.

    is_processed: the fake processes the request first, and its own answer is lost.
    """

    pattern: str
    method: str = ""
    times: int = 1
    response: Response | None = None
    is_processed: bool = False

    def matches(self, request: Request) -> bool:
        return self.method in ("", request.method) and bool(
            re.search(self.pattern, request.host + request.path)
        )


class Gateway:
    """`with Gateway() as gateway`: it serves until the block ends.

    requests: all so far. violations: sentences; a test is wrong unless this is empty at its end.
    latency: seconds that each answer takes. most_concurrent: account -> most requests at a time.
    """

    def __init__(self, port: int = 0) -> None:
        self.clock = Clock()
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self.latency = 0.0
        self.most_concurrent: Counter[str] = Counter()
        self._concurrent: Counter[str] = Counter()
        self._providers: dict[str, FakeProvider] = {}
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler_of(self))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Gateway":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self, host: str, provider: FakeProvider) -> None:
        """Let the provider answer the requests to this host."""
        self._providers[host] = provider

    def address(self, url: str) -> str:
        """Return where the gateway serves a real https address."""
        return f"{self.url}/{url.removeprefix('https://')}"

    def forget(self) -> None:
        """Empty the log of requests."""
        self.requests.clear()

    def requests_to(self, pattern: str, method: str = "") -> list[Request]:
        """Return the logged requests whose host and path match the regular expression."""
        fault = Fault(pattern, method)
        return [request for request in self.requests if fault.matches(request)]

    # --- Faults -----------------------------------------------------------------------------------
    def fail(
        self,
        pattern: str,
        *,
        status: int,
        method: str = "",
        times: int = 1,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer the next requests with this, and do not process them."""
        response = Response(status, body, headers or {})
        self._faults.append(Fault(pattern, method, times, response))

    def hang_up(self, pattern: str, *, method: str = "", times: int = 1) -> None:
        """End the connection of the next requests, and do not process them."""
        self._faults.append(Fault(pattern, method, times))

    def lose_answer(self, pattern: str, *, method: str = "", times: int = 1) -> None:
        """Process the next requests, then end the connection without an answer."""
        self._faults.append(Fault(pattern, method, times, is_processed=True))

    def stop_faults(self) -> None:
        with self._lock:
            self._faults.clear()

    def _take_fault(self, request: Request) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.times > 0 and fault.matches(request):
                    fault.times -= 1
                    return fault
        return None

    # --- Answers ----------------------------------------------------------------------------------
    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Response | None:
        """Return the answer; None: the connection ends without one."""
        if target == "/favicon.ico":  # a browser asks for it by itself
            return Response(404)
        path, _, query = target.partition("?")
        host, _, rest = path.removeprefix("/").partition("/")
        values = urllib.parse.parse_qs(query, keep_blank_values=True)
        request = Request(method, host, "/" + rest, values, headers, body, self.clock.now())
        provider = self._providers.get(host)
        if provider is None:
            self.requests.append(request)
            return self._refuse_host(request)
        account = provider.account_of(request)
        with self._lock:
            self._concurrent[account] += 1
            concurrent = self._concurrent[account]
            if account:
                self.most_concurrent[account] = max(self.most_concurrent[account], concurrent)
        request = Request(
            method, host, request.path, values, headers, body, request.at, account, concurrent
        )
        self.requests.append(request)
        try:
            return self._answer_of(provider, request)
        finally:
            with self._lock:
                self._concurrent[account] -= 1

    def _answer_of(self, provider: FakeProvider, request: Request) -> Response | None:
        if self.latency:
            time.sleep(self.latency)
        fault = self._take_fault(request)
        if fault and not fault.is_processed:
            return fault.response
        try:
            response = provider.respond(request)
        except Violation as violation:
            self.violations.append(f"{request}: {violation}")
            response = provider.refuse(request, str(violation))
        except Exception:  # a fault of the fake, which must not look like one of the service
            self.violations.append(f"{request}: {traceback.format_exc()}")
            response = Response(500, {"error": "The fake has failed."})
        return None if fault else response

    def _refuse_host(self, request: Request) -> Response:
        self.violations.append(f"{request}: no fake has this host.")
        return Response(400, {"error": f"No fake has the host {request.host}."})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is what some tests are about."""


def _handler_of(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = gateway.answer(self.command, self.path, headers, body)
            if response is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(response.status)
            sent = {"Content-Type": f"{response.content_type}; charset=UTF-8"}
            if response.status != 204:
                sent["Content-Length"] = str(len(response.content))
            for name, value in (sent | dict(response.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
