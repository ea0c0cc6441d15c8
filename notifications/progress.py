"""How far a long command is, told to who waits for it."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

INTERRUPTED = 130


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C ends a command that goes on where it was."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError("Stopped; run it again to go on.", returncode=INTERRUPTED) from None


def check_bounds(options: dict[str, Any], **bounds: int) -> None:
    """Raises CommandError where one is not from 1 to its bound."""
    for name, most in bounds.items():
        if not 1 <= options[name] <= most:
            raise CommandError(f"--{name} must be from 1 to {most}.")


class Progress:
    """`done/total, rate, time left`: one line that is written over, or one for every tenth.

    `what` ends the last line: "deliveries are removed".
    """

    def __init__(self, total: int, out: Any, what: str) -> None:
        self.total, self.out, self.what = total, out, what
        self.done = self.tenths = 0
        self.began = time.monotonic()

    def add(self, count: int) -> None:
        self.done += count
        self.total = max(self.total, self.done)
        if self.out.isatty():
            self.out.write(f"\r{self.line()}\x1b[K", ending="")
            self.out.flush()
            return
        tenths = self.done * 10 // self.total
        if tenths > self.tenths:
            self.tenths = tenths
            self.out.write(self.line())
            self.out.flush()

    def line(self) -> str:
        rate = self.done / max(time.monotonic() - self.began, 0.001)
        left = (self.total - self.done) / rate
        return f"{self.done:,}/{self.total:,}, {rate:,.0f}/s, {readable(left)} left"

    def end(self) -> None:
        if self.done and self.out.isatty():
            self.out.write("")
        self.out.write(f"{self.done:,} {self.what}.")


def readable(seconds: float) -> str:
    """`45 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
