"""Frequent ANALYZE, so that the statistics include new apps."""

from django.db import migrations

from common.migration_sql import FREQUENT_ANALYZE, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [("notifications", "0022_remove_delivery_queue_index")]

    operations = [
        set_autovacuum(
            {
                "notifications_delivery": FREQUENT_ANALYZE,
                "notifications_attempt": FREQUENT_ANALYZE,
                "notifications_plan": FREQUENT_ANALYZE,
            }
        ),
    ]
