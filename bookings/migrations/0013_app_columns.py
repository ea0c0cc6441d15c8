"""`app_id` of customers and state changes, and the key `uuid` of state changes.

The release before writes rows without them: triggers fill them. It reads and writes the counter
`id`, which the models no longer have; a later release removes it.
"""

from importlib import import_module

from django.db import migrations, models

import common.ids
from common.migration_sql import (
    VendorSQL,
    add_app_column,
    add_not_null,
    fixed_app,
    parents_app_triggers,
)

LOG = import_module("bookings.migrations.0004_append_only_log")
# The key may be filled once.
REFUSED = f"{LOG.LONGER} OR (OLD.uuid IS NOT NULL AND OLD.uuid IS DISTINCT FROM NEW.uuid)"


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0006_request_count"),
        ("availability", "0012_fill_event_app"),
        ("bookings", "0012_tally_by_row"),
        # Its first migration makes `change_id`, of the type that the key has until here.
        ("notifications", "0011_delivery_request"),
    ]

    operations = [
        add_app_column("customer"),
        add_app_column("statechange"),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                VendorSQL(
                    postgresql=[
                        "ALTER TABLE bookings_statechange ADD COLUMN uuid uuid NULL",
                        "DROP TRIGGER log_append_only ON bookings_statechange",
                        LOG.POSTGRESQL.replace(LOG.LONGER, REFUSED),
                    ],
                    sqlite=[
                        "ALTER TABLE bookings_statechange ADD COLUMN uuid char(32) NULL",
                        "DROP TRIGGER log_append_only",
                        LOG.SQLITE.replace(
                            LOG.LONGER, REFUSED.replace("IS DISTINCT FROM", "IS NOT")
                        ),
                    ],
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "statechange",
                    "id",
                    models.UUIDField(
                        db_column="uuid",
                        default=common.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
        ),
        fixed_app("bookings_booking"),
        parents_app_triggers("bookings_customer", "bookings_booking", "booking_id"),
        parents_app_triggers("bookings_statechange", "bookings_booking", "booking_id", uuid=True),
        VendorSQL(
            postgresql=[
                add_not_null("bookings_customer", "app_id"),
                add_not_null("bookings_statechange", "app_id"),
            ],
            sqlite=[],
        ),
    ]
