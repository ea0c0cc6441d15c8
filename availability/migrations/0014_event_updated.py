from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0013_event_range")]

    operations = [
        AddIndexOnline("event", models.Index(fields=["updated_at"], name="event_updated")),
    ]
