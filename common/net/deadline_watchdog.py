"""A total deadline for network calls.

A socket's own timeout restarts with every byte received.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

TICK = 0.1  # seconds that a call may exceed its deadline


class Interruptible(Protocol):
    """`ends`: the deadline on the monotonic clock, at which the watchdog's thread calls `cut`."""

    ends: float

    def cut(self) -> None: ...


class Watchdog:
    """One thread that interrupts all attempts past their deadline."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.attempts: set[Interruptible] = set()
        self.is_wanted = threading.Event()
        self.thread: threading.Thread | None = None

    def add(self, attempt: Interruptible) -> None:
        with self.lock:
            self.attempts.add(attempt)
            if self.thread is None:
                self.thread = threading.Thread(target=self.run, name="watchdog", daemon=True)
                self.thread.start()
        self.is_wanted.set()

    def remove(self, attempt: Interruptible) -> None:
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
def interrupt_at_deadline(attempt: Interruptible) -> Iterator[None]:
    """Interrupt the attempt at its deadline."""
    watchdog = _watchdog
    watchdog.add(attempt)
    try:
        yield
    finally:
        watchdog.remove(attempt)


_watchdog = Watchdog()


def _start_afresh() -> None:
    """Replace the watchdog after a fork, which does not copy its thread."""
    global _watchdog
    _watchdog = Watchdog()


os.register_at_fork(after_in_child=_start_afresh)
