"""The proxies of deploy/, with their shipped files, in front of a live service on loopback."""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.services import ROOT, end_with_parent, free_port

CADDYFILE = (ROOT / "deploy" / "caddy" / "Caddyfile").read_text()
HAPROXY = (ROOT / "deploy" / "haproxy" / "haproxy.cfg").read_text()
NGINX = (ROOT / "deploy" / "nginx" / "scheduling.conf").read_text()
NGINX_CONF = """
daemon off;
user root;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    {unused}
    include {folder}/scheduling.conf;
}}
"""
# Debian's folders of parts that the shipped file does not use.
UNUSED = "".join(f"{part}_temp_path {{folder}}/{part}; " for part in ("fastcgi", "uwsgi", "scgi"))


class Proxy(NamedTuple):
    """A running proxy; `url` without a slash at the end."""

    name: str
    port: int
    has_tls: bool
    log_file: Path

    @property
    def url(self) -> str:
        return f"{'https' if self.has_tls else 'http'}://localhost:{self.port}"

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection from an address of 127.0.0.0/8."""
        wire = socket.create_connection(("127.0.0.1", self.port), 30, (source, 0))
        if not self.has_tls:
            return wire
        try:
            return client_context().wrap_socket(wire)
        except OSError:
            wire.close()
            raise

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def changed(text: str, changes: dict[str, str]) -> str:
    """The shipped file with lines that belong to another machine replaced."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextlib.contextmanager
def running(name: str, folder: Path, web_port: int) -> Iterator[Proxy]:
    """The proxy in front of web; it answers when this returns."""
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed (.ci/packages.txt)")
    port = free_port()
    command, env = PREPARE[name](folder, port, web_port)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | env,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    proxy = Proxy(name, port, has_tls=name != "caddy", log_file=folder / "log")
    try:
        wait_for(proxy, process)
        yield proxy
    finally:
        process.terminate()
        process.wait(30)


def wait_for(proxy: Proxy, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), proxy.connect() as wire:
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if wire.recv(20).startswith(b"HTTP/1.1 200"):
                return
        assert process.poll() is None and time.monotonic() < deadline, proxy.log()
        time.sleep(0.1)


def prepare_caddy(folder: Path, port: int, web_port: int) -> tuple[list[str], dict[str, str]]:
    """Plain http, without an administration port.

    Debian's Caddy 2.6 has an older directive for what `request_buffers` does.
    """
    options = f"{{\n\tdefault_bind 127.0.0.1\n\tadmin off\n\thttp_port {port}\n"
    text = changed(CADDYFILE, {"\n{\n\tservers": f"\n{options}\tservers"})
    if caddy_version() < (2, 7):
        older = "buffer_requests\n\t\tmax_buffer_size 1MB\n"
        text = changed(text, {"request_buffers 1MB\n": older})
    (folder / "Caddyfile").write_text(text)
    env = {"SITE_ADDRESS": f"http://localhost:{port}", "HOME": str(folder)}
    env |= {"WEB_HOST": "localhost", "WEB_PORT": str(web_port)}
    env |= {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"], env


def caddy_version() -> tuple[int, ...]:
    printed = subprocess.run(["caddy", "version"], capture_output=True, text=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", printed)[:2])


def prepare_haproxy(folder: Path, port: int, web_port: int) -> tuple[list[str], dict[str, str]]:
    write_certificate(folder)
    changes = {
        "bind :80\n": f"bind 127.0.0.1:{free_port()}\n",
        "bind :443 ssl crt /etc/haproxy/certs/": f"bind 127.0.0.1:{port} ssl crt {folder}/both.pem",
        "127.0.0.1:8000": f"127.0.0.1:{web_port}",
    }
    (folder / "haproxy.cfg").write_text(changed(HAPROXY, changes))
    return ["haproxy", "-db", "-f", "haproxy.cfg"], {}


def prepare_nginx(folder: Path, port: int, web_port: int) -> tuple[list[str], dict[str, str]]:
    write_certificate(folder)
    changes = {
        "\tlisten [::]:80;\n\tserver_name": "\tserver_name",
        "\tlisten [::]:443 ssl http2;\n": "",
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{port} ssl http2;",
        "/etc/ssl/bookings.example.com/fullchain.pem": f"{folder}/both.pem",
        "/etc/ssl/bookings.example.com/privkey.pem": f"{folder}/both.pem",
        "/var/log/nginx/scheduling.log": f"{folder}/access.log",
        "127.0.0.1:8000": f"127.0.0.1:{web_port}",
    }
    (folder / "scheduling.conf").write_text(changed(NGINX, changes))
    unused = UNUSED.format(folder=folder)
    (folder / "nginx.conf").write_text(NGINX_CONF.format(folder=folder, unused=unused))
    return ["nginx", "-c", str(folder / "nginx.conf")], {}


def write_certificate(folder: Path) -> None:
    """`both.pem`: a key and a certificate of localhost that nobody has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "both.pem").write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))


PREPARE = {"caddy": prepare_caddy, "haproxy": prepare_haproxy, "nginx": prepare_nginx}
