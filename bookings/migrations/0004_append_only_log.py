"""The database itself keeps the history of bookings append-only.

Of a line only what people wrote may change, and only to less: an erasure empties it. Whole lines go
with their booking alone, which nothing in the service removes. (Where a later migration makes
Django rebuild the table on SQLite, the trigger must be made again.)
"""

from django.db import migrations

from common.migration_sql import RunWithoutModels

KEPT = ("id", "booking_id", "from_state", "to_state", "action", "source", "created_at")
OLD, NEW = (", ".join(f"{row}.{name}" for name in KEPT) for row in ("OLD", "NEW"))
LONGER = " OR ".join(f"length(NEW.{name}) > length(OLD.{name})" for name in ("actor", "message"))
REFUSED = "the history of a booking is append-only"
FUNCTION = f"""
CREATE FUNCTION log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'integrity_constraint_violation';
END $$
"""
POSTGRESQL = f"""
CREATE TRIGGER log_append_only BEFORE UPDATE ON bookings_statechange FOR EACH ROW
WHEN (({OLD}) IS DISTINCT FROM ({NEW}) OR {LONGER}) EXECUTE FUNCTION log_append_only()
"""
SQLITE = f"""
CREATE TRIGGER log_append_only BEFORE UPDATE ON bookings_statechange
WHEN ({OLD}) IS NOT ({NEW}) OR {LONGER} BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END
"""


def add_trigger(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in (FUNCTION, POSTGRESQL) if postgresql else (SQLITE,):
        schema_editor.execute(statement, params=None)


def remove_trigger(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER log_append_only ON bookings_statechange")
        schema_editor.execute("DROP FUNCTION log_append_only()")
    else:
        schema_editor.execute("DROP TRIGGER log_append_only")


class Migration(migrations.Migration):
    dependencies = [("bookings", "0003_groups_and_series")]

    operations = [RunWithoutModels(add_trigger, remove_trigger)]
