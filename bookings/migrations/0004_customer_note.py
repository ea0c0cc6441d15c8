import common.db.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0002_release_1_0'),
        ('bookings', '0003_booking_note'),
    ]

    operations = [
        migrations.CreateModel(
            name='CustomerNote',
            fields=[
                ('id', models.UUIDField(default=common.db.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('address', models.CharField(max_length=254)),
                ('note', models.TextField(max_length=8000)),
                ('app', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='apps_config.app')),
            ],
            options={
                'verbose_name': 'note on a customer',
                'verbose_name_plural': 'notes on customers',
                'constraints': [models.UniqueConstraint(fields=('app', 'address'), name='customer_note_once')],
            },
        ),
    ]
