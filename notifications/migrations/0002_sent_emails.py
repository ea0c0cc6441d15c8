import common.db.ids
import django.db.models.deletion
from django.db import migrations, models
from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0002_release_1_0'),
        ('bookings', '0001_release_1_0'),
        ('notifications', '0001_release_1_0'),
    ]

    operations = [
        migrations.CreateModel(
            name='SentEmail',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('sent_at', models.DateTimeField()),
                ('content', models.BinaryField(blank=True, help_text='compressed JSON; empty: see the first row')),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='apps_config.app')),
                ('booking', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='bookings.booking')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sent_emails', to='notifications.delivery')),
            ],
            options={
                'verbose_name': 'sent e-mail',
                'ordering': ['id'],
                'indexes': [models.Index(fields=['sent_at'], name='sent_email_retention')],
            },
        ),
        RunSQLFile(__file__),
    ]
