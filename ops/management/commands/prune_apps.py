"""`manage.py prune_apps`: after a split, delete the apps that the other cell has."""

from argparse import ArgumentParser
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet

from apps_config.models import App
from common.db.sql import no_statement_timeout
from ops.app_pruning import close_apps, delete_apps
from ops.command_progress import check_option_maximums, exit_on_interrupt

BATCH = 1000


class Command(BaseCommand):
    help = (
        "Delete apps with all their rows, for ever, in batches: those that another cell has after"
        " a split. Can be stopped and repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--delete", type=Path, help="a file with the slugs of these apps")
        which.add_argument("--keep", type=Path, help="a file with the slugs of all other apps")
        parser.add_argument(
            "--home", type=int, required=True, help="this cell's HOME_NUMBER, to be sure"
        )
        parser.add_argument("--batch", type=int, default=BATCH, help="rows at a time")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        check_option_maximums(options, batch=10_000)
        if options["home"] != settings.HOME_NUMBER:
            raise CommandError(f"This is home {settings.HOME_NUMBER}, not {options['home']}.")
        gone = apps_to_delete(options["delete"], options["keep"])
        kept = App.objects.exclude(pk__in=gone.values("pk")).count()
        self.stdout.write(f"{gone.count():,} apps to delete, {kept:,} to keep.")
        if options["dry_run"]:
            return
        with exit_on_interrupt(), no_statement_timeout():
            close_apps(gone)
            batches = delete_apps(gone, batch=options["batch"])
            for table, deleted in groupby(batches, key=itemgetter(0)):
                self.stdout.write(f"{table}: {sum(count for _, count in deleted):,} rows deleted")
                self.stdout.flush()


def apps_to_delete(delete: Path | None, keep: Path | None) -> QuerySet[App]:
    """Return the apps of the file `delete`, or those that are not in the file `keep`.

    Apps to delete may be gone already. Raises CommandError if an app to keep is not there, or none
    is named.
    """
    slugs = read_slugs(delete or keep)
    if delete:
        return App.objects.filter(slug__in=slugs)
    there = set(App.objects.filter(slug__in=slugs).values_list("slug", flat=True))
    if missing := sorted(slugs - there):
        raise CommandError(f"There is no app {missing[0]}.")
    return App.objects.exclude(slug__in=slugs)


def read_slugs(path: Path | None) -> set[str]:
    """Return the words of the file. Raises CommandError if it can't be read or is empty."""
    try:
        slugs = set(path.read_text("utf-8").split()) if path else set()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} can't be read: {error}") from None
    if not slugs:
        raise CommandError(f"{path} names no app.")
    return slugs
