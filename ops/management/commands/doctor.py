"""`manage.py doctor`: check every part of the service."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ops.doctor import FAIL, run_all_checks


class Command(BaseCommand):
    help = "Check every part of the service. Exits with 1 if a check fails."
    requires_system_checks = []  # it must also run when something is broken

    def handle(self, *args: Any, **options: Any) -> None:
        failed = 0
        for name, finding in run_all_checks():
            failed += finding.level == FAIL
            fix = f" -> {finding.fix}" if finding.fix else ""
            self.stdout.write(f"{finding.level:<4}  {name:<17} {finding.seen}{fix}")
            self.stdout.flush()
        if failed:
            raise CommandError(f"{failed} of the checks failed.")
