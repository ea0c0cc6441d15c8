"""`manage.py purge_deliveries`: the daily purge of deliveries, now and with progress."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from common.db.sql import database_now, no_statement_timeout
from notifications.outbox.retention import BATCH, delete_outdated, outdated_deliveries
from ops.command_progress import Progress, check_option_maximums, exit_on_interrupt


class Command(BaseCommand):
    help = "Delete deliveries that were finished long ago. Can be stopped and repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            default=settings.DELIVERY_RETENTION_DAYS,
            help="minimum age in days (default: DELIVERY_RETENTION_DAYS)",
        )
        parser.add_argument("--batch", type=int, default=BATCH, help="how many at a time")

    def handle(self, *args: Any, **options: Any) -> None:
        check_option_maximums(options, days=36_500, batch=10_000)
        before = database_now() - timedelta(days=options["days"])
        with exit_on_interrupt(), no_statement_timeout():
            self.purge(before, options["batch"])

    def purge(self, before: datetime, batch: int) -> None:
        progress = Progress(outdated_deliveries(before).count(), self.stdout, "deliveries deleted")
        for count in delete_outdated(before, batch=batch):
            progress.add(count)
        progress.end()
