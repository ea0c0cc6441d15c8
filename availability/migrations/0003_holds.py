"""Holds, their length in a project, and the password of a resource (POST /auth)."""

import django.db.models.deletion
import common.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0002_initial'),
        ('availability', '0002_overlap_guard'),
    ]

    operations = [
        migrations.AddField(
            model_name='project',
            name='reservation_time',
            field=models.PositiveSmallIntegerField(blank=True, help_text='seconds that a hold lasts; 30 where empty', null=True),
        ),
        migrations.AddField(
            model_name='resource',
            name='password',
            field=models.CharField(blank=True, editable=False, help_text='hashed; for POST /auth', max_length=128),
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.UUIDField(default=common.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('start', models.DateTimeField()),
                ('end', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('extensions', models.PositiveSmallIntegerField(default=0)),
                ('client_address', models.CharField(blank=True, help_text="of a widget key's caller, who gets only a few", max_length=64)),
                ('created_at', models.DateTimeField()),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='holds', to='apps_config.app')),
                ('main', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='companions', to='availability.hold')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='holds', to='availability.project')),
                ('resource', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='holds', to='availability.resource')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('used_at', None)), fields=['resource', 'end'], name='hold_blocking'), models.Index(condition=models.Q(('client_address', ''), _negated=True), fields=['client_address', 'expires_at'], name='hold_by_address'), models.Index(fields=['expires_at'], name='hold_lapsed')],
                'constraints': [models.CheckConstraint(condition=models.Q(('end__gt', models.F('start'))), name='hold_end_after_start')],
            },
        ),
    ]
