"""Autovacuum of the outbox."""

from django.db import migrations

from common.migration_sql import BUSY, LARGE, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [("notifications", "0019_task_run")]

    operations = [
        set_autovacuum(
            {
                "notifications_delivery": LARGE,
                "notifications_attempt": LARGE,
                "notifications_plan": LARGE,
                "notifications_lanecheck": BUSY,
                "notifications_endpoint": BUSY,
                "notifications_heartbeat": BUSY,
            }
        ),
    ]
