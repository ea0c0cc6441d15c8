"""`manage.py recompute_all_day_events`: fix all-day events after tzdata has changed a zone."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from availability.all_day_event_recomputation import all_day_events, find_shifted, recompute_events
from common.db.sql import no_statement_timeout
from ops.command_progress import Progress, exit_on_interrupt


class Command(BaseCommand):
    help = (
        "Recompute start and end of all-day events that have not ended, by the current rules of"
        " their time zones. Can be stopped and repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        read_batches = find_shifted if options["dry_run"] else recompute_events
        shifted = 0
        with exit_on_interrupt(), no_statement_timeout():
            progress = Progress(all_day_events(now).count(), self.stdout, "events checked")
            for count, events in read_batches(now):
                shifted += len(events)
                progress.add(count)
            progress.end()
        what = "to be recomputed" if options["dry_run"] else "recomputed"
        self.stdout.write(f"{shifted:,} {what}.")
