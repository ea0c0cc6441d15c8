"""`manage.py webhook_echo`: what a newcomer sees of a webhook."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from common.net import safe_http
from notifications.webhooks.signing import new_secret, signature_headers
from tests.notifications.receiver import fresh_network
from tests.services import ROOT, free_port

BODY = '{"id": "1", "customer": {"name": "Zoë"}}'.encode()


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.WEBHOOK_HTTPS_ONLY = False
    with fresh_network(monkeypatch):
        yield


def restore_sigint() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Echo:
    """The running command; `stop` is Ctrl-C."""

    def __init__(self, *arguments: str) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "webhook_echo", "--port", str(self.port), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Where the tests run in the background, Ctrl-C is ignored, and children inherit that.
            preexec_fn=restore_sigint,
        )
        self.first_line = self.process.stdout.readline()

    def call(self, method: str, headers: dict[str, str], body: bytes) -> int | None:
        url = f"http://127.0.0.1:{self.port}/hook"
        return safe_http.send_request(url, method=method, headers=headers, body=body).status

    def stop(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def signed(secret: str, **changed: str) -> dict[str, str]:
    headers = signature_headers(
        message_id="ntf_1", timestamp=int(time.time()), body=BODY, secrets=[new_secret(), secret]
    )
    return {"Service-Event": "booking.confirmed", **headers, **changed}


def test_output_of_each_call():
    secret = new_secret()
    echo = Echo("--secret", secret, "--status", "202", "--full")

    statuses = [
        echo.call("POST", signed(secret), BODY),
        echo.call("PUT", signed(new_secret()), BODY),
        echo.call("PATCH", signed(secret, **{"webhook-timestamp": "soon"}), BODY),
        echo.call("POST", {}, b"not JSON"),
        echo.call("GET", {}, b""),
    ]
    code, out, err = echo.stop()

    shown = json.dumps(json.loads(BODY), indent=2, ensure_ascii=False)
    rule = "-" * 72
    blocks = [
        ("POST", "booking.confirmed", "ntf_1", "verified", shown),
        ("PUT", "booking.confirmed", "ntf_1", "WRONG", shown),
        ("PATCH", "booking.confirmed", "ntf_1", "WRONG", shown),
        ("POST", "-", "-", "WRONG", "not JSON"),
        ("GET", "-", "-", "WRONG", "(no body)"),
    ]
    assert statuses == [202] * 5
    assert echo.first_line == (f"Listening on http://127.0.0.1:{echo.port}/   (Ctrl-C stops)\n")
    assert (code, err) == (0, "")
    assert out.split("\n") == [
        *(
            line
            for method, event, message, judged, text in blocks
            for line in (
                "",
                f"--- {method} /hook {rule}"[:72],
                f"event      {event}",
                f"id         {message}",
                f"signature  {judged}",
                *text.split("\n"),
            )
        ),
        *("", "Stopped.", ""),
    ]


def test_bodies_are_left_out_by_default():
    secret = new_secret()
    echo = Echo("--secret", secret)

    echo.call("POST", signed(secret), BODY)
    code, out, err = echo.stop()

    assert (code, err) == (0, "")
    assert out.split("\n") == [
        "",
        f"--- POST /hook {'-' * 72}"[:72],
        "event      booking.confirmed",
        "id         ntf_1",
        "signature  verified",
        "body       41 bytes",
        *("", "Stopped.", ""),
    ]


def test_without_a_secret_signatures_are_not_checked():
    echo = Echo()

    status = echo.call("POST", signed(new_secret()), BODY)
    code, out, err = echo.stop()

    assert (status, code, err) == (200, 0, "")
    assert "signature  not checked (no --secret)\n" in out


def test_busy_port_is_a_clear_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError) as refused:
            call_command("webhook_echo", port=port)

    assert str(refused.value) == (
        f"Cannot listen on 127.0.0.1:{port}: Address already in use. Choose another port: --port N"
    )


@pytest.mark.parametrize("secret", ["nonsense", "whsec_", "whsec_not base64!", "whsec_abc"])
def test_malformed_secret_is_refused(secret):
    with pytest.raises(CommandError) as refused:
        call_command("webhook_echo", port=free_port(), secret=secret)

    assert str(refused.value) == "--secret must be a webhook's secret: whsec_ and base64."
