"""Autovacuum of stored answers, counts of requests and tallies."""

from django.db import migrations

from common.migration_sql import BUSY, LARGE, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [("apps_config", "0007_listing_tally")]

    operations = [
        set_autovacuum(
            {
                "apps_config_idempotencyrecord": LARGE,
                "apps_config_listingtally": BUSY,
                "apps_config_requestcount": BUSY,
            }
        ),
    ]
