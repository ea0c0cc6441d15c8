"""`manage.py purge_deliveries`: what beat has done once a day, now and with a look at it."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from notifications.patience import patient_statements
from notifications.progress import Progress, check_bounds, stoppable
from notifications.retention import BATCH, outdated, purge
from scheduling.api.sql import database_now


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
        check_bounds(options, days=36_500, batch=10_000)
        before = database_now() - timedelta(days=options["days"])
        with stoppable(), patient_statements():
            self.purge(before, options["batch"])

    def purge(self, before: Any, batch: int) -> None:
        progress = Progress(outdated(before).count(), self.stdout, "deliveries are removed")
        for count in purge(before, batch=batch):
            progress.add(count)
        progress.end()
