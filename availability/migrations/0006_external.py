"""Calendars of other providers, and the events that come from them.

On SQLite Django rebuilds the table of events, which loses the guard of 0002: it is made again.
"""

from importlib import import_module

from django.db import migrations, models

from common.migration_sql import RunWithoutModels

guard = import_module("availability.migrations.0002_overlap_guard")


def add_guard(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        guard.add_guard(apps, schema_editor)


def remove_guard(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        guard.remove_guard(apps, schema_editor)


class Migration(migrations.Migration):

    dependencies = [
        ('availability', '0005_event_start'),
    ]

    operations = [
        migrations.AddField(
            model_name='calendar',
            name='provider',
            field=models.CharField(default='service', editable=False, max_length=20),
        ),
        migrations.AddField(
            model_name='calendar',
            name='provider_access',
            field=models.CharField(blank=True, choices=[('reader', 'reader'), ('writer', 'writer')], editable=False, max_length=6),
        ),
        migrations.AddField(
            model_name='calendar',
            name='provider_id',
            field=models.CharField(blank=True, editable=False, help_text="the collection's address", max_length=2048),
        ),
        migrations.AddField(
            model_name='calendar',
            name='provider_invites',
            field=models.BooleanField(default=False, editable=False, help_text='its server mails attendees by itself (RFC 6638)'),
        ),
        migrations.AddField(
            model_name='calendar',
            name='provider_primary',
            field=models.BooleanField(default=False, help_text="the resource's bookings are written here, wherever they stand"),
        ),
        migrations.AddField(
            model_name='calendar',
            name='synced_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        RunWithoutModels(remove_guard, add_guard),
        migrations.AddField(
            model_name='event',
            name='provider_id',
            field=models.CharField(blank=True, editable=False, help_text='the UID in a connected calendar', max_length=300),
        ),
        RunWithoutModels(add_guard, remove_guard),
        migrations.AddIndex(
            model_name='calendar',
            index=models.Index(condition=models.Q(('deleted_at', None), models.Q(('provider', 'service'), _negated=True)), fields=['resource', 'synced_at'], name='calendar_connected'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('provider_id', ''), _negated=True), fields=['calendar', 'provider_id'], name='event_of_provider'),
        ),
        migrations.AddConstraint(
            model_name='calendar',
            constraint=models.UniqueConstraint(condition=models.Q(('deleted_at', None), ('provider_primary', True)), fields=('resource',), name='calendar_primary_once'),
        ),
    ]
