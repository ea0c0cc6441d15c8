"""Where deliveries go in tests: a real SMTP server and a real HTTP server, on loopback."""

import asyncio
import contextlib
import email.policy
import json
import logging
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

from tests.services import free_port

# It would tell every line that is spoken.
logging.getLogger("mail.log").setLevel(logging.WARNING)


@dataclass
class Mail:
    """One mail as it arrived: envelope and message."""

    sender: str
    to: list[str]
    message: EmailMessage
    at: float
    options: list[str] = field(default_factory=list)  # of MAIL FROM
    content: bytes = b""

    @property
    def subject(self) -> str:
        return str(self.message["Subject"]).strip()  # a long one begins on a line of its own

    @property
    def id(self) -> str:
        return str(self.message["Message-ID"])

    @property
    def text(self) -> str:
        body = self.message.get_body(("plain",))
        return body.get_content() if body else ""


class MailSink:
    """`sink.mails` is what arrived; `sink.answer = lambda to: "451 later"` refuses some.

    confirms: False: it takes mails and does not answer. has_8bitmime: whether it says so.
    """

    def __init__(self, port: int = 0) -> None:
        self.mails: list[Mail] = []
        self.answer: Callable[[str], str | None] = lambda to: None
        self.confirms = True
        self.has_8bitmime = True
        self.port = port or free_port()
        self._controller = Controller(
            self, hostname="127.0.0.1", port=self.port, enable_SMTPUTF8=True
        )

    def start(self) -> "MailSink":
        self._controller.start()
        return self

    def stop(self) -> None:
        with contextlib.suppress(AssertionError):  # it was stopped already
            self._controller.stop()

    @property
    def url(self) -> str:
        """As EMAIL_URL."""
        return f"smtp://127.0.0.1:{self.port}"

    async def handle_EHLO(
        self, server: SMTP, session: Any, envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        left_out = () if self.has_8bitmime else ("250-8BITMIME",)
        return [response for response in responses if response not in left_out]

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        refusal = self.answer(address)
        if refusal is None:
            envelope.rcpt_tos.append(address)
        return refusal or "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append(
            Mail(
                envelope.mail_from,
                list(envelope.rcpt_tos),
                message,
                time.time(),
                list(envelope.mail_options),
                envelope.content,
            )
        )
        while not self.confirms:
            await asyncio.sleep(0.01)
        return "250 OK"


@dataclass
class Call:
    """One HTTP request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> str:
        return self.headers["service-event"]


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    delay: float = 0.0
    until: threading.Event | None = None  # no answer before it is set


class HookSink:
    """`sink.calls` is what arrived; `sink.answers["/path"] = Answer(500)` says what it answers."""

    def __init__(self, port: int = 0) -> None:
        self.calls: list[Call] = []
        self.answers: dict[str, Answer] = {}
        self._server = _Server(("127.0.0.1", port), _handler_of(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def start(self) -> "HookSink":
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def count_by_id(self) -> Counter[str]:
        return Counter(call.id for call in self.calls)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is what some tests are about."""


def _handler_of(sink: HookSink) -> type[socketserver.BaseRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            sink.calls.append(Call(self.command, self.path, headers, body, time.time()))
            answer = sink.answers.get(self.path) or Answer()
            if answer.delay:
                time.sleep(answer.delay)
            if answer.until:
                answer.until.wait(120)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


@contextlib.contextmanager
def mail_sink() -> Iterator[MailSink]:
    sink = MailSink().start()
    try:
        yield sink
    finally:
        sink.stop()


@contextlib.contextmanager
def hook_sink() -> Iterator[HookSink]:
    sink = HookSink().start()
    try:
        yield sink
    finally:
        sink.stop()
