from typing import Any

from django.core.management.base import BaseCommand

from ops.office_texts import complete_catalogue, english_file, render_catalogue


class Command(BaseCommand):
    help = "Write the texts of the back office into its English catalogue, to be translated."

    def handle(self, *args: Any, **options: Any) -> None:
        english_file().write_bytes(render_catalogue(complete_catalogue()))
        self.stdout.write(f"Wrote {english_file()}.")
