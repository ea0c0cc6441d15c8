"""Workers poll without a broker, and probes see whether they still do."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from notifications.outbox import poller
from tests.live import LiveApp, Rows
from tests.services import ROOT, Service, free_port

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
STATES = """
SELECT recipient, state FROM notifications_delivery WHERE booking_id IS NOT NULL ORDER BY number
"""


@pytest.fixture(scope="module")
def service(start_service: Callable[..., Service]) -> Service:
    """A service whose Redis has been away since before it started."""
    return start_service(workers=1, threads=2, REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")


def probe(service: Service) -> int:
    """Return the exit code of the health check of docker-compose.yml."""
    _, command = COMPOSE["services"]["worker-email"]["healthcheck"]["test"]
    here = command.replace("$$", "$").replace("/var/lib/scheduling", str(service.folder))
    return subprocess.run(["sh", "-c", here], env=service.env, check=False).returncode


def outdate_liveness_files(service: Service) -> None:
    for path in service.folder.glob("worker-*.alive"):
        os.utime(path, (0, 0))


def wait_until(is_true: Callable[[], bool], service: Service) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, service.log("worker")
        time.sleep(0.1)


def test_worker_started_without_redis_sends_due_mail(service: Service) -> None:
    app = LiveApp(service)
    ada = {"name": "Ada", "timezone": "Europe/Berlin", "email": "ada@example.com"}
    booking = {
        "resource_id": app.post("/v2/resources", ada).data["id"],
        "what": "Check-up",
        "customer": {"name": "Marty McFly", "email": "marty@example.com"},
        "start": "2031-01-02 09:00:00",
        "end": "2031-01-02 10:00:00",
    }
    assert app.post("/v2/bookings", booking).code == "201"

    service.start_worker(queue="email", until="Cannot connect to redis")
    started = probe(service)
    outdate_liveness_files(service)
    outdated = probe(service)
    rows = Rows(service)
    sent = [("customer", "delivered"), ("owner", "delivered")]
    wait_until(lambda: rows.read(STATES) == sent, service)
    wait_until(lambda: probe(service) == 0, service)
    service.kill("worker", 15)

    assert (started, outdated) == (0, 1)
    assert "ready." not in service.log("worker")


def test_probe_fails_while_the_poll_thread_hangs(service: Service) -> None:
    include = "tests.notifications.hanging_poll"
    service.start_worker("hanging", queue="email", include=include, until="the poll hangs")
    outdate_liveness_files(service)

    assert probe(service) == 1
    service.kill("hanging")


def test_liveness_file_has_the_time_of_the_slowest_thread(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR_DIR = tmp_path
    clock = iter(range(1000, 2000, 100))
    monkeypatch.setattr(poller, "time", SimpleNamespace(time=lambda: next(clock)))
    path = tmp_path / "worker-email@host.alive"

    liveness = poller.LivenessFile("email@host", 2)
    ages = [path.stat().st_mtime]
    for thread in (0, 0, 1, 0):
        liveness.report_round(thread)
        ages.append(path.stat().st_mtime)

    assert ages == [1000, 1000, 1000, 1200, 1300]
