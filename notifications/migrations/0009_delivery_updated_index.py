from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0008_delivery_updated_at")]

    operations = [
        AddIndexOnline(
            model_name="delivery",
            index=models.Index(fields=["app", "updated_at"], name="delivery_updated"),
        ),
    ]
