"""The outcome of an attempt, which the error and the duration implied."""

from django.db import migrations, models

from common.migration_sql import VendorSQL

# Django would rebuild the table on SQLite, which loses its triggers.
COLUMN = "ALTER TABLE notifications_attempt ADD COLUMN outcome varchar(11) DEFAULT 'ok' NOT NULL"

# 40 seconds were the lease, which no other attempt could reach.
FILL = """
UPDATE notifications_attempt SET outcome = CASE WHEN seconds >= 40 THEN 'lost' ELSE 'failed' END
WHERE error <> ''
"""


class Migration(migrations.Migration):
    dependencies = [("notifications", "0024_suppression_address")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[VendorSQL(postgresql=[COLUMN], sqlite=[COLUMN])],
            state_operations=[
                migrations.AddField(
                    "attempt",
                    "outcome",
                    models.CharField(
                        choices=[
                            ("ok", "ok"),
                            ("failed", "failed"),
                            ("unconfirmed", "unconfirmed"),
                            ("lost", "lost"),
                        ],
                        db_default="ok",
                        default="ok",
                        max_length=11,
                    ),
                ),
            ],
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
