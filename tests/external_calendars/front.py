"""An HTTP server on loopback that stands before a real one, or alone: it counts, and it may lie."""

import base64
import contextlib
import http.client
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.sinks import Call

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


class Answer(NamedTuple):
    """`body`: bytes, or pieces of no known number, after whose last the connection ends."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: dict[str, str] = {}


class Front:
    """`front.calls` is what arrived; `front.answer = lambda call: Answer(500)` says what it answers
    to a call, and passes on to the server behind it where it returns None."""

    def __init__(self, port_behind: int | None = None) -> None:
        self.port_behind = port_behind
        self.calls: list[Call] = []
        self.answer: Callable[[Call], Answer | None] = lambda call: None
        # X-Remote-User for the server behind, of who gave a name and password that are known here.
        self.passwords: dict[str, str] | None = None
        self.is_stopped = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.is_stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        """Nothing has come yet, and only the server behind answers."""
        self.calls.clear()
        self.answer = lambda call: None

    @contextlib.contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The requests of the block, as "REPORT /ada/home/"."""
        lines: list[str] = []
        begin = len(self.calls)
        yield lines
        lines += [f"{call.method} {call.path}" for call in self.calls[begin:]]

    def drip(self, piece: bytes, first: bytes = b"") -> Iterator[bytes]:
        """`piece` every 50 ms, for as long as anybody listens."""
        yield first
        while not self.is_stopped.wait(0.05):
            yield piece

    def forward(self, call: Call, connection: http.client.HTTPConnection | None) -> Answer:
        if connection is None:
            return Answer(404)
        headers = {key: value for key, value in call.headers.items() if key not in HOP_BY_HOP}
        if self.passwords is not None:
            user = known_user(headers.pop("authorization", ""), self.passwords)
            if user is None:
                return Answer(401, headers={"WWW-Authenticate": 'Basic realm="calendars"'})
            headers["x-remote-user"] = user
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # the server behind was ended, and may be there again
        try:
            connection.request(call.method, call.path, call.body, headers)
            reply = connection.getresponse()
            # Cyrus writes a list in several headers of one name (RFC 9110, 5.3).
            lists = {name: ", ".join(reply.headers.get_all(name, [])) for name in reply.headers}
            return Answer(reply.status, reply.read(), lists)
        except (OSError, http.client.HTTPException):
            connection.close()
            return Answer(502, b"The server behind is away.")


def known_user(authorization: str, passwords: dict[str, str]) -> str | None:
    with contextlib.suppress(ValueError):
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        user, _, password = pair.partition(":")
        if passwords.get(user) == password:
            return user
    return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is what some tests are about."""


def _handler_of(front: Front) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        behind: http.client.HTTPConnection | None = None

        def setup(self) -> None:
            super().setup()
            if front.port_behind:
                self.behind = http.client.HTTPConnection("127.0.0.1", front.port_behind, 60)

        def finish(self) -> None:
            if self.behind:
                self.behind.close()
            super().finish()

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            call = Call(self.command, self.path, headers, body, time.time())
            front.calls.append(call)
            self.send_answer(front.answer(call) or front.forward(call, self.behind))

        do_GET = do_PUT = do_DELETE = do_OPTIONS = do_PROPFIND = do_REPORT = serve
        do_MKCALENDAR = do_PROPPATCH = do_HEAD = do_POST = serve

        def send_answer(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            if isinstance(answer.body, bytes):
                if answer.status not in (204, 304):
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)
                return
            self.close_connection = True
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in answer.body:
                self.wfile.write(piece)

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
