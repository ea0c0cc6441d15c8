"""`manage.py up`: web, worker and beat as one service, for one machine and no set-up.

Prepares the database, starts the three, tells how to use them, and stops all when asked or when one
of them ends. In production the same three commands run under docker compose or systemd instead.
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
from pathlib import Path
from typing import IO, Any, ClassVar

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

# Outlives a supervisor that is killed: its input then ends, and it stops whoever was named on it.
# First the leaders, so that the worker may finish what it began; after a while whole groups.
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
    help = "Starts web, worker and beat together. Ctrl-C stops them."
    requires_system_checks: ClassVar[
        list[str]
    ] = []  # the children check; here it would only cost time

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", default=os.environ.get("PORT") or "8000")
        parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 serves other machines too")
        parser.add_argument(
            "--grace", type=int, default=25, help="seconds that a stop may take (default 25)"
        )
        parser.add_argument("--verbose", action="store_true", help="log requests and tasks too")
        parser.add_argument("--no-demo", action="store_true", help="make no demo data")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], checked_port(options["port"])
        with claimed_folder(settings.VAR_DIR) as lock, bound_socket(host, port) as listener:
            clear_queue()
            prepare_database(demo=not options["no_demo"])
            url = f"http://{reachable(listener)}:{port}"
            supervisor = Supervisor(options["grace"], lock, verbose=options["verbose"])
            supervisor.run(
                listener,
                commands(listener, verbose=options["verbose"]),
                url,
                when_ready=lambda: say(welcome(url, demo=not options["no_demo"])),
            )


def checked_port(raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 5 and 1 <= int(raw) <= 65535):
        raise CommandError(f"--port must be a number from 1 to 65535, not {raw!r}")
    return int(raw)


@contextlib.contextmanager
def bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """The listening address, taken before anything starts and handed to gunicorn as it is.

    So a busy port is known at once, and nobody can take it between the look and the use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        # Without it a port is refused for a minute after a stop, while old connections fade.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror}."
                " Choose another port: ./run --port N"
            ) from None
        yield listener


def reachable(listener: socket.socket) -> str:
    """The address to write into a URL: this machine itself where all addresses are listened on."""
    address = ipaddress.ip_address(listener.getsockname()[0])
    if address.is_unspecified:
        return "localhost"
    return f"[{address}]" if address.version == 6 else str(address)


@contextlib.contextmanager
def claimed_folder(folder: Path) -> Iterator[IO[str]]:
    """One service per data folder: two would share a queue and beat's book of times."""
    with open(folder / "up.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"Another service runs on {folder}, or is just stopping."
                " Stop it first, or set VAR_DIR to another folder."
            ) from None
        yield lock


def prepare_database(*, demo: bool) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    if demo:
        call_command("seed_demo", quiet=True)
    connections.close_all()


def clear_queue() -> None:
    """Drops wake-ups left by an earlier run: the tables hold what is to be done."""
    if settings.REDIS_URL:
        return
    for name in ("messages", "control", "tmp"):
        shutil.rmtree(settings.QUEUE_DIR / name, ignore_errors=True)
        (settings.QUEUE_DIR / name).mkdir(parents=True)


def commands(listener: socket.socket, *, verbose: bool) -> dict[str, list[str]]:
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
    web += ["--worker-class", "gthread", "--workers", "2", "--threads", "4"]
    # Loaded once and forked: half the memory and half the time until the first answer.
    web += ["--preload", "--no-control-socket", "--graceful-timeout", "20", "--log-level", level]
    # On a disk the workers' heartbeat would wait for other people's writes.
    web += ["--worker-tmp-dir", str(heartbeat)]
    web += ["--access-logfile", "-"] if verbose else []
    celery = [sys.executable, "-m", "celery", "--quiet", "--app", "scheduling"]
    worker = [*celery, "worker", "--loglevel", level, "--concurrency", "2", "-O", "fair"]
    # One worker on one machine has nobody to gossip with; meeting nobody would take a second.
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return {"web": web, "worker": worker, "beat": [*celery, "beat", "--loglevel", level]}


def welcome(url: str, *, demo: bool) -> str:
    lines = ["", f"Ready: {url}   (Ctrl-C stops)", f"  API docs  {url}/docs"]
    if not demo:
        return "\n".join([*lines, f"  Admin     {url}/admin/", ""])
    made = json.loads((settings.VAR_DIR / "demo.json").read_text())
    call = f"curl -s -u :{made['api_key']} -H 'Content-Type: application/json'"
    lines += [
        f"  Book      {url}/book/{made['project_slug']}",
        f"  Admin     {url}/admin/   {made['admin_email']}   {made['admin_password']}",
        f"  App       {made['app_slug']}",
        f"  API key   {made['api_key']}",
        "",
        "When is there time?",
        f"  {call} -d '{json.dumps({'project_id': made['project_id']})}' {url}/v2/availability",
    ]
    if made["free_slot"]:
        booking = {
            "project_id": made["project_id"],
            **made["free_slot"],
            "customer": {"name": "Ada", "email": "ada@example.com"},
        }
        lines += [
            "Book the first slot a week from now:",
            f"  {call} -d '{json.dumps(booking)}' {url}/v2/bookings",
        ]
    return "\n".join([*lines, ""])


class Supervisor:
    """Starts the children, passes on what they say, and sees to it that all of them end."""

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
        """Until a stop is asked for (returns) or a child ends by itself (CommandError)."""
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
        if self.stop_asked:  # asked twice: at once
            self.signal_groups(signal.SIGKILL)
        self.stop_asked = True

    def start_watchdog(self, heard: int) -> subprocess.Popen[bytes]:
        """It holds the folder's lock too: nobody starts anew while it is still clearing up."""
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
        # A newcomer's first webhook goes to a receiver on the same machine.
        env.setdefault("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8,::1/128")
        # Celery's lecture about root, which is often the only user in a container.
        env.setdefault("PYTHONWARNINGS", "ignore:You're running the worker with superuser")
        env.setdefault("LOG_LEVEL", "INFO" if self.verbose else "WARNING")
        if not settings.REDIS_URL:
            # The broker in files moves each message into the temporary folder before it reads it.
            env["TMPDIR"] = str(settings.QUEUE_DIR / "tmp")
        # A session of its own: Ctrl-C reaches us alone, and we signal the leader alone. Were the
        # worker's pool signalled too, tasks in hand would be lost.
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
        reader = threading.Thread(target=pass_on, args=(name, child.stdout), daemon=True)
        reader.start()
        self.readers.append(reader)

    def answers(self, address: tuple[str, int], seconds: float = 60) -> bool:
        """True as soon as web answers; False when a stop is asked for before."""
        deadline = time.monotonic() + seconds
        while not self.stop_asked:
            self.check_children()
            with contextlib.suppress(OSError, http.client.HTTPException):
                web = http.client.HTTPConnection(*address, timeout=1)
                web.request("GET", "/healthz")
                if web.getresponse().status == 200:
                    return True
            if time.monotonic() > deadline:
                raise CommandError(f"/healthz gave no good answer within {seconds:.0f} seconds")
            time.sleep(0.1)
        return False

    def check_children(self) -> None:
        for name, child in self.children.items():
            if child.poll() is not None:
                raise CommandError(f"{name} ended by itself (exit code {child.returncode})")

    def stop_children(self) -> None:
        """The leaders are asked; what is left after the grace, or lost its leader, is killed."""
        self.stop_asked = True
        for child in self.children.values():
            child.terminate()  # does nothing to one that has ended
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


def pass_on(name: str, stream: IO[bytes]) -> None:
    for line in stream:
        say(f"{name:<6} | {line.decode(errors='replace').rstrip()}")


def say(text: str) -> None:
    """A line for whoever is there to read it: a terminal may close, a pipe may break, we go on."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
