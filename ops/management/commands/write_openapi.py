from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from common.openapi.document import document_bytes


class Command(BaseCommand):
    help = "Write the OpenAPI document of /v2/openapi.json to a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        committed = settings.BASE_DIR / "docs" / "openapi.json"
        parser.add_argument("file", nargs="?", type=Path, default=committed)

    def handle(self, *args: Any, **options: Any) -> None:
        options["file"].write_bytes(document_bytes())
        self.stdout.write(f"Wrote {options['file']}.")
