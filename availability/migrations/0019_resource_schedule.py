from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0018_schedule")]

    operations = [
        AddIndexOnline(
            "resource",
            models.Index(
                fields=["schedule"],
                condition=models.Q(schedule__isnull=False),
                name="resource_schedule",
            ),
        ),
    ]
