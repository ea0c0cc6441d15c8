"""Remove an index that the planner prefers for a lane: a million due rows of another lane came first
in it, and a claim read them all. Claims read `delivery_lane` alone.
"""

from django.db import migrations

from common.concurrent_index import RemoveIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0021_office_names")]

    operations = [RemoveIndexOnline("delivery", "delivery_queue")]
