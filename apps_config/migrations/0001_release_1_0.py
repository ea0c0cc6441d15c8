import common.db.ids
import common.email_address
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
import simple_history.models
from django.conf import settings
from django.db import migrations, models
from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='App',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.CharField(max_length=100, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('mode', models.CharField(choices=[('live', 'live'), ('test', 'test')], default='live', max_length=4)),
                ('settings', models.JSONField(blank=True, default=dict)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='AppNotification',
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
            ],
            options={
                'ordering': ['position', 'id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Credential',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('server', 'server'), ('widget', 'widget'), ('access', 'access'), ('resource', 'resource')], max_length=8)),
                ('prefix', models.CharField(editable=False, max_length=40, unique=True)),
                ('secret_hash', models.CharField(editable=False, max_length=64)),
                ('public_text', models.CharField(blank=True, editable=False, max_length=100)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('projects', models.JSONField(blank=True, help_text='ids of the only projects that it may use; empty: any', null=True)),
                ('origins', models.JSONField(blank=True, help_text='the only web origins that may use it; empty: any', null=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True, db_default=django.contrib.postgres.functions.TransactionNow())),
            ],
            options={
                'verbose_name': 'API key',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='FailedLogin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.CharField(max_length=64)),
                ('minute', models.PositiveIntegerField(help_text='minutes since 1970, UTC')),
                ('count', models.PositiveIntegerField()),
                ('last_at', models.DateTimeField(help_text='of the latest wrong password', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='HistoricalApp',
            fields=[
                ('id', models.UUIDField(db_index=True, default=common.db.ids.new_id, editable=False)),
                ('slug', models.CharField(db_index=True, max_length=100)),
                ('name', models.CharField(max_length=200)),
                ('mode', models.CharField(choices=[('live', 'live'), ('test', 'test')], default='live', max_length=4)),
                ('settings', models.JSONField(blank=True, default=dict)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(blank=True, editable=False)),
                ('history_id', models.AutoField(primary_key=True, serialize=False)),
                ('history_date', models.DateTimeField(db_index=True)),
                ('history_change_reason', models.CharField(max_length=100, null=True)),
                ('history_type', models.CharField(choices=[('+', 'Created'), ('~', 'Changed'), ('-', 'Deleted')], max_length=1)),
            ],
            options={
                'verbose_name': 'historical app',
                'verbose_name_plural': 'historical apps',
                'ordering': ('-history_date', '-history_id'),
                'get_latest_by': ('history_date', 'history_id'),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('request_hash', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.BinaryField(null=True)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('editor', 'editor'), ('owner', 'owner')], max_length=6)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('sent_at', models.DateTimeField(help_text='when the latest e-mail was requested')),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ListingTally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('listing', models.CharField(max_length=12)),
                ('part', models.CharField(help_text='what a filter names, such as a state', max_length=60)),
                ('slot', models.PositiveSmallIntegerField()),
                ('count', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('editor', 'editor'), ('owner', 'owner')], default='viewer', max_length=6)),
            ],
            options={
                'verbose_name': 'team member',
                'verbose_name_plural': 'team',
            },
        ),
        migrations.CreateModel(
            name='RequestCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=64)),
                ('subject', models.CharField(max_length=64)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('count', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(max_length=2000)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['name', 'id'],
            },
        ),
        migrations.CreateModel(
            name='SecurityEvent',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('actor', models.CharField(help_text='an address, a key or a command', max_length=254)),
                ('kind', models.CharField(max_length=24)),
                ('network', models.CharField(blank=True, max_length=45)),
                ('user_agent', models.CharField(blank=True, max_length=200)),
                ('about', models.JSONField(blank=True, default=dict)),
                ('count', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Account',
            fields=[
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(max_length=254, unique=True, validators=[common.email_address.check_address])),
                ('name', models.CharField(blank=True, max_length=200)),
                ('is_staff', models.BooleanField(default=False)),
                ('is_active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'ordering': ['email'],
            },
        ),
        migrations.CreateModel(
            name='AppLogo',
            fields=[
                ('app', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='logo', serialize=False, to='apps_config.app')),
                ('content', models.BinaryField()),
                ('type', models.CharField(max_length=32)),
                ('digest', models.CharField(max_length=64)),
            ],
        ),
        migrations.AddConstraint(
            model_name='app',
            constraint=models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='app_mode'),
        ),
        migrations.AddField(
            model_name='appnotification',
            name='app',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='event_notifications', to='apps_config.app'),
        ),
        migrations.AddField(
            model_name='credential',
            name='account',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='credentials', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='credential',
            name='app',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='credentials', to='apps_config.app'),
        ),
        migrations.AddConstraint(
            model_name='failedlogin',
            constraint=models.UniqueConstraint(fields=('address', 'minute'), name='failed_login_once'),
        ),
        migrations.AddField(
            model_name='historicalapp',
            name='history_user',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='idempotencyrecord',
            name='credential',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.credential'),
        ),
        migrations.AddField(
            model_name='invitation',
            name='app',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='apps_config.app'),
        ),
        migrations.AddField(
            model_name='listingtally',
            name='app',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app'),
        ),
        migrations.AddField(
            model_name='membership',
            name='account',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='membership',
            name='app',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='apps_config.app'),
        ),
        migrations.AddField(
            model_name='requestcount',
            name='app',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app'),
        ),
        migrations.AddField(
            model_name='savedfilter',
            name='account',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='savedfilter',
            name='app',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to='apps_config.app'),
        ),
        migrations.AddField(
            model_name='securityevent',
            name='account',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='securityevent',
            name='app',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app'),
        ),
        migrations.AddConstraint(
            model_name='idempotencyrecord',
            constraint=models.UniqueConstraint(fields=('credential', 'key'), name='idempotency_key_once'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.UniqueConstraint(condition=models.Q(('accepted_at', None), ('revoked_at', None)), fields=('app', 'email'), name='invitation_open_once'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ('viewer', 'editor', 'owner'))), name='invitation_role'),
        ),
        migrations.AddConstraint(
            model_name='listingtally',
            constraint=models.UniqueConstraint(fields=('app', 'listing', 'part', 'slot'), name='listing_tally_once'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('account', 'app'), name='membership_once'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'editor', 'owner'])), name='membership_role'),
        ),
        migrations.AddConstraint(
            model_name='requestcount',
            constraint=models.UniqueConstraint(fields=('app', 'kind', 'subject', 'expires_at'), name='request_count_once'),
        ),
        migrations.AddConstraint(
            model_name='savedfilter',
            constraint=models.UniqueConstraint(fields=('account', 'app', 'name'), name='saved_filter_once'),
        ),
        migrations.AddIndex(
            model_name='securityevent',
            index=models.Index(fields=['app', '-id'], name='security_event_of_app'),
        ),
        migrations.AddIndex(
            model_name='securityevent',
            index=models.Index(fields=['account', 'network', '-id'], name='security_event_of_account'),
        ),
        RunSQLFile(__file__),
    ]
