"""The index of the times of events, for lists of a range."""

from django.db import migrations

from common.concurrent_index import AddPostgreSQLIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0008_event_indexes")]

    operations = [
        AddPostgreSQLIndex(
            "event_range", "availability_event USING gist (tstzrange(start, \"end\"))"
        ),
    ]
