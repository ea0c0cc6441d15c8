"""Frequent ANALYZE, so that the statistics include new apps."""

from django.db import migrations

from common.migration_sql import FREQUENT_ANALYZE, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [("availability", "0022_resource_picture")]

    operations = [
        set_autovacuum(
            {
                "availability_event": FREQUENT_ANALYZE,
            }
        ),
    ]
