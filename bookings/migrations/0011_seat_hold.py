import common.db.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0004_dark_logo'),
        ("bookings", "0010_unverified_quantity"),
    ]

    operations = [
        migrations.CreateModel(
            name='SeatHold',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('quantity', models.SmallIntegerField()),
                ('place', models.CharField(blank=True, max_length=100, null=True)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('extensions', models.PositiveSmallIntegerField(default=0)),
                ('client_address', models.CharField(blank=True, help_text="of a widget key's caller, who gets only a few", max_length=64)),
                ('created_at', models.DateTimeField()),
                ('app', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
                ('group', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seat_holds', to='bookings.booking')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('client_address', ''), _negated=True), fields=['client_address', 'expires_at'], name='seat_hold_by_address')],
            },
        ),
    ]
