"""`manage.py webhook_echo`: a receiver on this machine, to see what a webhook sends."""

import contextlib
import json
from argparse import ArgumentParser
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from notifications.webhooks.signing import is_secret, signature_headers


class Command(BaseCommand):
    help = "Listen on 127.0.0.1 and print every webhook call. Ctrl-C stops it."
    requires_system_checks = []  # it needs no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=9000)
        parser.add_argument("--secret", help="whsec_..., to verify signatures")
        parser.add_argument("--status", type=int, default=200, help="status to answer (200)")
        parser.add_argument("--full", action="store_true", help="print the bodies, too")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["secret"] and not is_secret(options["secret"]):
            raise CommandError("--secret must be a webhook's secret: whsec_ and base64.")
        with make_server(options["port"]) as server:
            server.status, server.print_line = options["status"], self.print_line
            server.secrets = [options["secret"]] if options["secret"] else []
            server.prints_bodies = options["full"]
            self.print_line(f"Listening on http://127.0.0.1:{server.server_port}/   (Ctrl-C stops)")
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        self.print_line("\nStopped.")

    def print_line(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


class EchoServer(ThreadingHTTPServer):
    status: int
    secrets: Sequence[str]
    prints_bodies: bool
    print_line: Any


class EchoHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EchoServer

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.print_line(
            render_call(f"{self.command} {self.path}", self.headers, body, self.server)
        )
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = do_PATCH = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Each call has its block."""


def make_server(port: int) -> EchoServer:
    try:
        return EchoServer(("127.0.0.1", port), EchoHandler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(
            f"Cannot listen on 127.0.0.1:{port}: {reason}. Choose another port: --port N"
        ) from None


def render_call(line: str, headers: Any, body: bytes, server: EchoServer) -> str:
    """Return what is shown of one call: five lines, or the whole body in place of the last."""
    return "\n".join(
        [
            "",
            f"--- {line} ".ljust(72, "-"),
            f"event      {headers.get('Service-Event', '-')}",
            f"id         {headers.get('webhook-id', '-')}",
            f"signature  {signature_verdict(headers, body, server.secrets)}",
            readable_body(body) if server.prints_bodies else f"body       {len(body):,} bytes",
        ]
    )


def signature_verdict(headers: Any, body: bytes, secrets: Sequence[str]) -> str:
    if not secrets:
        return "not checked (no --secret)"
    try:
        expected = signature_headers(
            message_id=headers["webhook-id"],
            timestamp=int(headers["webhook-timestamp"]),
            body=body,
            secrets=secrets,
        )
    except (TypeError, ValueError):
        return "WRONG"
    is_good = expected["webhook-signature"] in headers.get("webhook-signature", "").split()
    return "verified" if is_good else "WRONG"


def readable_body(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body.decode(errors="replace") or "(no body)"
