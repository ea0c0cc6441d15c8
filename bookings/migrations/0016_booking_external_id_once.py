from django.db import migrations, models

from common.db.concurrent_index import AddUniqueConstraintOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0015_booking_external_id")]

    operations = [
        AddUniqueConstraintOnline(
            model_name="booking",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at", None), ("external_id__isnull", False)),
                fields=("app", "external_id"),
                name="booking_external_id_once",
            ),
        ),
    ]
