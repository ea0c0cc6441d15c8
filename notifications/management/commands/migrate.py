from typing import Any

from django.core.management.commands import migrate

from notifications.patience import patient_statements


class Command(migrate.Command):
    """Django's, without a statement time-out: an index of a large table takes minutes.

    The lock time-out stays, because whoever waits for a table's lock makes all others wait too.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        with patient_statements():
            super().handle(*args, **options)
