from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("bookings", "0008_booking_requires"),
    ]

    operations = [
        migrations.AddField(
            model_name='booking',
            name='party_size',
            field=models.SmallIntegerField(blank=True, help_text='people who come', null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='place',
            field=models.CharField(blank=True, max_length=100, null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='places',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='booking',
            name='quantity',
            field=models.SmallIntegerField(blank=True, help_text='units of the resource, or seats; empty: one', null=True),
        ),
    ]
