import time
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from apps_config.home_check import home_problem
from common.db.connections import store_role_parameters
from common.db.sql import no_statement_timeout
from common.errors import sqlstate_of

BASELINE = "0001_release_1_0"
HOMES = ("apps_config", "0006_database_home")
OWN_APPS = ("apps_config", "availability", "bookings", "external_calendars", "notifications")
LARGE = 100_000  # rows
# lock_not_available, deadlock_detected
BUSY = ("55P03", "40P01")
MAX_ATTEMPTS = 20
PAUSE = 3  # seconds


class Command(migrate.Command):
    """Django's command for a database that is in use.

    It has no statement timeout: an index of a large table takes minutes. The lock timeout stays,
    because a transaction that waits for a table lock blocks all later ones; what fails for a lock
    or a deadlock is repeated. With a pooler, it connects directly and gives the role its time-outs.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        with no_statement_timeout():
            refuse_older_database()
            refuse_other_home()
            if options["verbosity"] and not options["check_unapplied"]:
                for line in large_tables():
                    self.stdout.write(line)
            self._migrate(*args, **options)
            refuse_other_home()
            if settings.DB_POOLED:
                store_role_parameters()

    def _migrate(self, *args: Any, **options: Any) -> None:
        """A migration is a transaction, or can be run again: go on with the one that failed."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if sqlstate_of(error) not in BUSY or attempt == MAX_ATTEMPTS:
                    raise
                self.stdout.write(f"A table is in use ({error}). Trying again in {PAUSE} seconds.")
                time.sleep(PAUSE)


def refuse_older_database() -> None:
    """Raise CommandError for a database that a version before 1.0 made."""
    applied = MigrationRecorder(connection).applied_migrations()
    if not any(app in OWN_APPS and (app, BASELINE) not in applied for app, _ in applied):
        return
    fix = "use an empty database."
    if connection.vendor == "sqlite":
        fix = f"remove the folder {settings.VAR_DIR}, or set VAR_DIR to another one."
    raise CommandError(f"A version before 1.0 made this database, and no later one reads it: {fix}")


def refuse_other_home() -> None:
    """Raise CommandError for the database of another cell. Without the table of homes: nothing."""
    applied = MigrationRecorder(connection).applied_migrations()
    if HOMES in applied and (problem := home_problem()):
        raise CommandError(problem)


def large_tables() -> Iterator[str]:
    """Yield a line for each large table that the migrations to apply may touch: PostgreSQL's
    estimate of its rows.
    """
    if connection.vendor != "postgresql":
        return
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, reltuples::bigint FROM pg_class WHERE relkind = 'r'"
            " AND relnamespace = current_schema()::regnamespace AND reltuples >= %s ORDER BY 1",
            [LARGE],
        )
        rows = dict(cursor.fetchall())
    for model in apps.get_models():
        count = rows.get(model._meta.db_table)
        if count is not None and any(_touches(migration, model) for migration, _ in plan):
            table = model._meta.db_table
            yield f"{table}: about {count:,} rows, which a migration may read or lock."


def _touches(migration: Migration, model: Any) -> bool:
    name, app = model._meta.model_name, model._meta.app_label
    return any(operation.references_model(name, app) for operation in migration.operations)
