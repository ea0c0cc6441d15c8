"""`updated_at`, and up to when a reader of changes has seen all of them (api.md section 2).

Each row says when the transaction that wrote it began, by the database's clock. A transaction that
is still open may commit rows of any moment since its start, so changes are shown up to the start of
the oldest open one and held back from there on: whoever follows `updated_at` skips nothing.

SQLite writes one transaction at a time, so commits come in the order of their stamps.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models
from django.db.models import Max, QuerySet
from django.utils import timezone

from scheduling.api.errors import Unavailable

# An open transaction that is older holds changes back for too long.
MAX_TRANSACTION_AGE = timedelta(seconds=60)


def transaction_start() -> datetime:
    """When the transaction under way began, by the database's clock; on SQLite now, under the lock
    that every write transaction takes when it begins.
    """
    return start_on_postgresql() if connection.vendor == "postgresql" else timezone.now()


def start_on_postgresql() -> datetime:
    """Asked once in a transaction: the answer waits among the callbacks of its commit, which a
    rollback throws away."""
    for entry in connection.run_on_commit:
        if isinstance(entry[1], _Start):
            return entry[1].moment
    start = _Start(_read_start())
    if connection.in_atomic_block:
        connection.on_commit(start)
    return start.moment


class _Start:
    """The start of a transaction, kept until its end."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def __call__(self) -> None:
        """Nothing is to be done at the commit."""


def _read_start() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT transaction_timestamp()")
        return cursor.fetchone()[0].astimezone(UTC)


class UpdatedAtField(models.DateTimeField):
    """`auto_now` by the start of the transaction; for migrations it is a DateTimeField."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "auto_now": True})

    def pre_save(self, row: models.Model, add: bool) -> datetime:
        moment = transaction_start()
        setattr(row, self.attname, moment)
        return moment

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs


# What has begun at the first statement is registered by the second: the pause is for a process that
# the machine has put aside in between.
_NOW = "SELECT clock_timestamp(), pg_sleep(0.01)"
_OPEN = """
FROM pg_stat_activity
WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()
AND backend_type = 'client backend'
"""
_OLDEST = "SELECT min(xact_start), pg_is_in_recovery()" + _OPEN
_AGE = "SELECT clock_timestamp() - min(xact_start)" + _OPEN


def complete_until() -> datetime:
    """Before this moment no further row will appear: PostgreSQL's part, read before the rows.

    Raises Unavailable on a replica, which does not know the open transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NOW)
        now = cursor.fetchone()[0]
        cursor.execute(_OLDEST)
        oldest, is_replica = cursor.fetchone()
    if is_replica:
        raise Unavailable(message="Changes are listed by the primary database only.")
    return min(now, oldest or now).astimezone(UTC)


def changed_rows(rows: QuerySet, since: datetime) -> tuple[QuerySet, datetime]:
    """The rows changed at `since` or later that can be shown, and until when they are complete."""
    rows = rows.filter(updated_at__gte=since)
    if connection.vendor == "postgresql":
        until = complete_until()
        return rows.filter(updated_at__lt=until), until
    newest = rows.order_by().aggregate(newest=Max("updated_at"))["newest"]
    return rows, newest or since


def oldest_transaction_age() -> timedelta:
    """Of the service's open transactions; of this one nothing is said."""
    if connection.vendor != "postgresql":
        return timedelta(0)
    with connection.cursor() as cursor:
        cursor.execute(_AGE)
        return max(cursor.fetchone()[0] or timedelta(0), timedelta(0))
