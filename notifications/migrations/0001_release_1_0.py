import common.db.ids
import common.db.message_field
import common.observability.log_format
import common.observability.tracing
import django.contrib.postgres.functions
import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models
from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('apps_config', '0001_release_1_0'),
        ('apps_config', '__first__'),
        ('bookings', '0001_release_1_0'),
    ]

    operations = [
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('address', models.CharField(help_text='scheme://host:port', max_length=300, primary_key=True, serialize=False)),
                ('failures', models.PositiveIntegerField(default=0, help_text='in a row')),
                ('is_slow', models.BooleanField(default=False, help_text='the last try failed or took over 2 s')),
                ('open_until', models.DateTimeField(blank=True, help_text='no calls before', null=True)),
            ],
            options={
                'verbose_name': 'webhook server',
            },
        ),
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('seen_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'process',
                'verbose_name_plural': 'system status',
            },
        ),
        migrations.CreateModel(
            name='TaskRun',
            fields=[
                ('task', models.CharField(max_length=100, primary_key=True, serialize=False)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('succeeded_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='ChangeCalls',
            fields=[
                ('change', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='calls', serialize=False, to='bookings.statechange')),
                ('kind', models.CharField(max_length=40)),
                ('version', models.PositiveSmallIntegerField(help_text='how often the booking had been moved')),
                ('first_number', models.PositiveSmallIntegerField(help_text='of the deliveries to write')),
                ('webhooks', models.JSONField(help_text='ids of the webhooks to call; empty once expanded')),
                ('body', models.TextField(blank=True, help_text='of all calls; empty once erased')),
                ('waiting_since', models.DateTimeField(blank=True, null=True)),
                ('request_id', models.CharField(blank=True, default=common.observability.log_format.current_request_id, editable=False, max_length=100)),
                ('trace_parent', models.CharField(blank=True, default=common.observability.tracing.current_trace_parent, editable=False, max_length=55)),
            ],
            options={
                'verbose_name': 'webhook calls',
                'verbose_name_plural': 'webhook calls',
                'indexes': [models.Index(condition=models.Q(('waiting_since__isnull', False)), fields=['waiting_since', 'change'], name='change_calls_pending')],
            },
        ),
        migrations.CreateModel(
            name='HistoricalEmailTemplate',
            fields=[
                ('id', models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name='ID')),
                ('slug', models.CharField(max_length=40)),
                ('subject', models.CharField(max_length=200)),
                ('text', models.TextField(max_length=20000)),
                ('html', models.TextField(max_length=100000)),
                ('history_id', models.AutoField(primary_key=True, serialize=False)),
                ('history_date', models.DateTimeField(db_index=True)),
                ('history_change_reason', models.CharField(max_length=100, null=True)),
                ('history_type', models.CharField(choices=[('+', 'Created'), ('~', 'Changed'), ('-', 'Deleted')], max_length=1)),
                ('app', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='apps_config.app')),
                ('history_user', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'historical e-mail template',
                'verbose_name_plural': 'historical e-mail templates',
                'ordering': ('-history_date', '-history_id'),
                'get_latest_by': ('history_date', 'history_id'),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name='HistoricalWebhook',
            fields=[
                ('id', models.UUIDField(db_index=True, default=common.db.ids.new_id, editable=False)),
                ('url', models.CharField(max_length=2048)),
                ('method', models.CharField(choices=[('post', 'post'), ('put', 'put'), ('patch', 'patch')], default='post', max_length=5)),
                ('graph', models.CharField(blank=True, help_text='empty: any', max_length=32)),
                ('states', models.JSONField(blank=True, default=list, help_text='empty: any')),
                ('kinds', models.JSONField(blank=True, db_default=[], default=list, help_text='such as booking.updated; empty: all but that')),
                ('expected_response_code', models.PositiveSmallIntegerField(blank=True, help_text='empty: any 2xx', null=True)),
                ('description', models.TextField(blank=True, max_length=8000)),
                ('active', models.BooleanField(default=True)),
                ('disabled_reason', common.db.message_field.MessageField(blank=True)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('created_at', models.DateTimeField(blank=True, editable=False)),
                ('history_id', models.AutoField(primary_key=True, serialize=False)),
                ('history_date', models.DateTimeField(db_index=True)),
                ('history_change_reason', models.CharField(max_length=100, null=True)),
                ('history_type', models.CharField(choices=[('+', 'Created'), ('~', 'Changed'), ('-', 'Deleted')], max_length=1)),
                ('app', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='apps_config.app')),
                ('history_user', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'historical webhook',
                'verbose_name_plural': 'historical webhooks',
                'ordering': ('-history_date', '-history_id'),
                'get_latest_by': ('history_date', 'history_id'),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('url', models.CharField(max_length=2048)),
                ('method', models.CharField(choices=[('post', 'post'), ('put', 'put'), ('patch', 'patch')], default='post', max_length=5)),
                ('graph', models.CharField(blank=True, help_text='empty: any', max_length=32)),
                ('states', models.JSONField(blank=True, default=list, help_text='empty: any')),
                ('kinds', models.JSONField(blank=True, db_default=[], default=list, help_text='such as booking.updated; empty: all but that')),
                ('expected_response_code', models.PositiveSmallIntegerField(blank=True, help_text='empty: any 2xx', null=True)),
                ('description', models.TextField(blank=True, max_length=8000)),
                ('active', models.BooleanField(default=True)),
                ('disabled_reason', common.db.message_field.MessageField(blank=True)),
                ('secret', models.TextField(editable=False)),
                ('previous_secret', models.TextField(blank=True, editable=False)),
                ('previous_until', models.DateTimeField(blank=True, editable=False, null=True)),
                ('failures', models.PositiveIntegerField(default=0, editable=False, help_text='failed tries since the last success')),
                ('failing_since', models.DateTimeField(blank=True, editable=False, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='apps_config.app')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveSmallIntegerField(default=0, help_text="its place among the change's")),
                ('type', models.CharField(choices=[('email', 'email'), ('webhook', 'webhook'), ('calendar', 'calendar')], max_length=8)),
                ('kind', models.CharField(help_text='reminder, confirmed, rescheduled, test, ...', max_length=40)),
                ('recipient', models.CharField(blank=True, help_text='customer or owner, of a mail', max_length=8)),
                ('version', models.PositiveSmallIntegerField(default=0, help_text='how often the booking had been moved when this was planned')),
                ('content', models.JSONField(blank=True, default=dict)),
                ('body', models.TextField(blank=True, help_text='of a call: the same on every try')),
                ('endpoint', models.CharField(blank=True, help_text='scheme://host:port', max_length=300)),
                ('state', models.CharField(choices=[('scheduled', 'scheduled'), ('sending', 'sending'), ('delivered', 'delivered'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('skipped', 'skipped'), ('expired', 'expired')], default='scheduled', max_length=9)),
                ('reason', common.db.message_field.MessageField(blank=True)),
                ('due_at', models.DateTimeField()),
                ('next_at', models.DateTimeField(blank=True, null=True)),
                ('expires_at', models.DateTimeField()),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('lapses', models.PositiveSmallIntegerField(default=0, help_text='tries whose worker was never heard of again')),
                ('lease_token', models.UUIDField(blank=True, editable=False, null=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField(auto_now=True, db_default=django.contrib.postgres.functions.TransactionNow())),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('request_id', models.CharField(blank=True, db_default='', default=common.observability.log_format.current_request_id, editable=False, max_length=100)),
                ('trace_parent', models.CharField(blank=True, db_default='', default=common.observability.tracing.current_trace_parent, editable=False, max_length=55)),
                ('app', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='apps_config.app')),
                ('booking', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='bookings.booking')),
                ('change', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bookings.statechange')),
                ('customer', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bookings.customer')),
                ('webhook', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='notifications.webhook')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('outcome', models.CharField(choices=[('ok', 'ok'), ('failed', 'failed'), ('unconfirmed', 'unconfirmed'), ('lost', 'lost')], db_default='ok', default='ok', max_length=11)),
                ('response_code', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('seconds', models.FloatField()),
                ('error', common.db.message_field.MessageField(blank=True)),
                ('excerpt', models.TextField(blank=True, help_text='the beginning of the answer')),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='apps_config.app')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='notifications.delivery')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['at'], name='attempt_recent')],
            },
        ),
        migrations.CreateModel(
            name='EmailTemplate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.CharField(max_length=40)),
                ('subject', models.CharField(max_length=200)),
                ('text', models.TextField(max_length=20000)),
                ('html', models.TextField(max_length=100000)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('app', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='email_templates', to='apps_config.app')),
            ],
            options={
                'verbose_name': 'e-mail template',
                'ordering': ['slug'],
                'constraints': [models.UniqueConstraint(fields=('app', 'slug'), name='email_template_once')],
            },
        ),
        migrations.CreateModel(
            name='LaneCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('type', models.CharField(max_length=8)),
                ('endpoint', models.CharField(blank=True, max_length=300)),
                ('next_at', models.DateTimeField()),
                ('waiting_since', models.DateTimeField(blank=True, help_text='When the oldest due delivery left in the lane was due.', null=True)),
                ('is_held', models.BooleanField(db_default=False, default=False, help_text='A circuit breaker or an earlier delivery holds the due deliveries back.')),
                ('transaction', models.BigIntegerField(db_default=0, default=0, help_text='The id of the transaction that inserted the row.')),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
            ],
            options={
                'verbose_name': 'delivery lane',
                'ordering': ['next_at', 'id'],
                'indexes': [models.Index(fields=['type', 'next_at', 'id'], name='lane_check_due'), models.Index(fields=['app', 'type', 'endpoint', 'next_at'], name='lane_check_of_lane'), models.Index(condition=models.Q(('waiting_since__isnull', False)), fields=['endpoint'], name='lane_check_waiting')],
            },
        ),
        migrations.CreateModel(
            name='Suppression',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.CharField(max_length=254)),
                ('reason', models.CharField(choices=[('bounced', 'E-mails bounce: no e-mails'), ('unsubscribed', 'Unsubscribed: no reminders')], max_length=12)),
                ('detail', models.CharField(blank=True, max_length=300)),
                ('created_at', models.DateTimeField()),
                ('app', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
            ],
            options={
                'verbose_name': 'suppressed address',
                'verbose_name_plural': 'suppressed addresses',
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(fields=('app', 'address', 'reason'), name='suppression_once')],
            },
        ),
        migrations.AddIndex(
            model_name='webhook',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['app'], name='webhook_of_app'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('next_at__isnull', False)), fields=['type', 'app', 'endpoint', 'next_at', 'id'], name='delivery_lane'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'sending')), fields=['type', 'endpoint', 'app'], name='delivery_in_flight'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['app', '-id'], name='delivery_listing'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['app', 'type', '-id'], name='delivery_listing_by_type'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'delivered'), _negated=True), fields=['app', 'state', '-id'], name='delivery_listing_by_state'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['app', 'updated_at'], name='delivery_updated'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('webhook__isnull', False)), fields=['webhook', '-id'], name='delivery_of_webhook'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('finished_at__isnull', False)), fields=['finished_at'], name='delivery_retention'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state__in', ['failed', 'expired'])), fields=['finished_at'], name='delivery_failures'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('change', 'number'), name='delivery_of_change_once'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('next_at__isnull', False), ('state__in', ['scheduled', 'sending'])), models.Q(('finished_at__isnull', False), ('next_at__isnull', True), ('state__in', ['delivered', 'failed', 'cancelled', 'skipped', 'expired'])), _connector='OR'), name='delivery_is_open_or_final'),
        ),
        RunSQLFile(__file__),
    ]
