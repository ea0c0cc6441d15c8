"""Frequent ANALYZE, so that the statistics include new apps."""

from django.db import migrations

from common.migration_sql import FREQUENT_ANALYZE, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [("bookings", "0020_office_indexes")]

    operations = [
        set_autovacuum(
            {
                "bookings_booking": FREQUENT_ANALYZE,
                "bookings_customer": FREQUENT_ANALYZE,
                "bookings_appcustomer": FREQUENT_ANALYZE,
                "bookings_statechange": FREQUENT_ANALYZE,
            }
        ),
    ]
