"""Copies of a group's event that ended seats keep when the event changes."""

from django.db import migrations, models

from common.migration_sql import VendorSQL

# Django would rebuild the table on SQLite, which loses its triggers.
COLUMN = "ALTER TABLE availability_event ADD COLUMN of_ended_seats bool DEFAULT FALSE NOT NULL"


class Migration(migrations.Migration):
    dependencies = [("availability", "0024_resource_address")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[VendorSQL(postgresql=[COLUMN], sqlite=[COLUMN])],
            state_operations=[
                migrations.AddField(
                    "event",
                    "of_ended_seats",
                    models.BooleanField(db_default=False, default=False, editable=False),
                ),
            ],
        ),
    ]
