"""`manage.py reencrypt_secrets`: all secrets at rest under the first of ENCRYPTION_KEYS."""

from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from notifications.patience import patient_statements
from notifications.progress import Progress, check_bounds, stoppable
from scheduling.api.reencryption import (
    BATCH,
    CURRENT,
    OLDER,
    UNREADABLE,
    UNUSED,
    count_secrets,
    look_at_secrets,
    reencrypt_secrets,
)


class Command(BaseCommand):
    help = (
        "Encrypt every stored secret with the first of ENCRYPTION_KEYS, so that the others can be"
        " dropped. May be stopped and run again. Ends with 1 where no key opens a secret."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--batch", type=int, default=BATCH, help="secrets read at a time")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        check_bounds(options, batch=10_000)
        look = look_at_secrets if options["dry_run"] else reencrypt_secrets
        counts: Counter[str] = Counter()
        with stoppable(), patient_statements():
            progress = Progress(count_secrets(), self.stdout, "secrets are looked at")
            for found in look(batch=options["batch"]):
                counts.update(secret.state for secret in found)
                for secret in found:
                    if secret.state == UNREADABLE:
                        self.stdout.write(f"{secret} can't be read.")
                progress.add(len(found))
            progress.end()
        self.tell(counts, "to be rewritten" if options["dry_run"] else "rewritten")
        if counts[UNREADABLE]:
            raise CommandError(f"No key of ENCRYPTION_KEYS opens {counts[UNREADABLE]:,} secrets.")

    def tell(self, counts: Counter[str], older: str) -> None:
        self.stdout.write(
            f"{counts[OLDER]:,} {older}, {counts[CURRENT]:,} under the first key already,"
            f" {counts[UNREADABLE]:,} that no key opens."
        )
        if counts[UNUSED]:
            self.stdout.write(
                f"{counts[UNUSED]:,} more can't be read, of what was deleted or has run out:"
                " nobody reads them."
            )
