from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0016_booking_external_id_once")]

    operations = [
        migrations.AddField(
            model_name="customer",
            name="external_id",
            field=models.CharField(blank=True, editable=False, max_length=200, null=True),
        ),
    ]
