"""Indexes that are built while their tables are in use."""

from collections.abc import Callable
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations import AddIndex, RemoveIndex

from common.migration_sql import RunWithoutModels


class AddIndexOnline(AddIndexConcurrently):
    """Build the index without blocking writers; on SQLite, which can't, like `AddIndex`.

    Its migration needs `atomic = False` and only operations that can be run again, as this one.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            # What an interrupted run has left: built, or invalid.
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.index.name}")
        forwards = self._operation(schema_editor).database_forwards
        forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        backwards = self._operation(schema_editor).database_backwards
        backwards(self, app_label, schema_editor, from_state, to_state)

    def _operation(self, schema_editor: Any) -> type[AddIndex]:
        is_postgresql = schema_editor.connection.vendor == "postgresql"
        return AddIndexConcurrently if is_postgresql else AddIndex


class RemoveIndexOnline(RemoveIndexConcurrently):
    """Drop the index without blocking writers; on SQLite like `RemoveIndex`."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        forwards = self._operation(schema_editor).database_forwards
        forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        backwards = self._operation(schema_editor).database_backwards
        backwards(self, app_label, schema_editor, from_state, to_state)

    def _operation(self, schema_editor: Any) -> type[RemoveIndex]:
        is_postgresql = schema_editor.connection.vendor == "postgresql"
        return RemoveIndexConcurrently if is_postgresql else RemoveIndex


class AddPostgreSQLIndex(RunWithoutModels):
    """Build an index of a kind that SQLite does not have, without blocking writers.

    Its migration needs `atomic = False`, and can be run again where it was interrupted.

    >>> AddPostgreSQLIndex("booking_meta", "bookings_booking USING gin (meta jsonb_path_ops)")
    """

    def __init__(self, name: str, definition: str) -> None:
        drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
        create = f"CREATE INDEX CONCURRENTLY {name} ON {definition}"
        # Without statistics of an expression, the planner expects few rows.
        analyze = f"ANALYZE {definition.partition(' ')[0]}"
        super().__init__(_on_postgresql(drop, create, analyze), _on_postgresql(drop))


def _on_postgresql(*statements: str) -> Callable[[Any, Any], None]:
    def run(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for statement in statements:
                schema_editor.execute(statement, params=None)

    return run
