from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0014_lane_check")]

    operations = [
        AddIndexOnline(
            model_name="delivery",
            index=models.Index(
                fields=["type", "app", "endpoint", "next_at", "id"],
                condition=models.Q(("next_at__isnull", False)),
                name="delivery_lane",
            ),
        ),
    ]
