"""Progress and interruption of long commands."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

INTERRUPTED = 130


@contextlib.contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End the command cleanly on Ctrl-C: the next run continues."""
    try:
        yield
    except KeyboardInterrupt:
        text = "Stopped. Run the command again to continue."
        raise CommandError(text, returncode=INTERRUPTED) from None


def check_option_maximums(options: dict[str, Any], **maximums: int) -> None:
    """Raise CommandError if an option is not from 1 to its maximum."""
    for name, most in maximums.items():
        if not 1 <= options[name] <= most:
            raise CommandError(f"--{name} must be from 1 to {most}.")


class Progress:
    """Prints `done/total, rate, time left`: rewrites one line on a terminal, else a line per tenth.

    `what` ends the last line: "deliveries deleted".
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
        return f"{self.done:,}/{self.total:,}, {rate:,.0f}/s, {readable_duration(left)} left"

    def end(self) -> None:
        if self.done and self.out.isatty():
            self.out.write("")
        self.out.write(f"{self.done:,} {self.what}.")


def readable_duration(seconds: float) -> str:
    """Return `45 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
