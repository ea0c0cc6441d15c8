import common.db.ids
import common.db.message_field
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('availability', '0001_release_1_0'),
    ]

    operations = [
        migrations.CreateModel(
            name='Feed',
            fields=[
                ('calendar', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='feed', serialize=False, to='availability.calendar')),
                ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('details', models.BooleanField(default=False, help_text='shows the customers of bookings')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
        ),
        migrations.CreateModel(
            name='Connection',
            fields=[
                ('calendar', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='connection', serialize=False, to='availability.calendar')),
                ('address', models.TextField(editable=False, help_text='encrypted')),
                ('username', models.CharField(blank=True, max_length=300)),
                ('password', models.TextField(blank=True, editable=False, help_text='encrypted')),
                ('mark', models.JSONField(blank=True, default=dict, editable=False)),
                ('read_as', models.CharField(blank=True, editable=False, max_length=400)),
                ('problem', models.CharField(blank=True, editable=False, max_length=32)),
                ('problem_since', models.DateTimeField(blank=True, editable=False, null=True)),
                ('failures', models.PositiveIntegerField(default=0, editable=False, help_text='in a row')),
                ('done', models.PositiveIntegerField(default=0, editable=False)),
                ('total', models.PositiveIntegerField(default=0, editable=False)),
                ('unread', models.PositiveIntegerField(default=0, editable=False)),
                ('next_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('lease_token', models.UUIDField(blank=True, editable=False, null=True)),
                ('user_addresses', models.JSONField(blank=True, default=list, editable=False)),
                ('last_write_succeeded', models.BooleanField(default=False, editable=False)),
                ('last_write_invited', models.BooleanField(default=False, editable=False)),
                ('checked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='connection_due')],
            },
        ),
        migrations.CreateModel(
            name='ExternalObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('href', models.CharField(help_text="the path at its server; a feed's: the UID", max_length=1000)),
                ('uid', models.CharField(max_length=300)),
                ('etag', models.CharField(blank=True, max_length=300)),
                ('text', models.TextField(blank=True, help_text='iCalendar')),
                ('is_recurring', models.BooleanField(default=False)),
                ('expanded_until', models.DateTimeField(blank=True, null=True)),
                ('problem', models.CharField(blank=True, help_text="why it can't be read", max_length=200)),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
                ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='remote_objects', to='external_calendars.connection')),
            ],
            options={
                'indexes': [models.Index(fields=['connection', 'uid'], name='external_object_uid'), models.Index(condition=models.Q(('is_recurring', True)), fields=['expanded_until'], name='external_object_recurring'), models.Index(condition=models.Q(('problem', ''), _negated=True), fields=['connection'], name='external_object_unread')],
                'constraints': [models.UniqueConstraint(fields=('connection', 'href'), name='external_object_once')],
            },
        ),
        migrations.CreateModel(
            name='WrittenEvent',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('uid', models.CharField(max_length=300)),
                ('href', models.CharField(blank=True, max_length=1000)),
                ('etag', models.CharField(blank=True, max_length=300)),
                ('state', models.CharField(choices=[('pending', 'pending'), ('written', 'written'), ('removed', 'removed'), ('moved_there', 'moved_there'), ('removed_there', 'removed_there'), ('refused', 'refused')], default='pending', max_length=13)),
                ('reason', common.db.message_field.MessageField(blank=True)),
                ('start', models.DateTimeField(blank=True, null=True)),
                ('end', models.DateTimeField(blank=True, null=True)),
                ('written_at', models.DateTimeField(blank=True, null=True)),
                ('invitations', models.JSONField(blank=True, default=dict, editable=False)),
                ('calendar', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='written', to='availability.calendar')),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='written', to='availability.event')),
            ],
            options={
                'indexes': [models.Index(fields=['calendar', 'uid'], name='written_event_uid')],
                'constraints': [models.UniqueConstraint(fields=('event', 'calendar'), name='written_event_once')],
            },
        ),
    ]
