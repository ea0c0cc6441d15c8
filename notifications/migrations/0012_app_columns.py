"""`app_id` and the key `uuid` of attempts; `change_uuid` of deliveries and plans.

The release before writes and reads `attempt.id` and `change_id`, which the models no longer have:
triggers fill whichever is missing. A later release removes the old columns.
"""

import django.db.models.deletion
from django.db import migrations, models

import common.ids
from common.migration_sql import (
    VendorSQL,
    add_app_column,
    add_not_null,
    fixed_app,
    parents_app_triggers,
)

REFERENCE = "REFERENCES bookings_statechange (uuid) DEFERRABLE INITIALLY DEFERRED"
ONE_IS_MISSING = "(NEW.change_id IS NULL) <> (NEW.change_uuid IS NULL)"
FUNCTION = """
CREATE FUNCTION {schema}.notifications_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.change_uuid IS NULL THEN
        SELECT uuid INTO NEW.change_uuid FROM {schema}.bookings_statechange
        WHERE id = NEW.change_id;
    ELSE
        SELECT id INTO NEW.change_id FROM {schema}.bookings_statechange
        WHERE uuid = NEW.change_uuid;
    END IF;
    RETURN NEW;
END $$"""


def on_postgresql(table: str) -> list[str]:
    return [
        f"ALTER TABLE {table} ADD COLUMN change_uuid uuid NULL"
        f" CONSTRAINT {table.partition('_')[2]}_change_uuid {REFERENCE}",
        f"CREATE TRIGGER change_on_insert BEFORE INSERT ON {table} FOR EACH ROW"
        f" WHEN ({ONE_IS_MISSING}) EXECUTE FUNCTION {{schema}}.notifications_change()",
    ]


def on_sqlite(table: str) -> str:
    return f"""CREATE TRIGGER {table}_change_on_insert AFTER INSERT ON {table}
    WHEN {ONE_IS_MISSING} BEGIN UPDATE {table} SET
        change_id = coalesce(change_id,
            (SELECT id FROM bookings_statechange WHERE uuid = NEW.change_uuid)),
        change_uuid = coalesce(change_uuid,
            (SELECT uuid FROM bookings_statechange WHERE id = NEW.change_id))
    WHERE rowid = NEW.rowid; END"""  # nosec B608


# SQLite checks NOT NULL before a trigger can fill the column, so the table is made anew.
PLAN_ON_SQLITE = (
    "ALTER TABLE notifications_plan RENAME TO notifications_plan_old",
    f"""CREATE TABLE notifications_plan (
        change_id bigint NULL UNIQUE,
        planned smallint unsigned NOT NULL CHECK (planned >= 0),
        purged smallint unsigned NOT NULL CHECK (purged >= 0),
        change_uuid char(32) NULL UNIQUE {REFERENCE}
    )""",
    """INSERT INTO notifications_plan (change_id, planned, purged)
    SELECT change_id, planned, purged FROM notifications_plan_old""",
    "DROP TABLE notifications_plan_old",
)


class Migration(migrations.Migration):
    dependencies = [
        ("bookings", "0014_fill_app"),
        ("notifications", "0011_delivery_request"),
    ]

    operations = [
        add_app_column("attempt"),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                VendorSQL(
                    postgresql=[
                        "ALTER TABLE notifications_attempt ADD COLUMN uuid uuid NULL",
                        FUNCTION,
                        *on_postgresql("notifications_delivery"),
                        *on_postgresql("notifications_plan"),
                    ],
                    sqlite=[
                        "ALTER TABLE notifications_attempt ADD COLUMN uuid char(32) NULL",
                        f"ALTER TABLE notifications_delivery ADD COLUMN change_uuid char(32) NULL"
                        f" {REFERENCE}",
                        *PLAN_ON_SQLITE,
                        on_sqlite("notifications_delivery"),
                        on_sqlite("notifications_plan"),
                    ],
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    "attempt",
                    "id",
                    models.UUIDField(
                        db_column="uuid",
                        default=common.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                migrations.RemoveConstraint("delivery", "delivery_once"),
                migrations.AlterField(
                    "delivery",
                    "change",
                    models.ForeignKey(
                        blank=True,
                        db_column="change_uuid",
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="bookings.statechange",
                    ),
                ),
                migrations.AddConstraint(
                    "delivery",
                    models.UniqueConstraint(
                        fields=("change", "number"), name="delivery_of_change_once"
                    ),
                ),
                migrations.AlterField(
                    "plan",
                    "change",
                    models.OneToOneField(
                        db_column="change_uuid",
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="delivery_plan",
                        serialize=False,
                        to="bookings.statechange",
                    ),
                ),
            ],
        ),
        fixed_app("notifications_delivery"),
        parents_app_triggers(
            "notifications_attempt", "notifications_delivery", "delivery_id", uuid=True
        ),
        VendorSQL(
            postgresql=[
                add_not_null("notifications_attempt", "app_id"),
            ],
            sqlite=[],
        ),
    ]
