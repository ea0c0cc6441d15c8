from django.db import migrations, models

from common.db.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0017_customer_external_id")]

    operations = [
        AddIndexOnline(
            model_name="customer",
            index=models.Index(
                condition=models.Q(("external_id__isnull", False)),
                fields=["external_id"],
                name="customer_external_id",
            ),
        ),
    ]
