"""`manage.py rederive_all_day_events`: all-day events after tzdata has changed a zone's rules."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from availability.whole_days import all_day_events, derive_again, find_shifted
from notifications.patience import patient_statements
from notifications.progress import Progress, stoppable


class Command(BaseCommand):
    help = (
        "Give all-day events that have not ended the instants of their dates by the present rules"
        " of their zones. May be stopped and run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        look = find_shifted if options["dry_run"] else derive_again
        shifted = 0
        with stoppable(), patient_statements():
            progress = Progress(all_day_events(now).count(), self.stdout, "events are looked at")
            for count, events in look(now):
                shifted += len(events)
                progress.add(count)
            progress.end()
        what = "to be derived again" if options["dry_run"] else "derived again"
        self.stdout.write(f"{shifted:,} {what}.")
