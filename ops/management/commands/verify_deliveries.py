"""`manage.py verify_deliveries`: check that every planned delivery is accounted for."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.instants import format_instant
from common.sql import database_now, no_statement_timeout
from ops.delivery_audit import AUDIT_RULES, PLANNED, PURGED, UNPLANNED, AuditRule, count_deliveries

MAX_SHOWN = 20  # per rule


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

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 <= options["overdue"] <= 10**9:
            raise CommandError("--overdue must be from 0 to 1000000000.")
        overdue = timedelta(seconds=options["overdue"])
        with no_statement_timeout():
            missing = self.tell_counts()
            now = database_now()
            faults = sum(self.print_faults(rule, now, overdue) for rule in AUDIT_RULES)
        if missing or faults:
            raise CommandError(f"Faults: {faults}. Missing deliveries: {missing}.")
        self.stdout.write("All deliveries are accounted for.")

    def tell_counts(self) -> int:
        """Print the counts; return by how many the sum differs."""
        counts = count_deliveries()
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

    def print_faults(self, rule: AuditRule, now: datetime, overdue_after: timedelta) -> int:
        """Print the first MAX_SHOWN faults; return the number of all."""
        count = 0
        rows = rule.broken(now, overdue_after).values_list(*rule.columns)
        for row in rows.iterator(chunk_size=2000):
            count += 1
            if count <= MAX_SHOWN:
                pairs = zip(rule.columns, map(printed_value, row), strict=True)
                told = ", ".join(f"{name} {value}" for name, value in pairs)
                self.stdout.write(f"{rule.fault}: {told}")
        if count > MAX_SHOWN:
            self.stdout.write(f"{rule.fault}: and {count - MAX_SHOWN:,} more")
        return count


def printed_value(value: Any) -> str:
    return format_instant(value) if isinstance(value, datetime) else str(value)
