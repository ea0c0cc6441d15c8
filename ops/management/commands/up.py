"""`manage.py up`: web, worker and beat as one service, on one machine and without set-up.

Prepares the database, starts the three processes, prints how to use them, and stops all when asked
or when one ends. In production, docker compose or systemd runs the same three commands.
"""

import contextlib
import fcntl
import ipaddress
import json
import logging
import os
import shutil
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NoReturn
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from bookings.management.commands.seed_demo import ZONE
from ops.management.commands.migrate import refuse_older_database
from ops.translation_catalogues import compile_outdated


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
        parser.add_argument(
            "--fake-providers",
            action="store_true",
            help="connect to fakes of Google and Microsoft, which start too",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], checked_port(options["port"])
        with claimed_folder(settings.VAR_DIR) as lock, bound_socket(host, port) as listener:
            refuse_older_database()
            clear_queue()
            compile_outdated()
            call_command("collectstatic", verbosity=0, interactive=False)
            prepare_database(demo=not options["no_demo"])
            url = f"http://{reachable_address(listener)}:{port}"
            commands = process_commands(listener, verbose=options["verbose"])
            environment = process_environment(
                url, hosts=served_hosts(listener), verbose=options["verbose"]
            )
            if options["fake_providers"]:
                gateway_port = free_port()
                public_url = os.environ.get("PUBLIC_URL") or url
                commands["fakes"] = fakes_command(gateway_port, public_url)
                environment |= fakes_environment(gateway_port)
            become_supervisor(
                commands=commands,
                environment=environment,
                listener=listener.fileno(),
                lock=lock.fileno(),
                grace=options["grace"],
                welcome=welcome_text(url, demo=not options["no_demo"]),
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


def served_hosts(listener: socket.socket) -> str:
    """Return the hosts that requests may name: any, if the socket listens on all addresses."""
    if ipaddress.ip_address(listener.getsockname()[0]).is_unspecified:
        return "*"
    return ",".join([reachable_address(listener), *settings.ALLOWED_HOSTS])


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
        logging.getLogger("security").setLevel(logging.WARNING)  # new keys of a demo are no news
        call_command("seed_demo", quiet=True)
    connections.close_all()


def clear_queue() -> None:
    """Delete wake-ups of an earlier run: the tables hold the pending work."""
    if settings.MESSAGE_BROKER_URL:
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
    # The system checks load all URLs and the admin's pages, which a worker doesn't need.
    worker = [*celery, "--skip-checks", "worker", "--loglevel", level]
    worker += ["--concurrency", "2", "-O", "fair"]
    # A single worker needs no gossip; mingle would take a second.
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    beat = [sys.executable, "-c", f"from scheduling.beat import run; run({level!r})"]
    return {"web": web, "worker": worker, "beat": beat}


def process_environment(url: str, *, hosts: str, verbose: bool) -> dict[str, str]:
    """Return the variables to add to those of this process."""
    defaults = {
        "PUBLIC_URL": url,
        "ALLOWED_HOSTS": hosts,
        # During set-up, webhook receivers usually run on the same machine.
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        # Celery warns about root, which is often the only user in a container.
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser",
        "LOG_LEVEL": "INFO" if verbose else "WARNING",
        "WEB_THREADS": "4",
        # glibc keeps freed memory for each thread that has used some.
        "MALLOC_ARENA_MAX": "2",
    }
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    if not settings.MESSAGE_BROKER_URL:
        # The file broker moves each message into the temporary folder before it reads it.
        added["TMPDIR"] = str(settings.QUEUE_DIR / "tmp")
    return added | {"PYTHONUNBUFFERED": "1"}


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with bound_socket("127.0.0.1", 0) as listener:
        return listener.getsockname()[1]


def fakes_command(port: int, public_url: str) -> list[str]:
    """Return the command of the tests' fakes of Google and Microsoft, which have demo accounts."""
    command = [sys.executable, "-m", "tests.external_calendars.fakes", "--port", str(port)]
    return [*command, "--callback", f"{public_url.rstrip('/')}/v2/calendars/callback"]


def fakes_environment(port: int) -> dict[str, str]:
    """Return the settings with which the service calls the fakes and is their client."""
    return {
        "CALENDAR_PROVIDER_GATEWAY": f"http://127.0.0.1:{port}",
        "GOOGLE_CLIENT_ID": "demo-google",
        "GOOGLE_CLIENT_SECRET": "demo-secret",
        "MICROSOFT_CLIENT_ID": "demo-microsoft",
        "MICROSOFT_CLIENT_SECRET": "demo-secret",
    }


def become_supervisor(*, listener: int, lock: int, **plan: Any) -> NoReturn:
    """Replace this process, with Django in its memory, by the supervisor.

    Both numbers are open files, which stay open. The plan has the demo's key and password, which
    arguments of a process would show to other users.
    """
    read, write = os.pipe()
    for number in (listener, lock, read):
        os.set_inheritable(number, True)
    content = json.dumps({**plan, "listener": listener, "lock": lock}).encode()
    os.write(write, content)
    os.close(write)
    sys.stdout.flush()
    os.chdir(settings.BASE_DIR)
    command = [sys.executable, "-m", "ops.process_supervisor", str(read)]
    os.execv(command[0], command)  # noqa: S606 # nosec B606


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
    return [title, f"  {call} -d '{json.dumps(body)}' {url}{path}; echo"]
