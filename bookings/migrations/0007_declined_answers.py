from django.db import migrations, models

from common.db.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("bookings", "0006_customer_response"),
    ]

    operations = [
        AddIndexOnline(
            model_name="customer",
            index=models.Index(
                condition=models.Q(("response", "declined")),
                fields=["app", "-responded_at"],
                name="customer_declined",
            ),
        ),
    ]
