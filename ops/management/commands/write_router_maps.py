"""`manage.py write_router_maps FOLDER`: what a router in front of several cells must know."""

import os
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db.models import QuerySet

from apps_config.models import App, Credential, home_of_key
from common.db.batching import iterate_batches
from ops.management.commands.prune_apps import read_slugs

BATCH = 5000


class Command(BaseCommand):
    help = (
        "Write this cell's part of the maps of deploy/haproxy/cells.cfg: hosts-N.map and"
        " moved-N.map, where N is its HOME_NUMBER."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--apps", type=Path, help="before a split: a file with the slugs of the apps that move"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        home, host = settings.HOME_NUMBER, urlsplit(settings.PUBLIC_URL).hostname
        write_map(options["folder"] / f"hosts-{home}.map", [f"{host} home_{home}"])
        apps = App.objects.open()
        if options["apps"]:
            apps = apps.filter(slug__in=read_slugs(options["apps"]))
        lines = [f"{prefix} home_{home}" for prefix in moved_key_prefixes(apps)]
        write_map(options["folder"] / f"moved-{home}.map", lines)
        self.stdout.write(f"Home {home}: {host}, and {len(lines):,} keys of moved apps.")


def moved_key_prefixes(apps: QuerySet[App]) -> list[str]:
    """Return the prefixes of the apps' valid keys that name another home, sorted.

    Access tokens stay with the home that they name: they belong to accounts, which do not move.
    """
    keys = Credential.objects.filter(account=None, revoked_at=None, app__in=apps.values("pk")).only(
        "prefix"
    )
    return sorted(
        key.prefix
        for batch in iterate_batches(keys, BATCH)
        for key in batch
        if home_of_key(key.prefix) != settings.HOME_NUMBER
    )


def write_map(path: Path, lines: Iterable[str]) -> None:
    """Replace the file at once: a router may read it at any moment."""
    part = path.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in lines))
    os.replace(part, path)
