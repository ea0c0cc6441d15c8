"""`manage.py migrate` on databases in use, and on those of versions before 1.0."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, migrations, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import CaptureQueriesContext
from psycopg.errors import DeadlockDetected, LockNotAvailable

from common.db.migration_operations import RunSQLFile
from ops.management.commands import migrate

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def output_of(*args: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("migrate", *args, stdout=out, no_color=True, **options)
    return out.getvalue()


# --- Databases of versions before 1.0 -------------------------------------------------------------
@pytest.fixture
def older_database() -> None:
    MigrationRecorder(connection).record_unapplied("bookings", migrate.BASELINE)
    MigrationRecorder(connection).record_applied("bookings", "0001_initial")


def test_migrate_refuses_an_older_database(older_database: None, settings: Any) -> None:
    advice = {
        "postgresql": "use an empty database.",
        "sqlite": f"remove the folder {settings.VAR_DIR}, or set VAR_DIR to another one.",
    }

    with pytest.raises(CommandError) as refused:
        output_of()

    assert str(refused.value) == (
        "A version before 1.0 made this database, and no later one reads it: "
        + advice[connection.vendor]
    )


def test_migrate_accepts_later_migrations() -> None:
    """Of a release that is being installed beside this one."""
    MigrationRecorder(connection).record_applied("bookings", "0099_next_release")

    assert "No migrations to apply." in output_of()


# --- Tables in use --------------------------------------------------------------------------------
class Busy:
    """Fails so many times like a statement that waits too long for a lock, then migrates."""

    def __init__(self, *causes: type[Exception]) -> None:
        self.causes = list(causes)
        self.calls = 0

    def __call__(self, *args: Any, **options: Any) -> None:
        self.calls += 1
        if self.causes:
            raise OperationalError("canceling statement") from self.causes.pop(0)()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(migrate.time, "sleep", found.append)
    return found


@pytest.mark.postgresql
def test_migrate_repeats_what_failed_for_a_lock_or_a_deadlock(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    busy = Busy(LockNotAvailable, DeadlockDetected)
    monkeypatch.setattr(migrate.migrate.Command, "handle", busy)

    said = output_of()

    assert (busy.calls, pauses) == (3, [migrate.PAUSE] * 2)
    assert said == "A table is in use (canceling statement). Trying again in 3 seconds.\n" * 2


@pytest.mark.postgresql
def test_migrate_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    busy = Busy(*[LockNotAvailable] * 99)
    monkeypatch.setattr(migrate.migrate.Command, "handle", busy)

    with pytest.raises(OperationalError):
        output_of()

    assert (busy.calls, len(pauses)) == (migrate.MAX_ATTEMPTS, migrate.MAX_ATTEMPTS - 1)


@pytest.mark.postgresql
def test_migrate_names_the_large_tables_that_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    class Migration(migrations.Migration):
        operations = [migrations.AddField("booking", "colour", models.TextField(default=""))]

    plan = [(Migration("0099_colour", "bookings"), False)]
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: plan)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = 1234567"
            " WHERE relname IN ('bookings_booking', 'bookings_customer')"
        )

    assert list(migrate.large_tables()) == [
        "bookings_booking: about 1,234,567 rows, which a migration may read or lock."
    ]


# --- SQL files ------------------------------------------------------------------------------------
SQL = """
CREATE TABLE first (id integer);
-- A trigger has semicolons inside.
CREATE TRIGGER copies AFTER INSERT ON first
BEGIN
    INSERT INTO second VALUES (NEW.id);
    INSERT INTO second VALUES (NEW.id + 1);
END;
CREATE TABLE second (id integer);
"""


def test_an_sql_file_is_run_statement_by_statement(tmp_path: Path) -> None:
    plain = "".join(line + "\n" for line in SQL.splitlines() if line.startswith("CREATE TABLE"))
    (tmp_path / "0002_tables.sqlite.sql").write_text(SQL)
    (tmp_path / "0002_tables.postgresql.sql").write_text(plain)
    operation = RunSQLFile(str(tmp_path / "0002_tables.py"))

    operation.database_forwards("bookings", connection.schema_editor(), None, None)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO first VALUES (7)")
        cursor.execute("SELECT id FROM second ORDER BY id")
        copied = cursor.fetchall()

    assert copied == ([(7,), (8,)] if connection.vendor == "sqlite" else [])


def test_a_database_without_a_file_has_nothing_to_run(tmp_path: Path) -> None:
    operation = RunSQLFile(str(tmp_path / "0002_tables.py"))

    with CaptureQueriesContext(connection) as queries:
        operation.database_forwards("bookings", connection.schema_editor(), None, None)

    assert queries.captured_queries == []
