"""At most half of a node's cores compute password hashes at once, over all of its web processes.

A hash takes a fifth of a second of CPU on purpose, and strangers cause it. A slot is a file that is
locked while a hash is computed; the lock ends with the process.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from django.conf import settings

from common.errors import Unavailable

SLOTS = max(1, (os.cpu_count() or 1) // 2)
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
