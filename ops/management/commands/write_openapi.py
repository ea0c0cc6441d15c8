import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from common.openapi.document import document_bytes
from ops.typescript_types import typescript_files

COMMITTED = settings.BASE_DIR / "docs" / "openapi.json"
TYPESCRIPT = settings.BASE_DIR / "sdk" / "typescript" / "src" / "generated"
PYTHON = settings.BASE_DIR / "scripts" / "write_python_client.py"


class Command(BaseCommand):
    help = (
        "Write the OpenAPI document of /v2/openapi.json to a file. Without a file: to docs/, and"
        " the types of the client libraries."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, default=COMMITTED)

    def handle(self, *args: Any, **options: Any) -> None:
        options["file"].write_bytes(document_bytes())
        self.stdout.write(f"Wrote {options['file']}.")
        if options["file"] == COMMITTED:
            for name, text in typescript_files(json.loads(document_bytes())).items():
                (TYPESCRIPT / name).write_text(text)
            self.stdout.write(f"Wrote {TYPESCRIPT}.")
            subprocess.run([sys.executable, PYTHON], check=True)
