"""At most half of the cores compute password hashes at once, over all web processes with one
VAR_DIR: those of a node without containers, or of one container.

A hash takes a fifth of a second of CPU on purpose, and strangers cause it. A slot is a file that is
locked while a hash is computed; the lock ends with the process.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from common.errors import Unavailable

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def count_cores() -> float:
    """Return how many cores this process may use: by its affinity and its container's quota.

    The quota's file (cgroup v2) has `150000 100000` for one and a half cores, or `max 100000`.
    """
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = CPU_QUOTA.read_text().split()
        return min(cores, int(quota) / int(period))
    except (OSError, ValueError):  # no file, or `max`
        return cores


SLOTS = max(1, int(count_cores() / 2))
PATIENCE, PAUSE = 1.0, 0.02  # seconds
RETRY_AFTER = 2


class TooManyLogIns(Unavailable):
    """More passwords are being checked than may be at once."""

    def __init__(self) -> None:
        super().__init__(RETRY_AFTER, "Too many log-ins at the moment, try again.")


@contextmanager
def hashing_slot() -> Iterator[None]:
    """Occupy a slot inside the block. Raises TooManyLogIns if none is free within PATIENCE."""
    with _wait_for_slot():
        yield


def _wait_for_slot() -> BinaryIO:
    ends = time.monotonic() + PATIENCE
    while (slot := _take_slot()) is None:
        if time.monotonic() > ends:
            raise TooManyLogIns
        time.sleep(PAUSE)
    return slot


def _take_slot() -> BinaryIO | None:
    folder = settings.VAR_DIR / "hashing"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(SLOTS):
        # Opened anew: threads of one process exclude each other, too.
        file = open(folder / str(number), "ab")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return file
    return None
