"""Fill AppCustomer in batches, and count bookings and customers for lists."""

from django.db import OperationalError, migrations, transaction

from apps_config.listing_tally_triggers import AddListingTally, TalliedTable
from common.migration_sql import RunWithoutModels

BATCH = 500
ADDRESSES = """
SELECT DISTINCT booking.app_id, upper(customer.email) FROM bookings_customer AS customer
JOIN bookings_booking AS booking ON booking.id = customer.booking_id
WHERE upper(customer.email) IN (
    SELECT DISTINCT upper(email) FROM bookings_customer
    WHERE upper(email) > %s ORDER BY 1 LIMIT %s
) ORDER BY 2, 1
"""
ALL_ON_SQLITE = """
INSERT INTO bookings_appcustomer (app_id, address, bookings, first_booking_at, last_booking_at)
SELECT booking.app_id, upper(customer.email), count(DISTINCT booking.id),
    min(booking.created_at), max(booking.created_at)
FROM bookings_customer AS customer JOIN bookings_booking AS booking
    ON booking.id = customer.booking_id
WHERE customer.email <> '' AND booking.deleted_at IS NULL GROUP BY 1, 2
"""


def weeks(column):
    return {
        "postgresql": f"floor(extract(epoch FROM {{row}}.{column}) / 604800)::int",
        "sqlite": f"CAST(strftime('%s', {{row}}.{column}) AS integer) / 604800",
    }


BOOKINGS = TalliedTable(
    listing="bookings",
    table="bookings_booking",
    columns=("state", "created_at", "deleted_at"),
    part="{row}.state",
    period=weeks("created_at"),
    shown="{row}.deleted_at IS NULL",
)
CUSTOMERS = TalliedTable(
    listing="customers",
    table="bookings_appcustomer",
    columns=("last_booking_at",),
    part="''",
    period=weeks("last_booking_at"),
)


def fill_customers(apps, schema_editor):
    """Count each person anew: the triggers have counted those of new bookings only in part."""
    connection = schema_editor.connection
    if schema_editor.collect_sql:
        return
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM bookings_appcustomer")
            cursor.execute(ALL_ON_SQLITE)
        return
    last = ""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(ADDRESSES, [last, BATCH])
            people = cursor.fetchall()
        if not people:
            return
        recount_people(connection, people)
        last = people[-1][1]


def recount_people(connection, people):
    """One transaction; after a deadlock with writers, one for each person."""
    try:
        recount_at_once(connection, people)
    except OperationalError:
        for person in people:
            recount_at_once(connection, [person])


def recount_at_once(connection, people):
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.executemany("SELECT recount_app_customer(%s, %s)", people)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("bookings", "0015_app_customer")]

    operations = [
        AddListingTally(BOOKINGS),
        AddListingTally(CUSTOMERS),
        RunWithoutModels(fill_customers, migrations.RunPython.noop),
    ]
