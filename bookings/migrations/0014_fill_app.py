"""Fill the new columns of the customers and state changes of older releases.

The keys of a booking's state changes keep the order of their counter, whatever their clocks said.
"""

from django.db import migrations

from common.migration_sql import (
    FillColumns,
    VendorSQL,
    add_and_validate_not_null,
    app_of,
    epoch_ms,
    ordered_uuid,
    unique_index,
    validate_not_null,
)

BOOKINGS_APP = app_of("bookings_booking", "booking_id")
LATEST = """(SELECT max(earlier.created_at) FROM bookings_statechange AS earlier
    WHERE earlier.booking_id = bookings_statechange.booking_id
      AND earlier.id <= bookings_statechange.id)"""
UUID = ordered_uuid(epoch_ms(LATEST), "id", BOOKINGS_APP)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0013_app_columns")]

    operations = [
        FillColumns("bookings_customer", {"app_id": BOOKINGS_APP}),
        FillColumns("bookings_statechange", {"app_id": BOOKINGS_APP, "uuid": UUID}),
        unique_index("state_change_uuid", "bookings_statechange (uuid)"),
        VendorSQL(
            postgresql=[
                validate_not_null("bookings_customer", "app_id"),
                validate_not_null("bookings_statechange", "app_id"),
                *add_and_validate_not_null("bookings_statechange", "uuid"),
            ],
            sqlite=[],
        ),
    ]
