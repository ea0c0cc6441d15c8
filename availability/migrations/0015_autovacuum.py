"""Autovacuum of holds."""

from django.db import migrations

from common.migration_sql import BUSY, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [("availability", "0014_event_updated")]

    operations = [
        set_autovacuum(
            {
                "availability_hold": BUSY,
            }
        ),
    ]
