"""`manage.py doctor` in the place of a service, as an operator runs it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.ops.test_doctor import NAMES
from tests.services import FORK_SERVER, ROOT, Service


@contextmanager
def mute_server() -> Iterator[int]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def ask(service: Service, **settings: Any) -> tuple[int, dict[str, str], dict[str, str]]:
    """(exit code, name -> level, name -> what was said) of the command in the service's place."""
    env = service.env | {name: str(value) for name, value in settings.items()}
    done = FORK_SERVER.run("manage", "doctor", cwd=ROOT, env=env, timeout=60)
    lines = done.stdout.splitlines()
    levels = {line[6:23].strip(): line[:4].strip() for line in lines}
    return done.returncode, levels, {line[6:23].strip(): line[24:] for line in lines}


@pytest.mark.parametrize(
    "broker",
    [
        pytest.param("files", marks=pytest.mark.deep),
        pytest.param("redis", marks=pytest.mark.redis),
    ],
)
def test_doctor_of_a_running_service(start_service: Callable[..., Service], broker: str) -> None:
    redis = os.environ["REDIS_URL"].replace("/0", "/7") if broker == "redis" else ""
    service = start_service(workers=1, REDIS_URL=redis)
    service.start_worker()
    service.run("from notifications.outbox.heartbeats import record_heartbeat; record_heartbeat()")

    code, levels, said = ask(service)
    service.kill("worker", 15)
    without, _, said_without = ask(service)

    assert levels == dict.fromkeys(NAMES, "ok") | {"public address": "WARN"}, said
    assert said["workers"] == "1 worker answers, processing calendar, celery, email, webhook"
    assert (code, without) == (0, 1)
    assert said_without["workers"] == (
        "no worker answers -> Start a worker (celery -A scheduling worker -O fair),"
        " or check its log."
    )
    service.stop()


def test_doctor_with_all_servers_down(tmp_path: Path) -> None:
    """Dead and mute servers: every line is said, none is waited for."""
    began = time.monotonic()

    with mute_server() as port:
        dead = f"127.0.0.1:{port}"
        servers = {"REDIS_URL": f"redis://{dead}/0", "EMAIL_URL": f"smtp://{dead}"}
        code, levels, said = ask(Service(tmp_path, f"postgres://nobody@{dead}/none", servers))
    took = time.monotonic() - began

    failed = ["database", "broker", "workers", "e-mail server"]
    unseen = ["migrations", "home", "clocks", "transactions", "beat", "overdue emails", "backups"]
    unseen += [
        "overdue webhooks",
        "overdue calendars",
        "stored secrets",
        "all-day events",
        "calendars",
    ]
    unseen += ["completions", "webhooks", "breakers", "public address", "proxies"]
    unseen += ["planning", "time-outs", "direct connection", "replica", "senders", "push"]
    assert levels == {
        **dict.fromkeys(NAMES, "ok"),
        **dict.fromkeys(failed, "FAIL"),
        **dict.fromkeys(unseen, "WARN"),
    }
    assert code == 1
    assert said["broker"].startswith("no answer in 2 s -> Start the broker")
    assert said["clocks"] == "not checked -> Restore the database first."
    assert took < 50
