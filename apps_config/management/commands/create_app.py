import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps_config.models import Account, App
from apps_config.serializers import AppSerializer
from apps_config.services import create_app
from common.api.serializers import read_values_as
from common.email_address import canonical_address
from common.errors import Refusal


class Command(BaseCommand):
    help = "Create an app (a tenant)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="unique name in URLs: a-z, 0-9, - and _")
        parser.add_argument("--name", help="display name (default: the slug)")
        parser.add_argument("--mode", choices=[App.LIVE, App.TEST], default=App.LIVE)
        parser.add_argument("--owner", metavar="EMAIL", help="e-mail address of the owner")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = None
        if options["owner"]:
            address = canonical_address(options["owner"].strip())
            owner = Account.objects.filter(email=address).first()
            if owner is None:
                raise CommandError(f"There is no account {options['owner']}.")
        given = {key: options[key] or options["slug"] for key in ("slug", "name", "mode")}
        try:
            app = create_app(**read_values_as(AppSerializer, given), owner=owner)
        except Refusal as refusal:
            raise CommandError(refusal.message) from refusal
        self.stdout.write(f"Created app {app.slug} ({app.mode}). To issue a key:")
        self.stdout.write(f"  {this_command()} issue_key {app.slug} --kind server")
        self.stdout.write(f"Its settings: {settings.PUBLIC_URL}/admin/, Apps, {app.name}")


def this_command() -> str:
    """Return `.venv/bin/python manage.py`: what runs commands of this installation from here."""
    python, here = Path(sys.executable), Path.cwd()
    shown = os.path.relpath(python, here) if python.is_relative_to(here) else str(python)
    return f"{shown} manage.py"
