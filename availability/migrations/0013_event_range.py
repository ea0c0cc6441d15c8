"""The index of the times of events, for lists of a range."""

from django.db import migrations

from common.concurrent_index import AddPostgreSQLIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0012_fill_event_app")]

    operations = [
        AddPostgreSQLIndex(
            "event_range", "availability_event USING gist (tstzrange(start, \"end\"))"
        ),
    ]
