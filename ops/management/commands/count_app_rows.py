"""`manage.py count_app_rows FILE`: to compare two databases, app by app."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from apps_config.models import App
from common.db.sql import no_statement_timeout
from ops.app_pruning import count_rows
from ops.management.commands.prune_apps import read_slugs


class Command(BaseCommand):
    help = "Print a line for each app and table with rows of the app: slug, table, rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("apps", type=Path, help="a file with the slugs of the apps")

    def handle(self, *args: Any, **options: Any) -> None:
        slugs = read_slugs(options["apps"])
        with no_statement_timeout():
            for app in App.objects.filter(slug__in=slugs).order_by("slug"):
                for table, count in count_rows(app).items():
                    self.stdout.write(f"{app.slug}\t{table}\t{count}")
