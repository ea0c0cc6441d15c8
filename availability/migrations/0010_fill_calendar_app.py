"""Fill `app_id` of the calendars of older releases."""

from django.db import migrations

from common.migration_sql import FillColumns, VendorSQL, app_of, validate_not_null


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0009_calendar_app")]

    operations = [
        FillColumns(
            "availability_calendar", {"app_id": app_of("availability_resource", "resource_id")}
        ),
        VendorSQL(postgresql=[validate_not_null("availability_calendar", "app_id")], sqlite=[]),
    ]
