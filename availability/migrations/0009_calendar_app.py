"""`app_id` of calendars, which the database compares with that of their resources.

The release before writes rows without it: a trigger fills it.
"""

from django.db import migrations

from common.migration_sql import (
    VendorSQL,
    add_app_column,
    add_not_null,
    fixed_app,
    parents_app_triggers,
)


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0006_request_count"),
        ("availability", "0008_event_indexes"),
    ]

    operations = [
        add_app_column("calendar"),
        fixed_app("availability_resource"),
        parents_app_triggers("availability_calendar", "availability_resource", "resource_id"),
        VendorSQL(postgresql=[add_not_null("availability_calendar", "app_id")], sqlite=[]),
    ]
