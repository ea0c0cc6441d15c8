"""The version of a booking's links, so that those of earlier e-mails can end."""

from django.db import migrations, models

from common.migration_sql import VendorSQL

# Django would rebuild the table on SQLite, which loses its triggers.
COLUMN = (
    "ALTER TABLE bookings_booking ADD COLUMN link_version smallint DEFAULT 0 NOT NULL"
)


class Migration(migrations.Migration):
    dependencies = [("bookings", "0023b_index_customer_address")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[VendorSQL(postgresql=[COLUMN], sqlite=[COLUMN])],
            state_operations=[
                migrations.AddField(
                    "booking",
                    "link_version",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="raised to end the links of its e-mails",
                    ),
                ),
            ],
        ),
    ]
