"""The indexes of events that limits count though they block no more, and of all-day events.

Writers go on while they are built.
"""

from django.db import migrations, models

from common.concurrent_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("availability", "0007_database_defaults")]

    operations = [
        AddIndexOnline(
            "event",
            models.Index(
                fields=["project", "resource", "end"],
                condition=models.Q(busy=False, project__isnull=False),
                name="event_project_ended",
            ),
        ),
        AddIndexOnline(
            "event",
            models.Index(fields=["end"], condition=models.Q(all_day=True), name="event_all_day"),
        ),
    ]
