"""`manage.py verify_deliveries`: is every delivery that was ever planned accounted for?"""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from notifications.conservation import PLANNED, PURGED, RULES, UNPLANNED, Rule, count_all
from notifications.patience import patient_statements
from scheduling.api.instants import format_instant
from scheduling.api.sql import database_now

MOST_SHOWN = 20  # of one fault


class Command(BaseCommand):
    help = "Count what was planned against what is there. Ends with 1 where something is amiss."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--overdue",
            type=int,
            default=600,
            metavar="SECONDS",
            help="how late one may be (default 600, 0 = not checked)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 <= options["overdue"] <= 10**9:
            raise CommandError("--overdue must be from 0 to 1000000000.")
        overdue = timedelta(seconds=options["overdue"])
        with patient_statements():
            missing = self.tell_counts()
            now = database_now()
            faults = sum(self.tell_faults(rule, now, overdue) for rule in RULES)
        if missing or faults:
            raise CommandError(f"Not in order: {faults} faults, {missing} unaccounted for.")
        self.stdout.write("All are accounted for.")

    def tell_counts(self) -> int:
        """Print them; returns by how many the sum is wrong."""
        counts = count_all()
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

    def tell_faults(self, rule: Rule, now: datetime, overdue: timedelta) -> int:
        """Print the first, count all."""
        count = 0
        rows = rule.broken(now, overdue).values_list(*rule.columns)
        for row in rows.iterator(chunk_size=2000):
            count += 1
            if count <= MOST_SHOWN:
                pairs = zip(rule.columns, map(shown, row), strict=True)
                told = ", ".join(f"{name} {value}" for name, value in pairs)
                self.stdout.write(f"{rule.fault}: {told}")
        if count > MOST_SHOWN:
            self.stdout.write(f"{rule.fault}: and {count - MOST_SHOWN:,} more")
        return count


def shown(value: Any) -> str:
    return format_instant(value) if isinstance(value, datetime) else str(value)
