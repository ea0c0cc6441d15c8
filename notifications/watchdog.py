"""A total deadline for what goes over the network.

A socket's own timeout begins anew with every byte that drips in.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

TICK = 0.1  # seconds by which a call may outlive its deadline


class Attempt(Protocol):
    """ends: by the monotonic clock, when `cut` is called from the watchdog's thread."""

    ends: float

    def cut(self) -> None: ...


class Watchdog:
    """One thread that cuts off every attempt whose time is over."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.attempts: set[Attempt] = set()
        self.is_wanted = threading.Event()
        self.thread: threading.Thread | None = None

    def add(self, attempt: Attempt) -> None:
        with self.lock:
            self.attempts.add(attempt)
            if self.thread is None:
                self.thread = threading.Thread(target=self.run, name="watchdog", daemon=True)
                self.thread.start()
        self.is_wanted.set()

    def remove(self, attempt: Attempt) -> None:
        with self.lock:
            self.attempts.discard(attempt)

    def run(self) -> None:
        while self.is_wanted.wait():
            time.sleep(TICK)
            now = time.monotonic()
            with self.lock:
                late = [attempt for attempt in self.attempts if attempt.ends <= now]
                if not self.attempts:
                    self.is_wanted.clear()
            for attempt in late:
                attempt.cut()


@contextmanager
def watched(attempt: Attempt) -> Iterator[None]:
    """Have the attempt cut when its time is over."""
    watchdog = _watchdog
    watchdog.add(attempt)
    try:
        yield
    finally:
        watchdog.remove(attempt)


_watchdog = Watchdog()


def _start_afresh() -> None:
    """After a fork: the thread stayed behind."""
    global _watchdog
    _watchdog = Watchdog()


os.register_at_fork(after_in_child=_start_afresh)
