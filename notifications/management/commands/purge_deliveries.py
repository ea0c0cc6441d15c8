"""`manage.py purge_deliveries`: what beat has done once a day, now and with a look at it."""

import time
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from notifications.patience import patient_statements
from notifications.queue import database_now
from notifications.retention import BATCH, outdated, purge

INTERRUPTED = 130


class Command(BaseCommand):
    help = "Remove deliveries that were finished long ago. May be stopped and run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            default=settings.DELIVERY_RETENTION_DAYS,
            help="how old they may become (default: DELIVERY_RETENTION_DAYS)",
        )
        parser.add_argument("--batch", type=int, default=BATCH, help="how many at a time")

    def handle(self, *args: Any, **options: Any) -> None:
        for name, most in (("days", 36_500), ("batch", 10_000)):
            if not 1 <= options[name] <= most:
                raise CommandError(f"--{name} must be from 1 to {most}.")
        before = database_now() - timedelta(days=options["days"])
        try:
            with patient_statements():
                self.purge(before, options["batch"])
        except KeyboardInterrupt:
            raise CommandError("Stopped; run it again to go on.", returncode=INTERRUPTED) from None

    def purge(self, before: Any, batch: int) -> None:
        progress = Progress(outdated(before).count(), self.stdout)
        for count in purge(before, batch=batch):
            progress.add(count)
        progress.end()


class Progress:
    """`done/total, rate, time left`: one line that is written over, or one for every tenth."""

    def __init__(self, total: int, out: Any) -> None:
        self.total, self.out = total, out
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
        self.out.write(f"{self.done:,} deliveries are removed.")


def readable(seconds: float) -> str:
    """`45 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
