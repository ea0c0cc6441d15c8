from django.db import migrations, models

from common.db.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("external_calendars", "0006_calendars_without_video_calls"),
    ]

    operations = [
        AddIndexOnline(
            model_name="connection",
            index=models.Index(
                condition=models.Q(("grant__isnull", False), ("lease_token__isnull", False)),
                fields=["grant"],
                name="connection_in_sync",
            ),
        ),
    ]
