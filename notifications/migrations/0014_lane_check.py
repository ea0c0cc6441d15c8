"""LaneCheck, and the triggers that insert its rows for every writer of deliveries, also for those
of the previous release.

(Where a later migration makes Django rebuild notifications_delivery on SQLite, the triggers must
be made again.)
"""

import django.db.models.deletion
from django.db import migrations, models

from common.migration_sql import VendorSQL

# One transaction needs one row per lane: others see it, and the deliveries, after its commit only.
FUNCTION = """
CREATE FUNCTION {schema}.delivery_lane_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.notifications_lanecheck (type, app_id, endpoint, next_at, transaction)
    SELECT NEW.type, NEW.app_id, NEW.endpoint, NEW.next_at, txid_current()
    WHERE NOT EXISTS (
        SELECT FROM {schema}.notifications_lanecheck AS mine
        WHERE mine.app_id = NEW.app_id AND mine.type = NEW.type AND mine.endpoint = NEW.endpoint
        AND mine.next_at <= NEW.next_at AND mine.transaction = txid_current()
    );
    RETURN NULL;
END $$
"""
EARLIER = """NEW.next_at IS NOT NULL AND (
    OLD.next_at IS NULL OR NEW.next_at < OLD.next_at OR NEW.endpoint <> OLD.endpoint
)"""
POSTGRESQL = (
    FUNCTION,
    """CREATE TRIGGER delivery_lane_check_insert AFTER INSERT ON notifications_delivery FOR EACH ROW
    WHEN (NEW.next_at IS NOT NULL) EXECUTE FUNCTION {schema}.delivery_lane_check()""",
    f"""CREATE TRIGGER delivery_lane_check_update AFTER UPDATE OF next_at, endpoint
    ON notifications_delivery FOR EACH ROW
    WHEN ({EARLIER}) EXECUTE FUNCTION {{schema}}.delivery_lane_check()""",
)
# One writer at a time: a row that is there was not yet checked, or nothing is due before it.
INSERT = """INSERT INTO notifications_lanecheck
    (type, app_id, endpoint, next_at, is_held, "transaction")
    SELECT NEW.type, NEW.app_id, NEW.endpoint, NEW.next_at, 0, 0 WHERE NOT EXISTS (
        SELECT 1 FROM notifications_lanecheck AS present
        WHERE present.app_id = NEW.app_id AND present.type = NEW.type
        AND present.endpoint = NEW.endpoint AND present.next_at <= NEW.next_at
    );"""
SQLITE = (
    f"""CREATE TRIGGER delivery_lane_check_insert AFTER INSERT ON notifications_delivery
    WHEN NEW.next_at IS NOT NULL BEGIN {INSERT} END""",
    f"""CREATE TRIGGER delivery_lane_check_update AFTER UPDATE OF next_at, endpoint
    ON notifications_delivery WHEN {EARLIER} BEGIN {INSERT} END""",
)

class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0006_request_count"),
        ("notifications", "0013_fill_app"),
    ]

    operations = [
        migrations.CreateModel(
            name="LaneCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("type", models.CharField(max_length=8)),
                ("endpoint", models.CharField(blank=True, max_length=300)),
                ("next_at", models.DateTimeField()),
                (
                    "waiting_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the oldest due delivery left in the lane was due.",
                        null=True,
                    ),
                ),
                (
                    "is_held",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="A circuit breaker or an earlier delivery holds the due"
                        " deliveries back.",
                    ),
                ),
                (
                    "transaction",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The id of the transaction that inserted the row.",
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="apps_config.app",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery lane",
                "ordering": ["next_at", "id"],
                "indexes": [
                    models.Index(fields=["type", "next_at", "id"], name="lane_check_due"),
                    models.Index(
                        fields=["app", "type", "endpoint", "next_at"], name="lane_check_of_lane"
                    ),
                    models.Index(
                        condition=models.Q(("waiting_since__isnull", False)),
                        fields=["endpoint"],
                        name="lane_check_waiting",
                    ),
                ],
            },
        ),
        VendorSQL(postgresql=POSTGRESQL, sqlite=SQLITE),
    ]
