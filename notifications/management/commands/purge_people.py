"""`manage.py purge_people`: what beat has done once a day, now and with a look at it."""

import re
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bookings.people import due, purge
from bookings.people.retention import BATCH
from notifications.patience import patient_statements
from notifications.progress import Progress, check_bounds, stoppable
from scheduling.api.sql import database_now

MOST_DAYS = 36_500


class Command(BaseCommand):
    help = (
        "Empty people's data of bookings that ended long ago; the bookings stay."
        " May be stopped and run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than", help="how long ago, such as 365d (default: PEOPLE_RETENTION_DAYS)"
        )
        parser.add_argument("--batch", type=int, default=BATCH, help="bookings at a time")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        check_bounds(options, batch=1000)
        before = database_now() - timedelta(days=days_of(options["older_than"]))
        with stoppable(), patient_statements():
            total = due(before).count()
            if options["dry_run"]:
                self.stdout.write(f"{total:,} bookings would be emptied.")
                return
            progress = Progress(total, self.stdout, "bookings are emptied")
            for purged in purge(before, batch=options["batch"]):
                if purged.bookings:
                    progress.add(purged.bookings)
            progress.end()


def days_of(text: str | None) -> int:
    """The days of `365d`, or of the setting. Raises CommandError where neither says any."""
    if text is None and settings.PEOPLE_RETENTION_DAYS:
        return settings.PEOPLE_RETENTION_DAYS
    found = re.fullmatch(r"([0-9]{1,5})d", text or "")
    if found is None or not 1 <= int(found[1]) <= MOST_DAYS:
        raise CommandError(f"--older-than must be from 1d to {MOST_DAYS}d.")
    return int(found[1])
