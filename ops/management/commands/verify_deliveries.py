"""`manage.py verify_deliveries`: check that every planned delivery is accounted for."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.errors import ignore_database_outage
from common.instants import format_instant
from common.sql import database_now, no_statement_timeout
from notifications.models import TaskRun
from ops.delivery_audit import (
    AUDIT_RULES,
    EVER,
    PLANNED,
    PURGED,
    UNPLANNED,
    AuditRule,
    Span,
    count_deliveries,
)

MAX_SHOWN = 20  # per rule
AUDIT = "verify_deliveries"
# Rows with earlier times may have been committed after the last audit read them.
OVERLAP = timedelta(hours=1)


class Command(BaseCommand):
    help = "Compare planned and stored deliveries. Exits with 1 if they differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--overdue",
            type=int,
            default=600,
            metavar="SECONDS",
            help="maximum delay in seconds (default 600, 0 = not checked)",
        )
        parser.add_argument(
            "--all",
            action="store_true",
            help="read all rows, not only those since the last run without faults",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 <= options["overdue"] <= 10**9:
            raise CommandError("--overdue must be from 0 to 1000000000.")
        overdue = timedelta(seconds=options["overdue"])
        since = EVER if options["all"] else last_audit()
        with no_statement_timeout():
            span = Span(since, database_now(), overdue)
            missing = self.print_counts(since)
            faults = sum(self.print_faults(rule, span) for rule in AUDIT_RULES)
        if missing or faults:
            raise CommandError(f"Faults: {faults}. Missing deliveries: {missing}.")
        with ignore_database_outage():  # on a replica, the next audit reads more rows
            TaskRun.objects.update_or_create(task=AUDIT, defaults={"succeeded_at": span.now})
        self.stdout.write("All deliveries are accounted for.")

    def print_counts(self, since: datetime) -> int:
        """Print the counts; return by how many the sum differs."""
        if since != EVER:
            self.stdout.write(f"Changes since {format_instant(since)}:")
        counts = count_deliveries(since)
        planned, unplanned = counts.pop(PLANNED), counts.pop(UNPLANNED)
        purged = counts.pop(PURGED)
        for state, count in counts.items():
            self.stdout.write(f"{state:<10} {count:>12,}")
        self.stdout.write(f"{PURGED:<10} {purged:>12,}")
        found, created = sum(counts.values()) + purged, planned + unplanned
        self.stdout.write(
            f"{'sum':<10} {found:>12,} of {created:,} created"
            f" ({planned:,} by changes, {unplanned:,} others)"
        )
        return abs(found - created)

    def print_faults(self, rule: AuditRule, span: Span) -> int:
        """Print the first MAX_SHOWN faults; return the number of all."""
        count = 0
        rows = rule.broken(span).values_list(*rule.columns)
        for row in rows.iterator(chunk_size=2000):
            count += 1
            if count <= MAX_SHOWN:
                pairs = zip(rule.columns, map(printed_value, row), strict=True)
                told = ", ".join(f"{name} {value}" for name, value in pairs)
                self.stdout.write(f"{rule.fault}: {told}")
        if count > MAX_SHOWN:
            self.stdout.write(f"{rule.fault}: and {count - MAX_SHOWN:,} more")
        return count


def last_audit() -> datetime:
    """Return when the last audit without faults began, less the overlap; EVER: there was none."""
    runs = TaskRun.objects.filter(task=AUDIT).values_list("succeeded_at", flat=True)
    ended = runs.first()
    return ended - OVERLAP if ended else EVER


def printed_value(value: Any) -> str:
    return format_instant(value) if isinstance(value, datetime) else str(value)
