from typing import Any

from django.conf import settings
from django.core.management.commands import migrate

from common.direct_and_replica_connections import store_role_parameters
from common.sql import no_statement_timeout


class Command(migrate.Command):
    """Django's command without a statement timeout: an index of a large table takes minutes.

    The lock timeout stays, because a transaction that waits for a table lock blocks all later ones.
    With a pooler, it connects directly and gives the role its time-outs.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        with no_statement_timeout():
            super().handle(*args, **options)
            if settings.DB_POOLED:
                store_role_parameters()
