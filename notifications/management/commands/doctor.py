"""`manage.py doctor`: is everything there, and if not, what is to be done?"""

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError

from notifications.doctor import FAIL, find_all


class Command(BaseCommand):
    help = "Look at every part that the service needs. Ends with 1 where one fails."
    requires_system_checks: ClassVar[list[str]] = []  # a look at what is broken must not break

    def handle(self, *args: Any, **options: Any) -> None:
        failed = 0
        for name, finding in find_all():
            failed += finding.level == FAIL
            fix = f" -> {finding.fix}" if finding.fix else ""
            self.stdout.write(f"{finding.level:<4}  {name:<17} {finding.seen}{fix}")
            self.stdout.flush()
        if failed:
            raise CommandError(f"{failed} of the checks failed.")
