"""Columns for the canonical address and the limit key; the triggers that compare by UPPER go."""

from django.db import migrations, models

from common.migration_sql import VendorSQL


def add_column(name):
    """Add a column; Django would rebuild the table on SQLite, which loses its triggers."""
    column = f"ALTER TABLE bookings_customer ADD COLUMN {name} varchar(254) DEFAULT '' NOT NULL"
    field = models.CharField(max_length=254, editable=False, default="")
    return migrations.SeparateDatabaseAndState(
        database_operations=[VendorSQL(postgresql=[column], sqlite=[column])],
        state_operations=[
            migrations.AddField("customer", name, field, preserve_default=False),
        ],
    )


OF_CUSTOMER = ("app_customer_insert", "app_customer_update", "app_customer_delete")


class Migration(migrations.Migration):
    dependencies = [("bookings", "0021_frequent_analyze")]

    operations = [
        VendorSQL(
            postgresql=[
                *(f"DROP TRIGGER {trigger} ON bookings_customer" for trigger in OF_CUSTOMER),
                "DROP TRIGGER app_customer_booking ON bookings_booking",
                "DROP FUNCTION {schema}.count_app_customer()",
                "DROP FUNCTION {schema}.recount_app_customers()",
                "DROP FUNCTION {schema}.recount_app_customer(uuid, text)",
            ],
            sqlite=[f"DROP TRIGGER {trigger}" for trigger in (*OF_CUSTOMER, "app_customer_booking")],
        ),
        migrations.RemoveIndex("customer", "customer_email"),
        migrations.RemoveIndex("unverifiedbooking", "unverified_open"),
        add_column("address"),
        add_column("limit_key"),
        migrations.AddField(
            "unverifiedbooking",
            "limit_key",
            models.CharField(max_length=254, blank=True, editable=False, default=""),
            preserve_default=False,
        ),
        migrations.AlterField(
            "unverifiedbooking",
            "email",
            models.EmailField(max_length=254, blank=True),
        ),
        migrations.AlterField(
            "appcustomer",
            "address",
            models.CharField(max_length=254),
        ),
    ]
