"""Groups (seats share their owner's event), awaited payments, bulk requests, series.

On SQLite Django makes the table of bookings anew, which loses the triggers of the tally: they are
made again.
"""

from importlib import import_module

import django.db.models.deletion
import common.ids
from django.db import migrations, models
from common.migration_sql import RunWithoutModels

TALLY = import_module("bookings.migrations.0002_booking_tally")


def make_triggers_again(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        TALLY.add_triggers(apps, schema_editor)


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0002_initial'),
        ('availability', '0003_holds'),
        ('bookings', '0002_booking_tally'),
    ]

    operations = [
        RunWithoutModels(migrations.RunPython.noop, make_triggers_again),
        migrations.CreateModel(
            name='Bulk',
            fields=[
                ('id', models.UUIDField(default=common.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField()),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='bulks', to='apps_config.app')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.AddField(
            model_name='booking',
            name='bulk',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='bookings.bulk'),
        ),
        migrations.AddField(
            model_name='booking',
            name='expires_at',
            field=models.DateTimeField(blank=True, help_text='when it times out, while a payment is awaited', null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='max_seats',
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='owner_booking',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='seats', to='bookings.booking'),
        ),
        migrations.AddField(
            model_name='booking',
            name='policies',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AlterField(
            model_name='booking',
            name='event',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='availability.event'),
        ),
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.UUIDField(default=common.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('rrule', models.CharField(help_text='RFC 5545', max_length=500)),
                ('skipped', models.JSONField(blank=True, default=list)),
                ('created_at', models.DateTimeField()),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='series', to='apps_config.app')),
            ],
            options={
                'verbose_name_plural': 'series',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.AddField(
            model_name='booking',
            name='series',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='bookings.series'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='booking_expires'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('owner_booking__isnull', False)), fields=['owner_booking'], name='booking_seats'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None), ('max_seats__isnull', False)), fields=['app', '-created_at', '-id'], name='booking_groups'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('bulk__isnull', False)), fields=['bulk'], name='booking_bulk'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('series__isnull', False)), fields=['series'], name='booking_series'),
        ),
        migrations.AddConstraint(
            model_name='booking',
            constraint=models.UniqueConstraint(condition=models.Q(('owner_booking', None)), fields=('event',), name='booking_event_once'),
        ),
        RunWithoutModels(make_triggers_again, migrations.RunPython.noop),
    ]
