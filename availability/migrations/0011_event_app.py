"""`app_id` of events, which the database compares with that of their calendars.

A trigger reads it from the calendar, where it has to stand before.
"""

from django.db import migrations

from common.migration_sql import VendorSQL, add_app_column, add_not_null, parents_app_triggers


class Migration(migrations.Migration):
    dependencies = [("availability", "0010_fill_calendar_app")]

    operations = [
        add_app_column("event"),
        parents_app_triggers("availability_event", "availability_calendar", "calendar_id"),
        VendorSQL(postgresql=[add_not_null("availability_event", "app_id")], sqlite=[]),
    ]
