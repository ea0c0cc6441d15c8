"""Indexes for the back office: customers of all apps, and events of deleted bookings."""

from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0019_customer_names")]

    operations = [
        AddIndexOnline(
            model_name="appcustomer",
            index=models.Index(fields=["-last_booking_at", "address"], name="app_customer_latest"),
        ),
        AddIndexOnline(
            model_name="booking",
            index=models.Index(
                condition=models.Q(deleted_at__isnull=False, owner_booking=None),
                fields=["event"],
                name="booking_deleted",
            ),
        ),
    ]
