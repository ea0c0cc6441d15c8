"""The indexes of events that limits count though they block no more, and of all-day events.

Writers go on while they are built.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class AddIndex(AddIndexConcurrently):
    """Concurrently on PostgreSQL; SQLite has one writer anyway."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddIndex.database_forwards(
                self, app_label, schema_editor, from_state, to_state
            )

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddIndex.database_backwards(
                self, app_label, schema_editor, from_state, to_state
            )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("availability", "0006_external")]

    operations = [
        AddIndex(
            "event",
            models.Index(
                fields=["project", "resource", "end"],
                condition=models.Q(busy=False, project__isnull=False),
                name="event_project_ended",
            ),
        ),
        AddIndex(
            "event",
            models.Index(
                fields=["end"], condition=models.Q(all_day=True), name="event_all_day"
            ),
        ),
    ]
