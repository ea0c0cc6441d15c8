"""What the few statements written by hand share: they stand where the ORM's building of SQL would
cost more than the database's work (docs/benchmarks.md).

PostgreSQL has a type for UUIDs; SQLite keeps their 32 hexadecimal digits as text.
"""

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import OperationalError, connection, connections, models
from django.utils import timezone

SQLITE_PARAMETERS = 32_000  # a statement takes 32,766


def raw_id(identifier: uuid.UUID) -> Any:
    """A UUID as a parameter of a handwritten statement."""
    return identifier if connection.vendor == "postgresql" else identifier.hex


def raw_moment(moment: datetime) -> Any:
    """An aware datetime as a parameter of a handwritten statement."""
    return connection.ops.adapt_datetimefield_value(moment)


def read_id(value: Any) -> uuid.UUID:
    """A UUID column of a handwritten statement's row."""
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def database_now() -> datetime:
    """The database's clock: workers whose own clocks differ agree on what is due."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0].astimezone(UTC)


def accepts_writes() -> bool:
    """Whether the database can be written to. Raises its error where it is away.

    A session that began on a server that only read may be out of date: a new one is asked, too.
    """
    if connection.vendor != "postgresql":
        return _sqlite_accepts_writes()
    if _session_writes():
        return True
    connection.close()
    return _session_writes()


def _session_writes() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        return cursor.fetchone()[0] == "off"


def _sqlite_accepts_writes() -> bool:
    """Tries to write a number that is in the file's header anyway; busy is not read-only."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA user_version")
        (version,) = cursor.fetchone()
        cursor.execute("PRAGMA busy_timeout")
        (patience,) = cursor.fetchone()
        cursor.execute("PRAGMA busy_timeout = 1000")
        try:
            cursor.execute(f"PRAGMA user_version = {version}")
        except OperationalError as error:
            return "locked" in str(error)
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience}")
    return True


def among(identifiers: Iterable[uuid.UUID]) -> tuple[str, list[Any]]:
    """`column {sql}` with its parameters: true where the column is one of the ids.

    One parameter on PostgreSQL, so that the statement is the same for any number and stays
    prepared; SQLite knows no arrays.
    """
    ids = [raw_id(identifier) for identifier in identifiers]
    if connection.vendor == "postgresql":
        return "= ANY(%s)", [ids]
    return f"IN ({', '.join(['%s'] * len(ids))})", ids


def insert_rows(rows: Sequence[models.Model]) -> None:
    """INSERT new rows of one model in one statement, which is built once for each number of rows.

    Values go through the model's fields as in `save()`; a key that the database numbers is known
    afterwards, and no signals are sent (we have none).
    """
    if not rows:
        return
    postgresql = connection.vendor == "postgresql"
    most = SQLITE_PARAMETERS // len(rows[0]._meta.concrete_fields)
    if len(rows) > most and not postgresql:
        for first in range(0, len(rows), most):
            insert_rows(rows[first : first + most])
        return
    at_once = len(rows) > 1 and postgresql
    statement, fields = _insert_statement(rows[0].__class__, 0 if at_once else len(rows))
    database = connections[
        connection.alias
    ]  # asked for each value, a proxy would cost as much again
    columns = [
        [field.get_db_prep_save(field.pre_save(row, add=True), database) for row in rows]
        for field in fields
    ]
    values = columns if at_once else [value for row in zip(*columns, strict=True) for value in row]
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        if rows[0]._meta.auto_field:
            # Numbered in the order of the rows; told in any.
            numbers = sorted(number for (number,) in cursor.fetchall())
            for row, number in zip(rows, numbers, strict=True):
                row.pk = number
    for row in rows:
        row._state.adding = False
        row._state.db = connection.alias


@lru_cache(maxsize=256)
def _insert_statement(
    model: type[models.Model], count: int
) -> tuple[str, tuple[models.Field, ...]]:
    """For that many rows, a mark for each value; 0: for any number, an array for each column.

    With arrays the statement is the same for any number and stays prepared; SQLite has none.
    """
    meta = model._meta
    fields = tuple(field for field in meta.concrete_fields if field is not meta.auto_field)
    columns = ", ".join(f'"{field.column}"' for field in fields)
    if count:
        marks = f"({', '.join(['%s'] * len(fields))})"
        source = f"VALUES {', '.join([marks] * count)}"
    else:
        arrays = ", ".join(f"%s::{_type_of(field)}[]" for field in fields)
        source = f"SELECT * FROM unnest({arrays})"  # noqa: S608 # nosec B608
    key = meta.auto_field
    returning = f' RETURNING "{key.column}"' if key else ""
    statement = f'INSERT INTO "{meta.db_table}" ({columns}) {source}{returning}'  # nosec B608
    return statement, fields


def update_rows(rows: Sequence[models.Model], names: Sequence[str]) -> None:
    """UPDATE the named fields of rows of one model in one statement.

    Values go through the model's fields as in `save()`; no signals are sent. SQLite takes a limited
    number of parameters: there it is one statement for each 32,000 of them.
    """
    if not rows:
        return
    meta = rows[0]._meta
    fields = [meta.pk, *(meta.get_field(name) for name in names)]
    most = SQLITE_PARAMETERS // len(fields)
    if len(rows) > most and connection.vendor != "postgresql":
        for first in range(0, len(rows), most):
            update_rows(rows[first : first + most], names)
        return
    columns = [
        [field.get_db_prep_save(field.pre_save(row, add=False), connection) for row in rows]
        for field in fields
    ]
    column_names = [f'"{field.column}"' for field in fields]
    key, *changed = column_names
    if connection.vendor == "postgresql":
        arrays = ", ".join(f"%s::{_type_of(field)}[]" for field in fields)
        given = f"unnest({arrays}) AS given ({', '.join(column_names)})"
        values = columns
    else:
        marks = f"({', '.join(['%s'] * len(fields))})"
        named = (f"column{number} AS {name}" for number, name in enumerate(column_names, 1))
        rows_of_values = f"VALUES {', '.join([marks] * len(rows))}"
        given = f"(SELECT {', '.join(named)} FROM ({rows_of_values})) AS given"  # noqa: S608 # nosec B608
        values = [value for row in zip(*columns, strict=True) for value in row]
    statement = (
        f'UPDATE "{meta.db_table}" SET {", ".join(f"{one} = given.{one}" for one in changed)}'  # noqa: S608 # nosec B608
        f' FROM {given} WHERE "{meta.db_table}".{key} = given.{key}'
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _type_of(field: models.Field) -> str:
    """Without a length: a cast would cut what is too long, the column refuses it."""
    return (field.db_type(connection) or "").partition("(")[0]
