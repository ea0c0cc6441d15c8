"""A booking may be changed from a calendar elsewhere: that is a source of its own.

The trigger that keeps the log append-only names the column: PostgreSQL alters no such column, and
SQLite, which rebuilds the table, would lose it.
"""

from importlib import import_module

from django.db import migrations, models

from common.migration_sql import RunWithoutModels

log = import_module("bookings.migrations.0004_append_only_log")


class Migration(migrations.Migration):
    dependencies = [("bookings", "0005_requests")]

    operations = [
        RunWithoutModels(log.remove_trigger, log.add_trigger),
        migrations.AlterField(
            model_name="statechange",
            name="source",
            field=models.CharField(
                choices=[
                    ("api", "api"),
                    ("widget", "widget"),
                    ("admin", "admin"),
                    ("link", "link"),
                    ("timer", "timer"),
                    ("calendar", "calendar"),
                ],
                max_length=8,
            ),
        ),
        RunWithoutModels(log.add_trigger, log.remove_trigger),
    ]
