"""Keep BookingTally by row on PostgreSQL, with names that need no search path.

Triggers per statement read transition tables, which distributed tables do not have. One row counts
in the order of its states, so that two transactions of one slot do not deadlock. Each change of a
count within one transaction reads the versions before it: fine for thousands of rows. Whoever
loads more at once disables the triggers and counts them afterwards. SQLite has counted by row all
along.
"""

from django.db import migrations

from common.migration_sql import VendorSQL

INSERT = """
        INSERT INTO {schema}.bookings_bookingtally AS tally (app_id, state, slot, count)"""
ADD_UP = """
        ON CONFLICT (app_id, state, slot) DO UPDATE SET count = tally.count + excluded.count;"""
FUNCTION = f"""
CREATE OR REPLACE FUNCTION {{schema}}.booking_tally() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN {INSERT}
        VALUES (NEW.app_id, NEW.state, pg_backend_pid() % 32, 1) {ADD_UP}
    ELSIF TG_OP = 'DELETE' THEN {INSERT}
        VALUES (OLD.app_id, OLD.state, pg_backend_pid() % 32, -1) {ADD_UP}
    ELSE {INSERT}
        SELECT app_id, state, pg_backend_pid() % 32, sum(change) FROM (
            VALUES (NEW.app_id, NEW.state, NEW.deleted_at, 1),
                   (OLD.app_id, OLD.state, OLD.deleted_at, -1)
        ) AS changes (app_id, state, deleted_at, change)
        WHERE deleted_at IS NULL
        GROUP BY app_id, state HAVING sum(change) <> 0 ORDER BY app_id, state {ADD_UP}
    END IF;
    RETURN NULL;
END $$"""  # nosec B608
TRIGGER = """
CREATE TRIGGER booking_tally_{event} AFTER {event} ON bookings_booking
FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {{schema}}.booking_tally()"""
CONDITIONS = {
    "insert": "NEW.deleted_at IS NULL",
    "update": "(OLD.app_id, OLD.state, OLD.deleted_at IS NULL)"
    " IS DISTINCT FROM (NEW.app_id, NEW.state, NEW.deleted_at IS NULL)",
    "delete": "OLD.deleted_at IS NULL",
}


class Migration(migrations.Migration):
    dependencies = [("bookings", "0011_unverified_booking")]

    operations = [
        VendorSQL(
            postgresql=[
                *(f"DROP TRIGGER booking_tally_{event} ON bookings_booking" for event in CONDITIONS),
                FUNCTION,
                *(
                    TRIGGER.format(event=event, condition=condition)
                    for event, condition in CONDITIONS.items()
                ),
            ],
            sqlite=[],
        )
    ]
