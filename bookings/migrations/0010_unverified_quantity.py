from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("bookings", "0009_booking_quantity"),
    ]

    operations = [
        migrations.AddField(
            model_name='unverifiedbooking',
            name='place',
            field=models.CharField(blank=True, max_length=100, null=True),
        ),
        migrations.AddField(
            model_name='unverifiedbooking',
            name='quantity',
            field=models.SmallIntegerField(blank=True, help_text='units or seats; empty: one', null=True),
        ),
    ]
