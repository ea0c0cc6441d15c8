"""`manage.py reencrypt_secrets`: encrypt all secrets with the first of ENCRYPTION_KEYS."""

from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.db.sql import no_statement_timeout
from ops.command_progress import Progress, check_option_maximums, exit_on_interrupt
from ops.reencryption import (
    BATCH,
    CURRENT,
    OLDER,
    UNREADABLE,
    UNUSED,
    count_secrets,
    reencrypt_secrets,
    scan_secrets,
)


class Command(BaseCommand):
    help = (
        "Encrypt every stored secret with the first of ENCRYPTION_KEYS. Can be stopped and"
        " repeated. Exits with 1 if no key decrypts a secret."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--batch", type=int, default=BATCH, help="secrets read at a time")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        check_option_maximums(options, batch=10_000)
        scan = scan_secrets if options["dry_run"] else reencrypt_secrets
        counts: Counter[str] = Counter()
        with exit_on_interrupt(), no_statement_timeout():
            progress = Progress(count_secrets(), self.stdout, "secrets checked")
            for found in scan(batch=options["batch"]):
                counts.update(secret.state for secret in found)
                for secret in found:
                    if secret.state == UNREADABLE:
                        self.stdout.write(f"{secret} can't be decrypted.")
                progress.add(len(found))
            progress.end()
        self.print_counts(counts, "to be re-encrypted" if options["dry_run"] else "re-encrypted")
        if counts[UNREADABLE]:
            count = f"{counts[UNREADABLE]:,}"
            raise CommandError(f"No key of ENCRYPTION_KEYS decrypts {count} secrets.")

    def print_counts(self, counts: Counter[str], older: str) -> None:
        self.stdout.write(
            f"{counts[OLDER]:,} {older}, {counts[CURRENT]:,} use the first key already,"
            f" {counts[UNREADABLE]:,} can't be decrypted."
        )
        if counts[UNUSED]:
            self.stdout.write(
                f"{counts[UNUSED]:,} others can't be decrypted, but are deleted or expired and not"
                " used."
            )
