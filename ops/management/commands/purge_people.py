"""`manage.py purge_people`: the daily purge of customers' data, now and with progress."""

import re
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bookings.privacy import due_for_erasure, erase_due_bookings
from bookings.privacy.retention import BATCH
from common.db.sql import database_now, no_statement_timeout
from ops.command_progress import Progress, check_option_maximums, exit_on_interrupt

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = (
        "Erase customers' data of bookings that ended long ago; the bookings stay."
        " Can be stopped and repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than", help="minimum age, such as 365d (default: PEOPLE_RETENTION_DAYS)"
        )
        parser.add_argument("--batch", type=int, default=BATCH, help="bookings at a time")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        check_option_maximums(options, batch=1000)
        before = database_now() - timedelta(days=days_of(options["older_than"]))
        with exit_on_interrupt(), no_statement_timeout():
            total = due_for_erasure(before).count()
            if options["dry_run"]:
                self.stdout.write(f"{total:,} bookings would be erased.")
                return
            progress = Progress(total, self.stdout, "bookings erased")
            for purged in erase_due_bookings(before, batch=options["batch"]):
                if purged.bookings:
                    progress.add(purged.bookings)
            progress.end()


def days_of(text: str | None) -> int:
    """Return the days of `365d`, or of the setting. Raises CommandError without either."""
    if text is None and settings.PEOPLE_RETENTION_DAYS:
        return settings.PEOPLE_RETENTION_DAYS
    found = re.fullmatch(r"([0-9]{1,5})d", text or "")
    if found is None or not 1 <= int(found[1]) <= MAX_DAYS:
        raise CommandError(f"--older-than must be from 1d to {MAX_DAYS}d.")
    return int(found[1])
