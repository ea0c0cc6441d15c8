"""Fill the canonical addresses in batches; count AppCustomer anew, and the triggers that keep it.

PostgreSQL counts a new customer up, and counts a person anew after any other change; the person's
row is locked first, so that the count sees what the transactions before have written. SQLite has
one writer. Names are qualified, as in `apps_config.listing_tally_triggers`.
"""

from django.db import migrations, transaction

from apps_config.listing_tally_triggers import AddListingTally, TalliedTable, current_schema
from common.batching import iterate_batches
from common.email_address import canonical_address, limit_key
from common.migration_sql import RunWithoutModels
from common.sql import update_rows

ROWS = """{schema}bookings_customer AS customer
    JOIN {schema}bookings_booking AS booking ON booking.id = customer.booking_id"""
COUNTS = """count(DISTINCT booking.id), min(booking.created_at), max(booking.created_at)"""
COLUMNS = "app_id, address, bookings, first_booking_at, last_booking_at"

# --- PostgreSQL -----------------------------------------------------------------------------------
RECOUNT = f"""
CREATE OR REPLACE FUNCTION {{schema}}recount_app_customer(_app uuid, _address text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE found record;
BEGIN
    INSERT INTO {{schema}}bookings_appcustomer AS person ({COLUMNS})
    VALUES (_app, _address, 0, now(), now())
    ON CONFLICT (app_id, address) DO UPDATE SET bookings = person.bookings;
    SELECT {COUNTS} INTO found FROM {ROWS}
    WHERE customer.address = _address AND booking.app_id = _app
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
CREATE OR REPLACE FUNCTION {{schema}}count_app_customer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE booking record;
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.address <> '' THEN
        PERFORM {{schema}}recount_app_customer(app_id, OLD.address)
        FROM {{schema}}bookings_booking WHERE id = OLD.booking_id;
    END IF;
    IF TG_OP = 'DELETE' OR NEW.address = '' THEN
        RETURN NULL;
    END IF;
    SELECT id, app_id, created_at, deleted_at INTO booking
    FROM {{schema}}bookings_booking WHERE id = NEW.booking_id;
    IF TG_OP = 'UPDATE' OR EXISTS (
        SELECT FROM {{schema}}bookings_customer AS other WHERE other.booking_id = NEW.booking_id
        AND other.id <> NEW.id AND other.address = NEW.address
    ) THEN
        PERFORM {{schema}}recount_app_customer(booking.app_id, NEW.address);
    ELSIF booking.deleted_at IS NULL THEN
        INSERT INTO {{schema}}bookings_appcustomer AS person ({COLUMNS})
        VALUES (booking.app_id, NEW.address, 1, booking.created_at, booking.created_at)
        ON CONFLICT (app_id, address) DO UPDATE SET bookings = person.bookings + 1,
            first_booking_at = least(person.first_booking_at, excluded.first_booking_at),
            last_booking_at = greatest(person.last_booking_at, excluded.last_booking_at);
    END IF;
    RETURN NULL;
END $$"""  # nosec B608

# A person counted anew twice costs little; in the order of the addresses, two transactions do not
# wait for each other.
OF_BOOKING = """
CREATE OR REPLACE FUNCTION {schema}recount_app_customers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE _address text;
BEGIN
    FOR _address IN
        SELECT DISTINCT address FROM {schema}bookings_customer
        WHERE booking_id = NEW.id AND address <> '' ORDER BY 1
    LOOP
        PERFORM {schema}recount_app_customer(NEW.app_id, _address);
    END LOOP;
    RETURN NULL;
END $$"""

CUSTOMER_CHANGED = "(OLD.booking_id, OLD.address) IS DISTINCT FROM (NEW.booking_id, NEW.address)"
BOOKING_CHANGED = (
    "(OLD.created_at, OLD.deleted_at IS NULL) IS DISTINCT FROM"
    " (NEW.created_at, NEW.deleted_at IS NULL)"
)
ON_CUSTOMER = "ON bookings_customer FOR EACH ROW"
COUNT = "EXECUTE FUNCTION {schema}count_app_customer()"
POSTGRESQL = (
    RECOUNT,
    OF_CUSTOMER,
    OF_BOOKING,
    "CREATE OR REPLACE TRIGGER app_customer_booking AFTER UPDATE OF created_at, deleted_at"
    f" ON bookings_booking FOR EACH ROW WHEN ({BOOKING_CHANGED})"
    " EXECUTE FUNCTION {schema}recount_app_customers()",
    f"CREATE OR REPLACE TRIGGER app_customer_insert AFTER INSERT {ON_CUSTOMER}"
    f" WHEN (NEW.address <> '') {COUNT}",
    f"CREATE OR REPLACE TRIGGER app_customer_update AFTER UPDATE OF booking_id, address"
    f" {ON_CUSTOMER} WHEN ({CUSTOMER_CHANGED}) {COUNT}",
    f"CREATE OR REPLACE TRIGGER app_customer_delete AFTER DELETE {ON_CUSTOMER}"
    f" WHEN (OLD.address <> '') {COUNT}",
)

# --- SQLite ---------------------------------------------------------------------------------------
# Of one or more bookings' customers: forget them, count them anew.
FORGET = """DELETE FROM bookings_appcustomer
    WHERE app_id = (SELECT app_id FROM bookings_booking WHERE id = {booking})
      AND address IN ({addresses});"""
COUNT_ANEW = f"""INSERT INTO bookings_appcustomer ({COLUMNS})
    SELECT booking.app_id, customer.address, {COUNTS}
    FROM bookings_customer AS customer JOIN bookings_booking AS booking
        ON booking.id = customer.booking_id
    WHERE customer.address IN ({{addresses}}) AND customer.address <> ''
      AND booking.deleted_at IS NULL
      AND booking.app_id = (SELECT app_id FROM bookings_booking WHERE id = {{booking}})
    GROUP BY 1, 2;"""  # nosec B608

# A new customer is counted up: counting anew would read all bookings of the address each time.
COUNT_UP = f"""INSERT INTO bookings_appcustomer ({COLUMNS})
    SELECT booking.app_id, NEW.address, 1, booking.created_at, booking.created_at
    FROM bookings_booking AS booking
    WHERE booking.id = NEW.booking_id AND booking.deleted_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM bookings_customer AS other WHERE other.booking_id = NEW.booking_id
        AND other.id <> NEW.id AND other.address = NEW.address
    )
    ON CONFLICT (app_id, address) DO UPDATE SET bookings = bookings + 1,
        first_booking_at = min(first_booking_at, excluded.first_booking_at),
        last_booking_at = max(last_booking_at, excluded.last_booking_at);"""  # nosec B608


def recount_on_sqlite(booking, addresses):
    return (FORGET + COUNT_ANEW).format(booking=booking, addresses=addresses)


OLD, NEW = (recount_on_sqlite(f"{row}.booking_id", f"{row}.address") for row in ("OLD", "NEW"))
ALL = recount_on_sqlite(
    "NEW.id", "SELECT address FROM bookings_customer WHERE booking_id = NEW.id"
)
ON_SQLITE = {
    "booking": f"AFTER UPDATE OF created_at, deleted_at ON bookings_booking BEGIN {ALL} END",
    "insert": f"AFTER INSERT ON bookings_customer WHEN NEW.address <> '' BEGIN {COUNT_UP} END",
    "update": f"AFTER UPDATE OF booking_id, address ON bookings_customer BEGIN {OLD} {NEW} END",
    "delete": f"AFTER DELETE ON bookings_customer BEGIN {OLD} END",
}
SQLITE = tuple(
    statement
    for name, text in ON_SQLITE.items()
    for statement in (
        f"DROP TRIGGER IF EXISTS app_customer_{name}",
        f"CREATE TRIGGER app_customer_{name} {text}",
    )
)

# --- The rows -------------------------------------------------------------------------------------
CUSTOMERS = TalliedTable(
    listing="customers",
    table="bookings_appcustomer",
    columns=("last_booking_at",),
    part="''",
    period={
        "postgresql": "floor(extract(epoch FROM {row}.last_booking_at) / 604800)::int",
        "sqlite": "CAST(strftime('%s', {row}.last_booking_at) AS integer) / 604800",
    },
)
FORMS = {"address": canonical_address, "limit_key": limit_key}
COUNT_ALL = (
    "DELETE FROM bookings_appcustomer",
    f"""INSERT INTO bookings_appcustomer ({COLUMNS})
    SELECT booking.app_id, customer.address, {COUNTS} FROM {ROWS}
    WHERE customer.address <> '' AND booking.deleted_at IS NULL GROUP BY 1, 2""",  # nosec B608
)


def fill_addresses(apps, schema_editor):
    """A text of an older release that is no address now stays as it was typed: `canonical_address`
    says why it equals nobody's address.
    """
    for model in ("Customer", "UnverifiedBooking"):
        rows = apps.get_model("bookings", model).objects.exclude(email="")
        columns = [name for name in FORMS if hasattr(rows.model, name)]
        for batch in iterate_batches(rows.only("email"), 2000):
            for row in batch:
                for name in columns:
                    setattr(row, name, FORMS[name](row.email))
            update_rows(batch, columns)


def count_customers(apps, schema_editor):
    """Count all customers anew. Their tally's triggers are away meanwhile, as the next operation
    counts it.
    """
    connection = schema_editor.connection
    schema = current_schema(connection)
    without_tally = CUSTOMERS.dropped_triggers(connection.vendor, schema)
    triggers = POSTGRESQL if connection.vendor == "postgresql" else SQLITE
    with transaction.atomic(using=connection.alias):
        for statement in (*without_tally, *COUNT_ALL, *triggers):
            schema_editor.execute(statement.replace("{schema}", schema), params=None)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0022_customer_address")]

    operations = [
        migrations.RunPython(fill_addresses, migrations.RunPython.noop),
        RunWithoutModels(count_customers, migrations.RunPython.noop),
        AddListingTally(CUSTOMERS),
    ]
