"""Password hashes occupy at most half of the cores, over all processes of a node or container."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps_config.models import FailedLogin
from common.errors import Unavailable
from common.limits import hashing_slots
from common.limits.hashing_slots import hashing_slot

OCCUPY = """
import fcntl, sys, time
files = [open(name, "ab") for name in sys.argv[1:]]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
print("occupied", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _two_slots(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr(hashing_slots, "SLOTS", 2)


@pytest.fixture
def another_process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It occupies both slots."""
    (tmp_path / "hashing").mkdir()
    files = [str(tmp_path / "hashing" / str(number)) for number in range(2)]
    process = subprocess.Popen([sys.executable, "-c", OCCUPY, *files], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"occupied\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("150000 100000\n", 1.5),
        ("6400000 100000\n", 4.0),
        ("max 100000\n", 4.0),
        (None, 4.0),
    ],
)
def test_core_count_respects_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str | None, cores: float
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(hashing_slots, "CPU_QUOTA", tmp_path / "cpu.max")
    if quota:
        (tmp_path / "cpu.max").write_text(quota)

    assert hashing_slots.count_cores() == cores


def test_slots_are_half_of_the_cores() -> None:
    """Of those that the process may use: another process is limited to one."""
    one = min(os.sched_getaffinity(0))
    show = "from common.limits.hashing_slots import SLOTS, count_cores; print(count_cores(), SLOTS)"

    shown = subprocess.check_output(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{one}}}); {show}"],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "scheduling.settings"},
        text=True,
    )

    cores, slots = shown.split()
    assert (0 < float(cores) <= 1, slots) == (True, "1")


def test_slot_is_released_after_its_block() -> None:
    for _ in range(3):
        with hashing_slot(), hashing_slot():
            pass


@pytest.mark.parametrize(("slot", "most"), [(hashing_slot, 2), (nullcontext, 6)])
def test_threads_share_the_slots(slot: Callable[[], Any], most: int) -> None:
    """The control: without slots, all six run at once."""
    inside, seen, lock = [0], [0], threading.Lock()
    together = threading.Barrier(most)

    def compute() -> None:
        with slot():
            with lock:
                inside[0] += 1
                seen[0] = max(seen[0], inside[0])
            together.wait(60)
            with lock:
                inside[0] -= 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing_slots, "PATIENCE", 60.0)
        threads = [threading.Thread(target=compute) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert seen == [most]


def test_processes_share_the_slots(
    another_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing_slots, "PATIENCE", 0.0)
    with pytest.raises(Unavailable), hashing_slot():
        pass

    another_process.send_signal(signal.SIGKILL)
    another_process.wait()

    with hashing_slot():  # the lock has ended with its process
        pass


def test_log_ins_beyond_the_slots_get_503(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing_slots, "PATIENCE", 0.0)
    body = {"email": "doc@example.com", "password": "wrong"}
    form = {"username": "doc@example.com", "password": "wrong"}

    with hashing_slot(), hashing_slot():
        api = Client().post("/v2/auth", body, content_type="application/json")
        page = Client().post("/admin/login/", form)

    assert (api.status_code, api.json()["code"], api.headers["Retry-After"]) == (
        503,
        "unavailable",
        "2",
    )
    assert (page.status_code, page.headers["Retry-After"]) == (503, "2")
    assert b"Too many log-ins" in page.content
    assert not FailedLogin.objects.filter(count__gt=0).exists()
