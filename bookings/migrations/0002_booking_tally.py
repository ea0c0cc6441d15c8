"""Triggers that keep BookingTally: every door that changes a booking, bulk inserts too, is counted.

PostgreSQL counts once per statement (transition tables), in the order of the states, into a slot
of the connection's own: two transactions seldom meet in one row, and never in opposite order
within a statement. SQLite has one writer and counts row by row into slot 0. (Where a later
migration makes Django rebuild the table on SQLite, the triggers must be made again.)
"""

from django.db import migrations

from common.migration_sql import RunWithoutModels

FUNCTION = """
CREATE FUNCTION booking_tally() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO bookings_bookingtally AS tally (app_id, state, slot, count)
        SELECT app_id, state, pg_backend_pid() % 32, count(*)
        FROM new_rows WHERE deleted_at IS NULL GROUP BY app_id, state ORDER BY app_id, state
        ON CONFLICT (app_id, state, slot) DO UPDATE SET count = tally.count + excluded.count;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO bookings_bookingtally AS tally (app_id, state, slot, count)
        SELECT app_id, state, pg_backend_pid() % 32, -count(*)
        FROM old_rows WHERE deleted_at IS NULL GROUP BY app_id, state ORDER BY app_id, state
        ON CONFLICT (app_id, state, slot) DO UPDATE SET count = tally.count + excluded.count;
    ELSE
        INSERT INTO bookings_bookingtally AS tally (app_id, state, slot, count)
        SELECT app_id, state, pg_backend_pid() % 32, sum(change) FROM (
            SELECT app_id, state, 1 AS change FROM new_rows WHERE deleted_at IS NULL
            UNION ALL SELECT app_id, state, -1 FROM old_rows WHERE deleted_at IS NULL
        ) AS changes
        GROUP BY app_id, state HAVING sum(change) <> 0 ORDER BY app_id, state
        ON CONFLICT (app_id, state, slot) DO UPDATE SET count = tally.count + excluded.count;
    END IF;
    RETURN NULL;
END $$
"""
POSTGRESQL = (
    FUNCTION,
    """CREATE TRIGGER booking_tally_insert AFTER INSERT ON bookings_booking
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION booking_tally()""",
    """CREATE TRIGGER booking_tally_update AFTER UPDATE ON bookings_booking
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION booking_tally()""",
    """CREATE TRIGGER booking_tally_delete AFTER DELETE ON bookings_booking
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION booking_tally()""",
)

TALLY = """INSERT INTO bookings_bookingtally (app_id, state, slot, count)
    SELECT {row}.app_id, {row}.state, 0, {change} WHERE {row}.deleted_at IS NULL
    ON CONFLICT (app_id, state, slot) DO UPDATE SET count = count + excluded.count;"""
ADD = TALLY.format(row="NEW", change=1)
TAKE = TALLY.format(row="OLD", change=-1)
SQLITE = (
    f"CREATE TRIGGER booking_tally_insert AFTER INSERT ON bookings_booking BEGIN {ADD} END",
    f"""CREATE TRIGGER booking_tally_update AFTER UPDATE OF state, deleted_at, app_id
    ON bookings_booking BEGIN {TAKE} {ADD} END""",
    f"CREATE TRIGGER booking_tally_delete AFTER DELETE ON bookings_booking BEGIN {TAKE} END",
)
TRIGGERS = ("booking_tally_insert", "booking_tally_update", "booking_tally_delete")


def add_triggers(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in POSTGRESQL if postgresql else SQLITE:
        schema_editor.execute(statement, params=None)


def remove_triggers(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    for trigger in TRIGGERS:
        schema_editor.execute(
            f"DROP TRIGGER {trigger}" + (" ON bookings_booking" if postgresql else "")
        )
    if postgresql:
        schema_editor.execute("DROP FUNCTION booking_tally()")


class Migration(migrations.Migration):
    dependencies = [("bookings", "0001_initial")]

    operations = [RunWithoutModels(add_triggers, remove_triggers)]
