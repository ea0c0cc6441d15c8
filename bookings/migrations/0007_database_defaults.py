"""A column that older code does not know gets its value from the database.

On SQLite Django makes the table of bookings anew, which loses the triggers of the tally: they are
made again.
"""

from importlib import import_module

from django.db import migrations, models

from common.migration_sql import RunWithoutModels

groups = import_module("bookings.migrations.0003_groups_and_series")


class Migration(migrations.Migration):

    dependencies = [
        ('bookings', '0006_external'),
    ]

    operations = [
        RunWithoutModels(migrations.RunPython.noop, groups.make_triggers_again),
        migrations.AlterField(
            model_name='booking',
            name='policies',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        RunWithoutModels(groups.make_triggers_again, migrations.RunPython.noop),
    ]
