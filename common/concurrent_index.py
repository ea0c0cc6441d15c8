"""Indexes that are built while their tables are in use."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations import AddIndex


class AddIndexOnline(AddIndexConcurrently):
    """Build the index without blocking writers; on SQLite, which can't, like `AddIndex`.

    Its migration needs `atomic = False` and no other operation.
    """

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

    def _operation(self, schema_editor: Any) -> type[AddIndex]:
        is_postgresql = schema_editor.connection.vendor == "postgresql"
        return AddIndexConcurrently if is_postgresql else AddIndex
