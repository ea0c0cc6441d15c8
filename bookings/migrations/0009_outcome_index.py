from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0008_outcome")]

    operations = [
        AddIndexOnline(
            model_name="booking",
            index=models.Index(
                condition=models.Q(deleted_at=None, outcome__isnull=False),
                fields=["app", "outcome", "-created_at", "-id"],
                name="booking_outcome",
            ),
        ),
    ]
