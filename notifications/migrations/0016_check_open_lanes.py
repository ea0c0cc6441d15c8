"""Rows of LaneCheck for the deliveries that were written before its triggers."""

from django.db import migrations

INSERT = """
INSERT INTO notifications_lanecheck (type, app_id, endpoint, next_at)
SELECT type, app_id, endpoint, min(next_at) FROM notifications_delivery
WHERE next_at IS NOT NULL GROUP BY type, app_id, endpoint
"""


class Migration(migrations.Migration):
    dependencies = [("notifications", "0015_delivery_lane_index")]

    operations = [migrations.RunSQL(INSERT, migrations.RunSQL.noop)]
