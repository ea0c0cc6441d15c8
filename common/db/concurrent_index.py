"""Indexes and unique constraints that are built while their tables are in use."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations import AddConstraint, AddIndex, RemoveIndex


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


class AddUniqueConstraintOnline(AddConstraint):
    """Build the index of a unique constraint that has a condition, as `AddIndexOnline` does."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.constraint.name}")
            statement: Any = self.constraint.create_sql(model, schema_editor)
            statement.template = statement.template.replace(
                "CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX CONCURRENTLY"
            )
            schema_editor.execute(statement, params=None)


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
