"""deploy/caddy: Debian's Caddy with the Caddyfile of compose, in front of a live service."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services import ROOT, Service, end_with_parent, free_port

CADDYFILE = (ROOT / "deploy" / "caddy" / "Caddyfile").read_text()
# On loopback, without an administration port.
OPTIONS = "{{\n\tdefault_bind 127.0.0.1\n\tadmin off\n\thttp_port {port}\n}}\n"


@pytest.fixture
def proxied(
    start_service: Callable[..., Service], tmp_path: Path
) -> Iterator[tuple[Service, str, Path]]:
    """(the service, the proxy's address, its log)."""
    if not shutil.which("caddy"):
        pytest.skip("caddy is not installed (Debian: caddy)")
    service = start_service(
        TRUST_PROXY="true", TRUSTED_PROXIES=1, LOG_LEVEL="INFO", LOG_FORMAT="json"
    )
    port = free_port()
    (tmp_path / "Caddyfile").write_text(OPTIONS.format(port=port) + CADDYFILE)
    env = {
        "SITE_ADDRESS": f"http://localhost:{port}",
        "WEB_HOST": "localhost",
        "WEB_PORT": str(service.port),
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    with open(tmp_path / "log", "wb") as log:
        caddy = subprocess.Popen(
            ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"],
            cwd=tmp_path,
            env=os.environ | env,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    try:
        wait_for(port, caddy, tmp_path / "log")
        yield service, f"http://localhost:{port}", tmp_path / "log"
    finally:
        caddy.kill()
        caddy.wait()


def wait_for(port: int, caddy: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/healthz", timeout=5):
                return
        except OSError:
            pass
        assert caddy.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def test_requests_pass_with_the_address_of_the_client(
    proxied: tuple[Service, str, Path],
) -> None:
    service, url, caddy_log = proxied
    headers = {"X-Forwarded-For": "203.0.113.9", "X-Request-Id": "r1"}

    answer = fetch(f"{url}/docs", headers)
    hidden = fetch(f"{url}/metrics", headers)

    lines = [json.loads(line) for line in service.log("web").splitlines()]
    clients = {line["client"] for line in lines if line.get("request_id") == "r1"}
    assert (answer, hidden) == (200, 404), caddy_log.read_text()
    assert clients == {"127.0.0.1"}  # and not the claim


def fetch(url: str, headers: dict[str, str]) -> int:
    """The status. Caddy 2.6 forgets a request whose client closes its side, as LiveCaller does."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@pytest.mark.parametrize(("keepalive", "seconds", "is_open"), [(1, 30, False), (75, 4, True)])
def test_idle_connections_stay_open_for_the_setting(
    start_service: Callable[..., Service], keepalive: int, seconds: int, is_open: bool
) -> None:
    """gunicorn's own default is two seconds, and Caddy's transport keeps connections for 60."""
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
    assert "keepalive 60s" in CADDYFILE
