"""Resources that several bookings use at once: `capacity`, and `unit` of the events of bookings.

The constraint `slot_taken` (0002) guards the events of unit 0, as before; `slot_taken_unit` guards
the others. No event has another unit yet: the table is read once, and the index is empty. The
triggers are named `slot_taken_...` too, by which the services know the refusal.
"""

from django.db import migrations, models

from common.migration_sql import VendorSQL

ABOVE_CAPACITY = """
CREATE FUNCTION {schema}.availability_event_unit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.unit < 0 OR NEW.unit >= (
        SELECT capacity FROM {schema}.availability_resource WHERE id = NEW.resource_id
    ) THEN
        RAISE EXCEPTION 'slot_taken: the resource has no unit %', NEW.unit
            USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NEW;
END $$"""
POSTGRESQL = (
    ABOVE_CAPACITY,
    """CREATE TRIGGER slot_taken_capacity BEFORE INSERT OR UPDATE OF unit, resource_id, busy
    ON availability_event FOR EACH ROW WHEN (NEW.busy AND NEW.unit <> 0)
    EXECUTE FUNCTION {schema}.availability_event_unit()""",
    """ALTER TABLE availability_event ADD CONSTRAINT slot_taken_unit
    EXCLUDE USING gist (resource_id WITH =, unit WITH =, tstzrange(start, "end", '[)') WITH &&)
    WHERE (busy AND unit > 0) DEFERRABLE INITIALLY IMMEDIATE""",
)
OVERLAP = """
WHEN NEW.busy AND NEW.unit > 0 AND EXISTS (
    SELECT 1 FROM availability_event AS other
    WHERE other.resource_id = NEW.resource_id AND other.busy AND other.unit = NEW.unit
      AND other.id <> NEW.id AND other.start < NEW."end" AND other."end" > NEW.start
)
BEGIN SELECT RAISE(ABORT, 'slot_taken_unit'); END
"""
NO_UNIT = """
WHEN NEW.busy AND NEW.unit <> 0 AND (NEW.unit < 0 OR NEW.unit >= (
    SELECT capacity FROM availability_resource WHERE id = NEW.resource_id
))
BEGIN SELECT RAISE(ABORT, 'slot_taken: the resource has no such unit'); END
"""
SQLITE = (
    f"CREATE TRIGGER slot_taken_unit_on_insert BEFORE INSERT ON availability_event {OVERLAP};",
    f"""CREATE TRIGGER slot_taken_unit_on_update
    BEFORE UPDATE OF start, "end", resource_id, unit, busy ON availability_event {OVERLAP};""",
    f"CREATE TRIGGER slot_taken_capacity_on_insert BEFORE INSERT ON availability_event {NO_UNIT};",
    f"""CREATE TRIGGER slot_taken_capacity_on_update
    BEFORE UPDATE OF unit, resource_id, busy ON availability_event {NO_UNIT};""",
)


CAPACITY = models.SmallIntegerField(
    default=1, db_default=1, help_text="so many bookings may overlap"
)


def add_column(model, name, field):
    """Add a column; Django would rebuild the table on SQLite, which loses its triggers."""
    column = (
        f"ALTER TABLE availability_{model} ADD COLUMN {name}"
        f" smallint DEFAULT {field.db_default} NOT NULL"
    )
    return migrations.SeparateDatabaseAndState(
        database_operations=[VendorSQL(postgresql=[column], sqlite=[column])],
        state_operations=[migrations.AddField(model, name, field)],
    )


class Migration(migrations.Migration):
    dependencies = [("availability", "0015_autovacuum")]

    operations = [
        add_column("resource", "capacity", CAPACITY),
        add_column("historicalresource", "capacity", CAPACITY),
        add_column(
            "event", "unit", models.SmallIntegerField(default=0, db_default=0, editable=False)
        ),
        VendorSQL(postgresql=POSTGRESQL, sqlite=SQLITE),
    ]
