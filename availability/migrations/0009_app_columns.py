"""`app_id` of calendars and events, which the database compares with that of their parents.

The release before writes rows without it: triggers fill it.
"""

from django.db import migrations

from common.migration_sql import VendorSQL, add_app_column, fixed_app, add_not_null, parents_app


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0005_public_key_scope"),
        ("availability", "0008_event_indexes"),
    ]

    operations = [
        add_app_column("calendar"),
        add_app_column("event"),
        fixed_app("availability_resource"),
        parents_app("availability_calendar", "availability_resource", "resource_id"),
        parents_app("availability_event", "availability_calendar", "calendar_id"),
        VendorSQL(
            postgresql=[
                add_not_null("availability_calendar", "app_id"),
                add_not_null("availability_event", "app_id"),
            ],
            sqlite=[],
        ),
    ]
