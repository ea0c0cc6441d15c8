from typing import Any

from django.core.management.base import BaseCommand

from ops.translation_catalogues import compile_outdated


class Command(BaseCommand):
    help = "Compile the translations that have changed: write a django.mo beside each django.po."
    requires_system_checks = []  # they load all views, and with them the languages

    def handle(self, *args: Any, **options: Any) -> None:
        for compiled in compile_outdated():
            self.stdout.write(f"Wrote {compiled}.")
