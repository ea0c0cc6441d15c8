"""Fill the new columns of the attempts, deliveries and plans of older releases."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from common.migration_sql import (
    FillColumns,
    RunWithoutModels,
    VendorSQL,
    add_and_validate_not_null,
    app_of,
    epoch_ms,
    ordered_uuid,
    unique_index,
    validate_not_null,
)

DELIVERYS_APP = app_of("notifications_delivery", "delivery_id")
LATEST = """(SELECT max(earlier.at) FROM notifications_attempt AS earlier
    WHERE earlier.delivery_id = notifications_attempt.delivery_id
      AND earlier.id <= notifications_attempt.id)"""
UUID = ordered_uuid(epoch_ms(LATEST), "id", DELIVERYS_APP)

DELIVERY = "ALTER TABLE notifications_delivery"


def change_of(table: str) -> str:
    return f"(SELECT log.uuid FROM bookings_statechange AS log WHERE log.id = {table}.change_id)"  # nosec B608


def drop_old_keys(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """`change_uuid` has a key to the same row: checking both would cost twice."""
    if editor.connection.vendor != "postgresql":
        return
    with editor.connection.cursor() as cursor:
        cursor.execute(
            """SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint
            JOIN pg_attribute ON attrelid = conrelid AND conkey = ARRAY[attnum]
            WHERE contype = 'f' AND attname = 'change_id' AND conrelid IN
            ('notifications_delivery'::regclass, 'notifications_plan'::regclass)"""
        )
        found = cursor.fetchall()
    for table, name in found:
        editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}", params=None)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0012_app_columns")]

    operations = [
        FillColumns("notifications_attempt", {"app_id": DELIVERYS_APP, "uuid": UUID}),
        FillColumns(
            "notifications_delivery",
            {"change_uuid": change_of("notifications_delivery")},
            where="change_id IS NOT NULL",
        ),
        FillColumns(
            "notifications_plan", {"change_uuid": change_of("notifications_plan")}, key="change_id"
        ),
        VendorSQL(
            # Where the migration was interrupted.
            postgresql=[f"{DELIVERY} DROP CONSTRAINT IF EXISTS delivery_of_change_once"],
            sqlite=[],
        ),
        unique_index("attempt_uuid", "notifications_attempt (uuid)"),
        unique_index("plan_change_uuid", "notifications_plan (change_uuid)"),
        unique_index("delivery_of_change_once", "notifications_delivery (change_uuid, number)"),
        VendorSQL(
            postgresql=[
                f"{DELIVERY} ADD CONSTRAINT delivery_of_change_once"
                " UNIQUE USING INDEX delivery_of_change_once",
                # The new constraint says the same: checking both would cost twice.
                f"{DELIVERY} DROP CONSTRAINT IF EXISTS delivery_once",
                validate_not_null("notifications_attempt", "app_id"),
                *add_and_validate_not_null("notifications_attempt", "uuid"),
                *add_and_validate_not_null("notifications_plan", "change_uuid"),
            ],
            sqlite=[],
        ),
        RunWithoutModels(drop_old_keys, migrations.RunPython.noop),
    ]
