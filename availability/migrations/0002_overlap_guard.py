"""The net under the lock: the database itself refuses overlapping exclusive events of a resource.

PostgreSQL: an exclusion constraint on (resource, range). SQLite: triggers, free of races because
it has one writer. Both name `slot_taken`, by which the services know the refusal. Where a
later migration makes Django rebuild the table on SQLite, the triggers must be made again.
"""

from django.contrib.postgres.operations import BtreeGistExtension
from django.db import migrations

from common.migration_sql import RunWithoutModels

POSTGRESQL = """
ALTER TABLE availability_event ADD CONSTRAINT slot_taken
EXCLUDE USING gist (resource_id WITH =, tstzrange(start, "end", '[)') WITH &&) WHERE (exclusive);
"""

OVERLAP = """
WHEN NEW.exclusive AND EXISTS (
    SELECT 1 FROM availability_event AS other
    WHERE other.resource_id = NEW.resource_id AND other.exclusive AND other.id <> NEW.id
      AND other.start < NEW."end" AND other."end" > NEW.start
)
BEGIN SELECT RAISE(ABORT, 'slot_taken'); END
"""
SQLITE = (
    f"CREATE TRIGGER slot_taken_on_insert BEFORE INSERT ON availability_event {OVERLAP};",
    f"""CREATE TRIGGER slot_taken_on_update
    BEFORE UPDATE OF start, "end", resource_id, exclusive ON availability_event {OVERLAP};""",
    """CREATE INDEX event_exclusive ON availability_event (resource_id, "end") WHERE exclusive;""",
)


def add_guard(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL, params=None)
    else:
        for statement in SQLITE:
            schema_editor.execute(statement, params=None)


def remove_guard(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE availability_event DROP CONSTRAINT slot_taken")
    else:
        schema_editor.execute("DROP TRIGGER slot_taken_on_insert")
        schema_editor.execute("DROP TRIGGER slot_taken_on_update")
        schema_editor.execute("DROP INDEX event_exclusive")


class Migration(migrations.Migration):
    dependencies = [("availability", "0001_initial")]

    operations = [BtreeGistExtension(), RunWithoutModels(add_guard, remove_guard)]
