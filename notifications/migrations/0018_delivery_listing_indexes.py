from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0017_delivery_tally")]

    operations = [
        AddIndexOnline(
            "delivery",
            models.Index(fields=["app", "type", "-id"], name="delivery_listing_by_type"),
        ),
        AddIndexOnline(
            "delivery",
            models.Index(
                fields=["app", "state", "-id"],
                condition=~models.Q(state="delivered"),
                name="delivery_listing_by_state",
            ),
        ),
    ]
