import django.db.models.deletion
from django.db import migrations, models
from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0004_dark_logo'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChangeFeed',
            fields=[
                ('app', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='apps_config.app')),
                ('last_number', models.BigIntegerField(default=0)),
                ('called_number', models.BigIntegerField(db_default=0, default=0, help_text='of the last change of which webhooks were told')),
            ],
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('type', models.CharField(max_length=8)),
                ('action', models.CharField(max_length=32)),
                ('at', models.DateTimeField()),
                ('object_id', models.UUIDField()),
                ('log_id', models.UUIDField(help_text="of a booking's log entry", null=True)),
                ('history_id', models.IntegerField(help_text="of the object's change history", null=True)),
                ('transaction', models.BigIntegerField(help_text='its id on PostgreSQL, else 0')),
                ('number', models.BigIntegerField(help_text='its place in the app; null: not yet', null=True)),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('number', None)), fields=['app', 'id'], name='change_pending')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('number__isnull', False)), fields=('app', 'number'), name='change_number_once')],
            },
        ),
        RunSQLFile(__file__),
    ]
