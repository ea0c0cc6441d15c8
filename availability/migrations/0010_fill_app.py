"""Fill `app_id` of the calendars and events of older releases."""

from django.db import migrations

from common.migration_sql import FillColumns, VendorSQL, app_of, validate_not_null

CALENDARS_APP = app_of("availability_resource", "resource_id")
EVENTS_APP = app_of("availability_calendar", "calendar_id")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0009_app_columns")]

    operations = [
        FillColumns("availability_calendar", {"app_id": CALENDARS_APP}),
        FillColumns("availability_event", {"app_id": EVENTS_APP}),
        VendorSQL(
            postgresql=[
                validate_not_null("availability_calendar", "app_id"),
                validate_not_null("availability_event", "app_id"),
            ],
            sqlite=[],
        ),
    ]
