"""Cells behind the shipped router: deploy/haproxy/cells.cfg in front of live services."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.deploy.proxies import changed, client_context, write_certificate
from tests.services import ROOT, end_with_parent, free_port
from tests.world import basic

CELLS = (ROOT / "deploy" / "haproxy" / "cells.cfg").read_text()
API_HOST = "api.example.com"
HOMES = (0, 1, 2)
REDIRECT = next(line for line in CELLS.splitlines() if "http-response redirect" in line)
NOT_SPLIT = {f"{REDIRECT}\n": ""}
# One process and few threads: a cell is as small as it can be.
SMALL: dict[str, Any] = {"workers": 1, "threads": 4}


def host_of(home: int) -> str:
    return f"cell{home}.example.com"


def cell_settings(home: int, host: str = "") -> dict[str, object]:
    """The settings of a cell behind a router; `host`: its own, if it is not the home's."""
    host = host or host_of(home)
    return {
        "HOME_NUMBER": home,
        "PUBLIC_URL": f"https://{host}",
        "ALLOWED_HOSTS": f"{host},{API_HOST},127.0.0.1",
        "TRUST_PROXY": "true",
        "TRUSTED_PROXIES": 1,
        "REDIS_URL": "",
    }


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage  # names in any case
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def data(self) -> Any:
        assert self.status < 300, (self.status, self.content[:2000])
        return self.json["data"]


class Client:
    """Requests over one connection, which is opened anew when the other side has closed it."""

    def __init__(self, port: int) -> None:
        self.wire = http.client.HTTPSConnection(
            "127.0.0.1", port, context=client_context(), timeout=60
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        host: str = API_HOST,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        named = {"Host": host, **(headers or {})}
        if key is not None:
            named["Authorization"] = basic(key)
        content = body if isinstance(body, bytes) else None if body is None else write(body)
        if content is not None:
            named.setdefault("Content-Type", "application/json")
        try:
            self.wire.request(method, path, content, named)
            response = self.wire.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except BaseException:
            self.wire.close()
            raise
        if answer.headers.get("Connection", "").lower() == "close":
            self.wire.close()
        return answer

    def close(self) -> None:
        self.wire.close()


def write(body: Any) -> bytes:
    return json.dumps(body).encode()


class Router:
    """The shipped router with its maps in `folder`; `servers`: "home_1/web1" -> port."""

    def __init__(self, folder: Path, ports: Mapping[int, int], changes: Mapping[str, str]) -> None:
        self.folder, self.port = folder, free_port()
        self.socket = folder / "admin.sock"
        write_certificate(folder)
        own = {
            "bind :80\n": f"bind 127.0.0.1:{free_port()}\n",
            "bind :443 ssl crt /etc/haproxy/certs/": (
                f"bind 127.0.0.1:{self.port} ssl crt {folder}/both.pem"
            ),
            "/etc/haproxy/hosts.map": f"{folder}/hosts.map",
            "/etc/haproxy/moved.map": f"{folder}/moved.map",
            "/run/haproxy/admin.sock": str(self.socket),
        }
        addresses = {f"10.0.{home}.1:8000": f"127.0.0.1:{port}" for home, port in ports.items()}
        text = changed(CELLS, {**changes, **own, **addresses})
        (folder / "haproxy.cfg").write_text(text)
        hosts = "".join(f"{host_of(home)} home_{home}\n" for home in ports)
        (folder / "hosts.map").write_text(hosts)
        (folder / "moved.map").touch()

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["haproxy", "-db", "-f", "haproxy.cfg"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        deadline = time.monotonic() + 30
        while not self.is_up():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def is_up(self) -> bool:
        client = Client(self.port)
        with contextlib.closing(client):
            try:
                return client.call("GET", "/healthz").status == 200
            except OSError:
                return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def restart(self) -> None:
        self.stop()
        self.start()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def send_command(self, command: str) -> str:
        """Send a command to the runtime API of HAProxy."""
        done = subprocess.run(
            ["socat", "-", str(self.socket)], input=f"{command}\n", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextlib.contextmanager
def routing(
    folder: Path, ports: Mapping[int, int], changes: Mapping[str, str] | None = None
) -> Iterator[Router]:
    """The router in front of the homes' ports; it answers when this returns."""
    if not shutil.which("haproxy") or not shutil.which("socat"):
        pytest.skip("haproxy or socat is not installed (.ci/packages.txt)")
    folder.mkdir(exist_ok=True)
    router = Router(folder, ports, changes or {})
    router.start()
    try:
        yield router
    finally:
        router.stop()


def run_script(name: str, *args: object, path: str = "") -> subprocess.CompletedProcess[str]:
    """deploy/cells/<name>; `path`: a folder whose programs come first."""
    script = str(ROOT / "deploy" / "cells" / name)
    env = os.environ | {"PATH": os.pathsep.join(filter(None, [path, os.environ["PATH"]]))}
    command = ["sh", script, *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=120, start_new_session=True
    )
