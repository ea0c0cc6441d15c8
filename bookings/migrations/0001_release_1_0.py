import common.db.ids
import django.db.models.deletion
import uuid
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models
from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('apps_config', '0001_release_1_0'),
        ('availability', '0001_release_1_0'),
    ]

    operations = [
        TrigramExtension(),
        migrations.CreateModel(
            name='Booking',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('max_seats', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('policies', models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict)),
                ('graph', models.CharField(max_length=32)),
                ('state', models.CharField(max_length=32)),
                ('completed', models.BooleanField(default=False, help_text='no action is left')),
                ('allow_double_bookings', models.BooleanField(default=False)),
                ('enforce_availability', models.BooleanField(default=False)),
                ('completes_at', models.DateTimeField(blank=True, help_text='an hour after the end, while the booking is live', null=True)),
                ('expires_at', models.DateTimeField(blank=True, help_text='when it times out, while a payment is awaited', null=True)),
                ('reschedules', models.PositiveSmallIntegerField(default=0)),
                ('link_version', models.SmallIntegerField(db_default=0, default=0, editable=False, help_text='raised to end the links of its e-mails')),
                ('meta', models.JSONField(blank=True, default=dict)),
                ('untrusted_texts', models.JSONField(blank=True, help_text='which texts of the event a public caller wrote; null: no public caller made it', null=True)),
                ('calendar_uid', models.UUIDField(default=uuid.uuid4, editable=False, help_text='names the booking in calendars')),
                ('outcome', models.CharField(blank=True, choices=[('attended', 'attended'), ('no_show', 'no_show')], help_text='whether the customer came; empty: nobody has said', max_length=8, null=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='bookings', to='apps_config.app')),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='availability.event')),
                ('owner_booking', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='seats', to='bookings.booking')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='availability.project')),
                ('resource', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bookings', to='availability.resource')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='BookingNotification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('type', models.CharField(choices=[('email', 'e-mail'), ('webhook', 'webhook')], max_length=7)),
                ('recipient', models.CharField(blank=True, choices=[('customer', 'customer'), ('owner', 'owner')], max_length=8)),
                ('subject', models.CharField(blank=True, max_length=200)),
                ('url', models.CharField(blank=True, max_length=2048)),
                ('method', models.CharField(blank=True, choices=[('post', 'post'), ('put', 'put'), ('patch', 'patch'), ('get', 'get')], max_length=5)),
                ('expected_response_code', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('when_type', models.CharField(choices=[('before', 'before'), ('after', 'after')], max_length=6)),
                ('when_unit', models.CharField(choices=[('secs', 'secs'), ('mins', 'mins'), ('hours', 'hours'), ('days', 'days')], max_length=5)),
                ('when_time', models.PositiveIntegerField()),
                ('booking', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='event_notifications', to='bookings.booking')),
            ],
            options={
                'ordering': ['position', 'id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Bulk',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
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
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
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
        migrations.CreateModel(
            name='StateChange',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('from_state', models.CharField(max_length=32)),
                ('to_state', models.CharField(max_length=32)),
                ('action', models.CharField(max_length=32)),
                ('actor', models.CharField(blank=True, max_length=254)),
                ('source', models.CharField(choices=[('api', 'api'), ('widget', 'widget'), ('admin', 'admin'), ('link', 'link'), ('timer', 'timer'), ('calendar', 'calendar')], max_length=8)),
                ('message', models.TextField(blank=True, max_length=8000)),
                ('created_at', models.DateTimeField()),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='apps_config.app')),
                ('booking', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='logs', to='bookings.booking')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='UnverifiedBooking',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('limit_key', models.CharField(blank=True, editable=False, max_length=254)),
                ('body', models.JSONField(default=dict, help_text='of POST /bookings')),
                ('zone', models.CharField(help_text='of wall times in the body', max_length=64)),
                ('code_number', models.SmallIntegerField(db_default=1, default=1, editable=False)),
                ('codes_tried', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('app', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
                ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bookings.booking')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='availability.project')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='AppCustomer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.CharField(max_length=254)),
                ('bookings', models.PositiveIntegerField()),
                ('first_booking_at', models.DateTimeField()),
                ('last_booking_at', models.DateTimeField()),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
            ],
            options={
                'verbose_name': 'customer',
                'ordering': ['-last_booking_at', 'address'],
                'indexes': [models.Index(fields=['app', '-last_booking_at', 'address'], name='app_customer_listing'), models.Index(fields=['-last_booking_at', 'address'], name='app_customer_latest')],
                'constraints': [models.UniqueConstraint(fields=('app', 'address'), name='app_customer_once')],
            },
        ),
        migrations.CreateModel(
            name='Customer',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('name', models.CharField(max_length=200)),
                ('email', models.EmailField(max_length=254)),
                ('address', models.CharField(editable=False, max_length=254)),
                ('limit_key', models.CharField(editable=False, max_length=254)),
                ('phone', models.CharField(blank=True, max_length=200)),
                ('voip', models.CharField(blank=True, max_length=200)),
                ('timezone', models.CharField(blank=True, max_length=64)),
                ('meta', models.JSONField(blank=True, default=dict)),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='apps_config.app')),
                ('booking', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='customers', to='bookings.booking')),
            ],
            options={
                'verbose_name': 'customer of a booking',
                'verbose_name_plural': 'customers of bookings',
                'ordering': ['position', 'id'],
                'indexes': [models.Index(fields=['address'], name='customer_address'), models.Index(fields=['limit_key'], name='customer_limit_key')],
            },
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['app', '-created_at', '-id'], name='booking_listing'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['app', 'state', '-created_at', '-id'], name='booking_listing_by_state'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(fields=['resource', '-created_at'], name='booking_resource'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('project__isnull', False)), fields=['project', '-created_at', '-id'], name='booking_listing_by_project'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['app', 'graph', '-created_at', '-id'], name='booking_listing_by_graph'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('completed', False), ('deleted_at', None)), fields=['app', '-created_at', '-id'], name='booking_listing_open'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['app', 'updated_at'], name='booking_updated'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None), ('state', 'tentative')), fields=['graph', '-created_at', '-id'], name='booking_requests'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('completes_at__isnull', False)), fields=['completes_at'], name='booking_completes'),
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
            index=models.Index(condition=models.Q(('completed', False), ('deleted_at', None), ('max_seats__isnull', False)), fields=['app', '-created_at', '-id'], name='booking_open_groups'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('bulk__isnull', False)), fields=['bulk'], name='booking_bulk'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('series__isnull', False)), fields=['series'], name='booking_series'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at', None), ('outcome__isnull', False)), fields=['app', 'outcome', '-created_at', '-id'], name='booking_outcome'),
        ),
        migrations.AddIndex(
            model_name='booking',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False), ('owner_booking', None)), fields=['event'], name='booking_deleted'),
        ),
        migrations.AddConstraint(
            model_name='booking',
            constraint=models.UniqueConstraint(condition=models.Q(('owner_booking', None)), fields=('event',), name='booking_event_once'),
        ),
        migrations.AddIndex(
            model_name='unverifiedbooking',
            index=models.Index(condition=models.Q(('ended_at', None)), fields=['app', 'limit_key'], name='unverified_open'),
        ),
        RunSQLFile(__file__),
    ]
