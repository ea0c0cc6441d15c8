from typing import Any

from django.core.management.base import BaseCommand

from ops.translation_catalogues import compile_catalogue, translation_files


class Command(BaseCommand):
    help = "Compile the translations: write a django.mo beside each django.po, to be committed."

    def handle(self, *args: Any, **options: Any) -> None:
        for file in translation_files():
            compiled = file.with_suffix(".mo")
            compiled.write_bytes(compile_catalogue(file))
            self.stdout.write(f"Wrote {compiled}.")
