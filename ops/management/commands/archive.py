"""`manage.py archive`: archive old deliveries to files, then delete them."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from common.sql import database_now, no_statement_timeout
from notifications.outbox.archive import archive_outdated
from notifications.outbox.retention import outdated_deliveries
from ops.command_progress import (
    Progress,
    check_option_maximums,
    exit_if_not_archived,
    exit_on_interrupt,
)


class Command(BaseCommand):
    help = (
        "Write deliveries that were finished long ago to files (JSON lines, gzip) and delete them."
        " Can be stopped and repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--to",
            default=settings.DELIVERY_ARCHIVE_DIR,
            metavar="FOLDER",
            help="where the files are written (default: DELIVERY_ARCHIVE_DIR)",
        )
        parser.add_argument(
            "--days",
            type=int,
            default=settings.DELIVERY_RETENTION_DAYS,
            help="minimum age in days (default: DELIVERY_RETENTION_DAYS)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        check_option_maximums(options, days=36_500)
        if not options["to"]:
            raise CommandError("Name a folder: --to, or DELIVERY_ARCHIVE_DIR.")
        before = database_now() - timedelta(days=options["days"])
        with exit_on_interrupt(), exit_if_not_archived(), no_statement_timeout():
            self.archive(before, Path(options["to"]))

    def archive(self, before: datetime, folder: Path) -> None:
        progress = Progress(outdated_deliveries(before).count(), self.stdout, "deliveries archived")
        for count in archive_outdated(before, folder):
            progress.add(count)
        progress.end()
