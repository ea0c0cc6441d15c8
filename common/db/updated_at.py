"""The column `updated_at`, and the instant up to which its changes are complete (api.md section 2).

A row is stamped with the start of the transaction that wrote it, by the database's clock. An open
transaction may commit rows stamped with any instant since its start. So changes are listed only up
to the start of the oldest open transaction, and clients that follow `updated_at` miss none.

SQLite writes one transaction at a time, so commits are in the order of their stamps.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.db import connection, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from common.db.sql import datetime_param
from common.errors import Unavailable

Row = TypeVar("Row", bound=models.Model)

# An older open transaction delays the listing of changes for too long.
MAX_TRANSACTION_AGE = timedelta(seconds=60)


def transaction_start() -> datetime:
    """Return the start of the current transaction, by the database's clock.

    On SQLite the present instant: the lock of write transactions keeps it in order.
    """
    return (
        transaction_start_on_postgresql() if connection.vendor == "postgresql" else timezone.now()
    )


def transaction_start_on_postgresql() -> datetime:
    """Read the start once per transaction; a rollback discards the cache, an on-commit callback."""
    for entry in connection.run_on_commit:
        if isinstance(entry[1], _Start):
            return entry[1].moment
    moment = _read_start()
    remember_start(moment)
    return moment


def remember_start(moment: datetime) -> None:
    """Save the query of `transaction_start`: a statement of the transaction has read it already."""
    if connection.in_atomic_block:
        connection.on_commit(_Start(moment.astimezone(UTC)))


class _Start:
    """The cached start of a transaction, registered as a callback of its commit."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def __call__(self) -> None:
        """Do nothing at the commit."""


def _read_start() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT transaction_timestamp()")
        return cursor.fetchone()[0].astimezone(UTC)


def transaction_start_sql() -> tuple[str, list[Any]]:
    """Return SQL for the start of the transaction, with its parameters; saves a query."""
    if connection.vendor == "postgresql":
        return transaction_start_sql_on_postgresql()
    return "%s", [datetime_param(timezone.now())]


def transaction_start_sql_on_postgresql() -> tuple[str, list[Any]]:
    return "transaction_timestamp()", []


class TransactionStart(models.Expression):
    """The start of the transaction as an expression; saves a query."""

    output_field = models.DateTimeField()

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        return transaction_start_sql()


class StampedQuerySet(models.QuerySet[Row]):
    """A query set whose updates set `updated_at`."""

    def update(self, **values: Any) -> int:
        """Update rows and stamp; without values only the stamp, after changes of related rows."""
        with transaction.atomic(savepoint=False):
            return super().update(updated_at=TransactionStart(), **values)


class UpdatedAtField(models.DateTimeField):
    """Like `auto_now`, with the start of the transaction; a DateTimeField in migrations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "auto_now": True})

    def pre_save(self, row: models.Model, add: bool) -> datetime:
        moment = transaction_start()
        setattr(row, self.attname, moment)
        return moment

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs


# The second statement sees every transaction that started before the first one. The pause is for a
# process that the operating system suspended between its start and its registration. A backup by
# pg_dump is a long transaction, but writes nothing.
_NOW = "SELECT clock_timestamp(), pg_sleep(0.01)"
_OPEN = """
FROM pg_stat_activity
WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()
AND backend_type = 'client backend' AND application_name IS DISTINCT FROM 'pg_dump'
"""
_OLDEST = "SELECT min(xact_start), pg_is_in_recovery()" + _OPEN
_AGE = "SELECT clock_timestamp() - min(xact_start)" + _OPEN


def complete_until() -> datetime:
    """Return the instant before which no further change can appear. Call it before reading rows.

    PostgreSQL only. Raises Unavailable on a replica, which does not know the open transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NOW)
        now = cursor.fetchone()[0]
        cursor.execute(_OLDEST)
        oldest, is_replica = cursor.fetchone()
    if is_replica:
        raise Unavailable(message="Changes are listed by the primary database only.")
    return min(now, oldest or now).astimezone(UTC)


def all_written_until() -> datetime:
    """Return an instant before which no further change can appear to a transaction that begins now.

    On SQLite the present one: a transaction that writes takes its stamps under the lock.
    """
    return complete_until() if connection.vendor == "postgresql" else timezone.now()


def changed_rows(rows: QuerySet[Row], since: datetime) -> tuple[QuerySet[Row], datetime]:
    """Return the rows changed since `since`, and the instant up to which they are complete."""
    rows = rows.filter(updated_at__gte=since)
    if connection.vendor == "postgresql":
        until = complete_until()
        return rows.filter(updated_at__lt=until), until
    newest = rows.order_by().aggregate(newest=Max("updated_at"))["newest"]
    return rows, newest or since


def oldest_transaction_age() -> timedelta:
    """Return the age of the service's oldest open transaction, except this one; 0 on SQLite."""
    if connection.vendor != "postgresql":
        return timedelta(0)
    with connection.cursor() as cursor:
        cursor.execute(_AGE)
        return max(cursor.fetchone()[0] or timedelta(0), timedelta(0))
