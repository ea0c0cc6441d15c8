import common.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0008_autovacuum'),
    ]

    operations = [
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.UUIDField(default=common.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('editor', 'editor'), ('owner', 'owner')], max_length=6)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('sent_at', models.DateTimeField(help_text='when the latest e-mail was requested')),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='apps_config.app')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('accepted_at', None), ('revoked_at', None)), fields=('app', 'email'), name='invitation_open_once'), models.CheckConstraint(condition=models.Q(('role__in', ('viewer', 'editor', 'owner'))), name='invitation_role')],
            },
        ),
    ]
