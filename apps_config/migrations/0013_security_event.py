import common.ids
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0012_saved_filter'),
    ]

    operations = [
        # Tables of django-axes, which is no longer used.
        *(
            migrations.RunSQL(f"DROP TABLE IF EXISTS {table}", migrations.RunSQL.noop)
            for table in (
                "axes_accessattemptexpiration",
                "axes_accessattempt",
                "axes_accessfailurelog",
                "axes_accesslog",
            )
        ),
        migrations.RunSQL(
            "DELETE FROM django_migrations WHERE app = 'axes'", migrations.RunSQL.noop
        ),
        migrations.AddField(
            model_name='failedlogin',
            name='last_at',
            field=models.DateTimeField(help_text='of the latest wrong password', null=True),
        ),
        migrations.CreateModel(
            name='SecurityEvent',
            fields=[
                ('id', models.UUIDField(default=common.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('actor', models.CharField(help_text='an address, a key or a command', max_length=254)),
                ('kind', models.CharField(max_length=24)),
                ('network', models.CharField(blank=True, max_length=45)),
                ('user_agent', models.CharField(blank=True, max_length=200)),
                ('about', models.JSONField(blank=True, default=dict)),
                ('count', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('app', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['app', '-id'], name='security_event_of_app'), models.Index(fields=['account', 'network', '-id'], name='security_event_of_account')],
            },
        ),
    ]
