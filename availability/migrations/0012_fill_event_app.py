"""Fill `app_id` of the events of older releases."""

from django.db import migrations

from common.migration_sql import FillColumns, VendorSQL, app_of, validate_not_null


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0011_event_app")]

    operations = [
        FillColumns(
            "availability_event", {"app_id": app_of("availability_calendar", "calendar_id")}
        ),
        VendorSQL(postgresql=[validate_not_null("availability_event", "app_id")], sqlite=[]),
    ]
