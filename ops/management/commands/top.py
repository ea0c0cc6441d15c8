"""`manage.py top`: the apps that use the service most now."""

import contextlib
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from common.db.sql import database_now
from ops.busiest_apps import AppActivity, find_activity
from ops.command_progress import check_option_maximums

SHOWN = 10
Row = Callable[[AppActivity], tuple[object, ...]]
# Title, what an app must have, the order, the columns and their values.
TABLES: tuple[tuple[str, Callable[[AppActivity], float], tuple[str, ...], Row], ...] = (
    (
        "Requests, by time of web",
        lambda one: one.seconds,
        ("app", "seconds", "requests", "4xx", "5xx"),
        lambda one: (one.app, f"{one.seconds:.1f}", one.requests, one.refusals, one.failures),
    ),
    (
        "Requests that failed (5xx)",
        lambda one: one.failures,
        ("app", "5xx", "requests"),
        lambda one: (one.app, one.failures, one.requests),
    ),
    (
        "Attempts of deliveries, by time of workers",
        lambda one: one.attempt_seconds,
        ("app", "seconds", "attempts", "failed"),
        lambda one: (one.app, f"{one.attempt_seconds:.1f}", one.attempts, one.failed_attempts),
    ),
    (
        "Deliveries that are due now",
        lambda one: one.due,
        ("app", "due"),
        lambda one: (one.app, one.due),
    ),
)


def open_log(path: str | None) -> contextlib.AbstractContextManager[Iterable[str]]:
    if path == "-":
        return contextlib.nullcontext(sys.stdin)
    return open(path, errors="replace") if path else contextlib.nullcontext(())


class Command(BaseCommand):
    help = "Show the apps with the most requests, errors and deliveries of the last minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--minutes", type=int, default=10, help="default: 10")
        parser.add_argument(
            "--log",
            help="file with the log of web, in either format; - is standard input."
            " Without it, requests are not shown",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        check_option_maximums(options, minutes=1440)
        now = database_now()
        with open_log(options["log"]) as log:
            found = find_activity(log, now - timedelta(minutes=options["minutes"]), now)
        for title, order, columns, row in TABLES:
            busiest = sorted((one for one in found if order(one)), key=order, reverse=True)
            rows = [row(one) for one in busiest[:SHOWN]]
            if rows:
                self._write(title, columns, rows)

    def _write(self, title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
        texts = [columns, *(tuple(map(str, row)) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        self.stdout.write(f"{title}:")
        for text in texts:
            first = text[0].ljust(widths[0])
            others = (word.rjust(width) for word, width in zip(text[1:], widths[1:], strict=True))
            self.stdout.write("  ".join(["", first, *others]))
        self.stdout.write("")
