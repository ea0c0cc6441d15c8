"""SQL of migrations: triggers, constraints and indexes that Django can't declare."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation


class RunSQLFile(Operation):
    """Run the SQL file beside a migration: `<its name>.postgresql.sql` or `<its name>.sqlite.sql`.

    A database without a file has nothing to run. Functions of PostgreSQL that a trigger calls end
    with `SET search_path FROM CURRENT`: their body is read with the search path of whoever fires
    the trigger.

    >>> operations = [RunSQLFile(__file__)]
    """

    reversible = False

    def __init__(self, migration: str) -> None:
        self.migration = migration

    def state_forwards(self, app_label: str, state: Any) -> None:
        """No model changes."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        vendor = schema_editor.connection.vendor
        for statement in self.statements(vendor):
            schema_editor.execute(statement, params=None)

    def statements(self, vendor: str) -> Iterator[str]:
        """Yield what is executed at once: psycopg runs several statements, SQLite one."""
        text = self._text_for(vendor)
        yield from filter(str.strip, [text]) if vendor == "postgresql" else _split(text)

    def references_model(self, name: str, app_label: str) -> bool:
        return f"{app_label}_{name.lower()}" in self._text_for("postgresql")

    def _text_for(self, vendor: str) -> str:
        file = Path(self.migration).with_suffix(f".{vendor}.sql")
        return file.read_text() if file.exists() else ""

    def describe(self) -> str:
        return "Run the SQL file beside the migration"


class RunTriggersFile(RunSQLFile):
    """Run the SQL file beside a migration that is not atomic: one trigger per transaction, so that
    no two tables are locked together. Each ends with `;` at the end of a line, and can be repeated.
    """

    def statements(self, vendor: str) -> Iterator[str]:
        if vendor == "sqlite":
            yield from super().statements(vendor)
            return
        for statement in self._text_for(vendor).split(";\n"):
            if statement.strip():
                yield statement


def _split(text: str) -> Iterator[str]:
    """Yield the statements; a semicolon inside a trigger ends none."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
