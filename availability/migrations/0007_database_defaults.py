"""Columns that older code does not know get their value from the database.

On SQLite Django rebuilds the table of events, which loses the guard of 0002: it is made again.
"""

from importlib import import_module

from django.db import migrations, models

from common.migration_sql import RunWithoutModels

external = import_module("availability.migrations.0006_external")


class Migration(migrations.Migration):

    dependencies = [
        ('availability', '0006_external'),
    ]

    operations = [
        migrations.AlterField(
            model_name='calendar',
            name='provider',
            field=models.CharField(db_default='service', default='service', editable=False, max_length=20),
        ),
        migrations.AlterField(
            model_name='calendar',
            name='provider_access',
            field=models.CharField(blank=True, choices=[('reader', 'reader'), ('writer', 'writer')], db_default='', default='', editable=False, max_length=6),
        ),
        migrations.AlterField(
            model_name='calendar',
            name='provider_id',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text="the collection's address", max_length=2048),
        ),
        migrations.AlterField(
            model_name='calendar',
            name='provider_invites',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text='its server mails attendees by itself (RFC 6638)'),
        ),
        migrations.AlterField(
            model_name='calendar',
            name='provider_primary',
            field=models.BooleanField(db_default=False, default=False, help_text="the resource's bookings are written here, wherever they stand"),
        ),
        RunWithoutModels(external.remove_guard, external.add_guard),
        migrations.AlterField(
            model_name='event',
            name='provider_id',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='the UID in a connected calendar', max_length=300),
        ),
        RunWithoutModels(external.add_guard, external.remove_guard),
        migrations.AlterField(
            model_name='resource',
            name='password',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='hashed; for POST /auth', max_length=128),
        ),
    ]
