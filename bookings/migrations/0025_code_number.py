"""The number of a code, so that another address gets another code."""

from django.db import migrations, models

from common.migration_sql import VendorSQL

# Django would rebuild the table on SQLite, which loses its triggers.
COLUMN = "ALTER TABLE bookings_unverifiedbooking ADD COLUMN code_number smallint DEFAULT 1 NOT NULL"


class Migration(migrations.Migration):
    dependencies = [("bookings", "0024_link_version")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[VendorSQL(postgresql=[COLUMN], sqlite=[COLUMN])],
            state_operations=[
                migrations.AddField(
                    "unverifiedbooking",
                    "code_number",
                    models.SmallIntegerField(db_default=1, default=1, editable=False),
                ),
            ],
        ),
    ]
