"""AppCustomer, and the triggers that keep it, whoever writes.

Names are qualified, as in `apps_config.listing_tally_triggers`. PostgreSQL counts a new customer up, and
counts a person anew after any other change; the person's row is locked first, so that the count
sees what the transactions before have written. SQLite has one writer.
"""

import django.db.models.deletion
from django.db import migrations, models

from apps_config.listing_tally_triggers import current_schema
from common.migration_sql import RunWithoutModels

ROWS = """{schema}bookings_customer AS customer
    JOIN {schema}bookings_booking AS booking ON booking.id = customer.booking_id"""
COUNTS = """count(DISTINCT booking.id), min(booking.created_at), max(booking.created_at)"""
COLUMNS = "app_id, address, bookings, first_booking_at, last_booking_at"

RECOUNT = f"""
CREATE FUNCTION {{schema}}recount_app_customer(_app uuid, _address text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE found record;
BEGIN
    INSERT INTO {{schema}}bookings_appcustomer AS person ({COLUMNS})
    VALUES (_app, _address, 0, now(), now())
    ON CONFLICT (app_id, address) DO UPDATE SET bookings = person.bookings;
    SELECT {COUNTS} INTO found FROM {ROWS}
    WHERE upper(customer.email) = _address AND booking.app_id = _app
      AND booking.deleted_at IS NULL;
    IF found.count = 0 THEN
        DELETE FROM {{schema}}bookings_appcustomer WHERE app_id = _app AND address = _address;
    ELSE
        UPDATE {{schema}}bookings_appcustomer
        SET bookings = found.count, first_booking_at = found.min, last_booking_at = found.max
        WHERE app_id = _app AND address = _address;
    END IF;
END $$"""  # nosec B608

OF_CUSTOMER = f"""
CREATE FUNCTION {{schema}}count_app_customer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE booking record;
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.email <> '' THEN
        PERFORM {{schema}}recount_app_customer(app_id, upper(OLD.email))
        FROM {{schema}}bookings_booking WHERE id = OLD.booking_id;
    END IF;
    IF TG_OP = 'DELETE' OR NEW.email = '' THEN
        RETURN NULL;
    END IF;
    SELECT id, app_id, created_at, deleted_at INTO booking
    FROM {{schema}}bookings_booking WHERE id = NEW.booking_id;
    IF TG_OP = 'UPDATE' OR EXISTS (
        SELECT FROM {{schema}}bookings_customer AS other WHERE other.booking_id = NEW.booking_id
        AND other.id <> NEW.id AND upper(other.email) = upper(NEW.email)
    ) THEN
        PERFORM {{schema}}recount_app_customer(booking.app_id, upper(NEW.email));
    ELSIF booking.deleted_at IS NULL THEN
        INSERT INTO {{schema}}bookings_appcustomer AS person ({COLUMNS})
        VALUES (booking.app_id, upper(NEW.email), 1, booking.created_at, booking.created_at)
        ON CONFLICT (app_id, address) DO UPDATE SET bookings = person.bookings + 1,
            first_booking_at = least(person.first_booking_at, excluded.first_booking_at),
            last_booking_at = greatest(person.last_booking_at, excluded.last_booking_at);
    END IF;
    RETURN NULL;
END $$"""  # nosec B608

# A person counted anew twice costs little; in the order of the addresses, two transactions do not
# wait for each other.
OF_BOOKING = """
CREATE FUNCTION {schema}recount_app_customers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE address text;
BEGIN
    FOR address IN
        SELECT DISTINCT upper(email) FROM {schema}bookings_customer
        WHERE booking_id = NEW.id AND email <> '' ORDER BY 1
    LOOP
        PERFORM {schema}recount_app_customer(NEW.app_id, address);
    END LOOP;
    RETURN NULL;
END $$"""

CUSTOMER_CHANGED = "(OLD.booking_id, upper(OLD.email)) IS DISTINCT FROM (NEW.booking_id, upper(NEW.email))"
BOOKING_CHANGED = "(OLD.created_at, OLD.deleted_at IS NULL) IS DISTINCT FROM (NEW.created_at, NEW.deleted_at IS NULL)"
ON_CUSTOMER = "ON bookings_customer FOR EACH ROW"
COUNT = "EXECUTE FUNCTION {schema}count_app_customer()"
POSTGRESQL = (
    RECOUNT,
    OF_CUSTOMER,
    OF_BOOKING,
    f"CREATE TRIGGER app_customer_booking AFTER UPDATE OF created_at, deleted_at"
    f" ON bookings_booking FOR EACH ROW WHEN ({BOOKING_CHANGED})"
    " EXECUTE FUNCTION {schema}recount_app_customers()",
    f"CREATE TRIGGER app_customer_insert AFTER INSERT {ON_CUSTOMER}"
    f" WHEN (NEW.email <> '') {COUNT}",
    f"CREATE TRIGGER app_customer_update AFTER UPDATE OF booking_id, email {ON_CUSTOMER}"
    f" WHEN ({CUSTOMER_CHANGED}) {COUNT}",
    f"CREATE TRIGGER app_customer_delete AFTER DELETE {ON_CUSTOMER}"
    f" WHEN (OLD.email <> '') {COUNT}",
)

# Of one or more bookings' customers, on SQLite: forget them, count them anew.
FORGET = """DELETE FROM bookings_appcustomer
    WHERE app_id = (SELECT app_id FROM bookings_booking WHERE id = {booking})
      AND address IN ({addresses});"""
COUNT_ANEW = f"""INSERT INTO bookings_appcustomer ({COLUMNS})
    SELECT booking.app_id, upper(customer.email), {COUNTS}
    FROM bookings_customer AS customer JOIN bookings_booking AS booking
        ON booking.id = customer.booking_id
    WHERE upper(customer.email) IN ({{addresses}}) AND upper(customer.email) <> ''
      AND booking.deleted_at IS NULL
      AND booking.app_id = (SELECT app_id FROM bookings_booking WHERE id = {{booking}})
    GROUP BY 1, 2;"""  # nosec B608


# A new customer is counted up: counting anew would read all bookings of the address each time.
COUNT_UP = f"""INSERT INTO bookings_appcustomer ({COLUMNS})
    SELECT booking.app_id, upper(NEW.email), 1, booking.created_at, booking.created_at
    FROM bookings_booking AS booking
    WHERE booking.id = NEW.booking_id AND booking.deleted_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM bookings_customer AS other WHERE other.booking_id = NEW.booking_id
        AND other.id <> NEW.id AND upper(other.email) = upper(NEW.email)
    )
    ON CONFLICT (app_id, address) DO UPDATE SET bookings = bookings + 1,
        first_booking_at = min(first_booking_at, excluded.first_booking_at),
        last_booking_at = max(last_booking_at, excluded.last_booking_at);"""  # nosec B608


def recount_on_sqlite(booking: str, addresses: str) -> str:
    return (FORGET + COUNT_ANEW).format(booking=booking, addresses=addresses)


OLD, NEW = (recount_on_sqlite(f"{row}.booking_id", f"upper({row}.email)") for row in ("OLD", "NEW"))
ALL = recount_on_sqlite(
    "NEW.id", "SELECT upper(email) FROM bookings_customer WHERE booking_id = NEW.id"
)
SQLITE = (
    f"CREATE TRIGGER app_customer_booking AFTER UPDATE OF created_at, deleted_at"
    f" ON bookings_booking BEGIN {ALL} END",
    f"CREATE TRIGGER app_customer_insert AFTER INSERT ON bookings_customer WHEN NEW.email <> ''"
    f" BEGIN {COUNT_UP} END",
    f"CREATE TRIGGER app_customer_update AFTER UPDATE OF booking_id, email ON bookings_customer"
    f" BEGIN {OLD} {NEW} END",
    f"CREATE TRIGGER app_customer_delete AFTER DELETE ON bookings_customer BEGIN {OLD} END",
)


def add_triggers(apps, schema_editor):
    connection = schema_editor.connection
    schema = current_schema(connection)
    for statement in POSTGRESQL if connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement.replace("{schema}", schema), params=None)


def remove_triggers(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    for event in ("booking", "insert", "update", "delete"):
        table = "bookings_booking" if event == "booking" else "bookings_customer"
        place = f" ON {table}" if postgresql else ""
        schema_editor.execute(f"DROP TRIGGER app_customer_{event}{place}")
    if postgresql:
        schema_editor.execute("DROP FUNCTION count_app_customer()")
        schema_editor.execute("DROP FUNCTION recount_app_customers()")
        schema_editor.execute("DROP FUNCTION recount_app_customer(uuid, text)")


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0007_listing_tally"),
        ("bookings", "0014_fill_app"),
    ]

    operations = [
        migrations.CreateModel(
            name="AppCustomer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", models.CharField(help_text="in upper case", max_length=254)),
                ("bookings", models.PositiveIntegerField()),
                ("first_booking_at", models.DateTimeField()),
                ("last_booking_at", models.DateTimeField()),
                (
                    "app",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="apps_config.app",
                    ),
                ),
            ],
            options={
                "verbose_name": "customer of an app",
                "verbose_name_plural": "customers of apps",
                "ordering": ["-last_booking_at", "address"],
                "indexes": [
                    models.Index(
                        fields=["app", "-last_booking_at", "address"], name="app_customer_listing"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("app", "address"), name="app_customer_once")
                ],
            },
        ),
        RunWithoutModels(add_triggers, remove_triggers),
    ]
