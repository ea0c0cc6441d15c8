"""The buffers that a booking or a hold was made with, and the longest of each resource.

Null, in all rows so far and in those of the previous release: the buffers of the project that asks.
"""

from django.db import migrations, models

from common.migration_sql import VendorSQL

LONGEST = """
ALTER TABLE availability_resource ADD COLUMN longest_buffer integer DEFAULT 0 NOT NULL
"""
BUFFERS = [(model, f"buffer_{side}") for model in ("event", "hold") for side in ("before", "after")]


class Migration(migrations.Migration):
    dependencies = [("availability", "0020_requires")]

    operations = [
        # Django would rebuild the table on SQLite, which loses its triggers.
        migrations.SeparateDatabaseAndState(
            database_operations=[VendorSQL(postgresql=[LONGEST], sqlite=[LONGEST])],
            state_operations=[
                migrations.AddField(
                    "resource",
                    "longest_buffer",
                    models.IntegerField(default=0, db_default=0, editable=False),
                )
            ],
        ),
        *(
            migrations.AddField(
                model, name, models.IntegerField(null=True, blank=True, editable=False)
            )
            for model, name in BUFFERS
        ),
    ]
