"""`manage.py up`: web, worker and beat as one service, on one machine and without set-up.

Prepares the database, starts the three processes, prints how to use them, and stops all when asked
or when one ends. In production, docker compose or systemd runs the same three commands.
"""

import contextlib
import fcntl
import http.client
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from bookings.management.commands.seed_demo import ZONE

# Outlives a killed supervisor: its standard input then ends, and it stops the processes named on
# it. It signals the leaders first, so that the worker can finish its tasks, then whole groups.
WATCHDOG = """
trap '' INT TERM HUP
while read -r pid; do leaders="$leaders $pid"; done
alive() { for pid in $leaders; do kill -s 0 -- "-$pid" && return; done; }
for pid in $leaders; do kill -s TERM -- "$pid"; done
left=$1
while alive && [ "$left" -gt 0 ]; do sleep 1; left=$((left - 1)); done
for pid in $leaders; do kill -s KILL -- "-$pid"; done
"""


class Command(BaseCommand):
    help = "Start web, worker and beat. Ctrl-C stops them."
    requires_system_checks = []  # the children run the checks; here they would only cost time

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", default=os.environ.get("PORT") or "8000")
        parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 serves other machines too")
        parser.add_argument(
            "--grace", type=int, default=25, help="seconds that a stop may take (default 25)"
        )
        parser.add_argument("--verbose", action="store_true", help="log requests and tasks too")
        parser.add_argument("--no-demo", action="store_true", help="create no demo data")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], checked_port(options["port"])
        with claimed_folder(settings.VAR_DIR) as lock, bound_socket(host, port) as listener:
            clear_queue()
            prepare_database(demo=not options["no_demo"])
            url = f"http://{reachable_address(listener)}:{port}"
            supervisor = Supervisor(options["grace"], lock, verbose=options["verbose"])
            supervisor.run(
                listener,
                process_commands(listener, verbose=options["verbose"]),
                url,
                when_ready=lambda: say(welcome_text(url, demo=not options["no_demo"])),
            )


def checked_port(raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 5 and 1 <= int(raw) <= 65535):
        raise CommandError(f"--port must be a number from 1 to 65535, not {raw!r}")
    return int(raw)


@contextlib.contextmanager
def bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the listening socket before anything starts; gunicorn gets it as it is.

    A busy port is reported at once, and no other process can take it meanwhile.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        # Otherwise the port is refused for a minute after a stop, while old connections close.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror}."
                " Choose another port: ./run --port N"
            ) from None
        yield listener


def reachable_address(listener: socket.socket) -> str:
    """Return the host for a URL: localhost if the socket listens on all addresses."""
    address = ipaddress.ip_address(listener.getsockname()[0])
    if address.is_unspecified:
        return "localhost"
    return f"[{address}]" if address.version == 6 else str(address)


@contextlib.contextmanager
def claimed_folder(folder: Path) -> Iterator[IO[str]]:
    """Lock the data folder: two services in one would share a queue and beat's schedule file."""
    with open(folder / "up.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"Another service uses {folder}, or is still stopping."
                " Stop it first, or set VAR_DIR to another folder."
            ) from None
        yield lock


def prepare_database(*, demo: bool) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    if demo:
        call_command("seed_demo", quiet=True)
    connections.close_all()


def clear_queue() -> None:
    """Delete wake-ups of an earlier run: the tables hold the pending work."""
    if settings.REDIS_URL:
        return
    for name in ("messages", "control", "tmp"):
        shutil.rmtree(settings.QUEUE_DIR / name, ignore_errors=True)
        (settings.QUEUE_DIR / name).mkdir(parents=True)


def process_commands(listener: socket.socket, *, verbose: bool) -> dict[str, list[str]]:
    level = "info" if verbose else "warning"
    memory = Path("/dev/shm")  # noqa: S108 # nosec B108
    heartbeat = memory if os.access(memory, os.W_OK) else settings.VAR_DIR
    web = [
        sys.executable,
        "-m",
        "gunicorn",
        "scheduling.wsgi",
        "--bind",
        f"fd://{listener.fileno()}",
    ]
    # Loaded once and forked: halves the memory and the time until the first answer.
    web += ["--preload", "--no-control-socket", "--graceful-timeout", "20", "--log-level", level]
    # On a disk, the heartbeat file would wait for other processes' writes.
    web += ["--worker-tmp-dir", str(heartbeat)]
    celery = [sys.executable, "-m", "celery", "--quiet", "--app", "scheduling"]
    worker = [*celery, "worker", "--loglevel", level, "--concurrency", "2", "-O", "fair"]
    # A single worker needs no gossip; mingle would take a second.
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return {"web": web, "worker": worker, "beat": [*celery, "beat", "--loglevel", level]}


def welcome_text(url: str, *, demo: bool) -> str:
    """The address, the log-in, and one command that works."""
    lines = ["", f"Ready: {url}/   (Ctrl-C stops)", ""]
    if not demo:
        lines += [f"  Back office  {url}/admin/", f"  API docs     {url}/docs", ""]
        return "\n".join(lines)
    made = json.loads((settings.VAR_DIR / "demo.json").read_text())
    lines += [
        f"  Back office  {url}/admin/",
        f"  User         {made['admin_email']}",
        f"  Password     {made['admin_password']}",
        "",
        f"  Book         {url}/book/{made['project_slug']}",
        f"  API docs     {url}/docs",
        f"  API key      {made['api_key']}",
        "",
    ]
    return "\n".join([*lines, *example_command(url, made), ""])


def example_command(url: str, made: dict[str, Any]) -> list[str]:
    """One call that works: book the demo's free slot, or query free slots if there is none."""
    body: dict[str, Any] = {"project_id": made["project_id"]}
    title, path = "Query free slots:", "/v2/availability"
    if slot := made["free_slot"]:
        start = datetime.fromisoformat(slot["start"]).astimezone(ZoneInfo(ZONE))
        title, path = f"Book {start:%A, %d %B, %H:%M} in {ZONE}:", "/v2/bookings"
        body |= {**slot, "customer": {"name": "Ada", "email": "ada@example.com"}}
    call = f"curl -s -u :{made['api_key']} -H 'Content-Type: application/json'"
    return [title, f"  {call} -d '{json.dumps(body)}' {url}{path}"]


class Supervisor:
    """Starts the children, forwards their output, and makes sure that all of them end."""

    def __init__(self, grace: int, lock: IO[str], *, verbose: bool) -> None:
        self.grace, self.lock, self.verbose = grace, lock, verbose
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.readers: list[threading.Thread] = []
        self.stop_asked = False

    def run(
        self,
        listener: socket.socket,
        commands: dict[str, list[str]],
        url: str,
        when_ready: Callable[[], None],
    ) -> None:
        """Run until a stop is requested (returns) or a child exits (raises CommandError)."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.ask_to_stop)
        heard, told = os.pipe()
        watchdog = self.start_watchdog(heard)
        try:
            for name, command in commands.items():
                self.start(name, command, listener, url)
                os.write(told, b"%d\n" % self.children[name].pid)
            address = listener.getsockname()[:2]
            listener.close()
            if self.answers(address):
                when_ready()
            while not self.stop_asked:
                self.check_children()
                time.sleep(0.2)
            say("Stopping ...")
        finally:
            self.stop_children()
            watchdog.kill()
            watchdog.wait()

    def ask_to_stop(self, number: int, frame: object) -> None:
        if self.stop_asked:  # a second request kills at once
            self.signal_groups(signal.SIGKILL)
        self.stop_asked = True

    def start_watchdog(self, heard: int) -> subprocess.Popen[bytes]:
        """Start the watchdog; it holds the folder's lock, so no service starts before it ends."""
        return subprocess.Popen(
            ["/bin/sh", "-c", WATCHDOG, "watchdog", str(self.grace)],
            stdin=heard,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self.lock.fileno()],
            start_new_session=True,
        )

    def start(self, name: str, command: list[str], listener: socket.socket, url: str) -> None:
        env = os.environ | {"PYTHONUNBUFFERED": "1"}
        env.setdefault("PUBLIC_URL", url)
        # During set-up, webhook receivers usually run on the same machine.
        env.setdefault("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8,::1/128")
        # Celery warns about root, which is often the only user in a container.
        env.setdefault("PYTHONWARNINGS", "ignore:You're running the worker with superuser")
        env.setdefault("LOG_LEVEL", "INFO" if self.verbose else "WARNING")
        env.setdefault("WEB_THREADS", "4")
        if not settings.REDIS_URL:
            # The file broker moves each message into the temporary folder before it reads it.
            env["TMPDIR"] = str(settings.QUEUE_DIR / "tmp")
        # A session of its own: Ctrl-C reaches only the supervisor, which signals only the leader.
        # Signalling the worker's pool too would lose running tasks.
        child = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[listener.fileno()] if name == "web" else [],
            start_new_session=True,
        )
        self.children[name] = child
        reader = threading.Thread(target=forward_output, args=(name, child.stdout), daemon=True)
        reader.start()
        self.readers.append(reader)

    def answers(self, address: tuple[str, int], seconds: float = 60) -> bool:
        """Return True as soon as web answers; False if a stop is requested first."""
        deadline = time.monotonic() + seconds
        while not self.stop_asked:
            self.check_children()
            with contextlib.suppress(OSError, http.client.HTTPException):
                web = http.client.HTTPConnection(*address, timeout=1)
                web.request("GET", "/healthz")
                if web.getresponse().status == 200:
                    return True
            if time.monotonic() > deadline:
                raise CommandError(f"/healthz did not answer 200 within {seconds:.0f} seconds")
            time.sleep(0.1)
        return False

    def check_children(self) -> None:
        for name, child in self.children.items():
            if child.poll() is not None:
                raise CommandError(f"{name} ended by itself (exit code {child.returncode})")

    def stop_children(self) -> None:
        """Terminate the leaders; after the grace period, kill the remaining process groups."""
        self.stop_asked = True
        for child in self.children.values():
            child.terminate()  # no effect on an ended process
        deadline = time.monotonic() + self.grace
        for child in self.children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0, deadline - time.monotonic()))
        self.signal_groups(signal.SIGKILL)
        for child in self.children.values():
            child.wait()
        for reader in self.readers:
            reader.join(1)

    def signal_groups(self, number: int) -> None:
        for child in self.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)


def forward_output(name: str, stream: IO[bytes]) -> None:
    for line in stream:
        say(f"{name:<6} | {line.decode(errors='replace').rstrip()}")


def say(text: str) -> None:
    """Print a line; ignore a closed terminal or a broken pipe."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
