"""Triggers that keep `ListingTally`, for migrations.

Names are qualified, and each row is counted by itself: distributed tables have neither the search
path nor the transition tables. Whoever loads more than some thousand rows in one transaction
disables the triggers and counts afterwards (`count_rows`), because each change of a count within a
transaction reads the versions before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from common.migration_sql import RunWithoutModels

# Concurrent transactions seldom wait for the lock of one count: each connection has one of these.
SLOTS = 32

COLUMNS = "app_id, listing, part, period, slot, count"
ADD_UP = """ON CONFLICT (app_id, listing, part, period, slot)
        DO UPDATE SET count = {tally}.count + excluded.count;"""

FUNCTION = """
CREATE OR REPLACE FUNCTION {schema}tally_{listing}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN {insert}
        VALUES (NEW.app_id, '{listing}', {new_part}, {new_period}, {slot}, 1) {add_up}
    ELSIF TG_OP = 'DELETE' THEN {insert}
        VALUES (OLD.app_id, '{listing}', {old_part}, {old_period}, {slot}, -1) {add_up}
    ELSE {insert}
        SELECT app_id, '{listing}', part, period, {slot}, sum(change) FROM (
            SELECT OLD.app_id, {old_part}, {old_period}, -1 WHERE {old_shown}
            UNION ALL SELECT NEW.app_id, {new_part}, {new_period}, 1 WHERE {new_shown}
        ) AS changes (app_id, part, period, change)
        GROUP BY app_id, part, period HAVING sum(change) <> 0
        ORDER BY app_id, part, period {add_up}
    END IF;
    RETURN NULL;
END $$"""


@dataclass(frozen=True, kw_only=True)
class TalliedTable:
    """A table that `ListingTally` counts: a part and a period of each row that is shown.

    `part`, `period` (for each database) and `shown` are SQL of the row `{row}`; they read the
    columns `columns`.
    """

    listing: str
    table: str
    columns: tuple[str, ...]
    part: str
    period: Mapping[str, str]
    shown: str = "TRUE"

    def triggers(self, vendor: str, schema: str) -> list[str]:
        """Return the statements that create the triggers; run before, they replace them."""
        return self._on_postgresql(schema) if vendor == "postgresql" else self._on_sqlite()

    def dropped_triggers(self, vendor: str, schema: str) -> list[str]:
        place = f" ON {self.table}" if vendor == "postgresql" else ""
        dropped = [
            f"DROP TRIGGER IF EXISTS tally_{self.listing}_{event}{place}"
            for event in ("insert", "update", "delete")
        ]
        if vendor == "postgresql":
            dropped.append(f"DROP FUNCTION IF EXISTS {schema}tally_{self.listing}()")
        return dropped

    def count_rows(self, vendor: str) -> str:
        """Return the query of app, part, period and count of all shown rows."""
        part, period, shown = self._expressions(vendor, "counted")
        return (
            f"SELECT app_id, {part}, {period}, count(*) FROM {self.table} AS counted"  # noqa: S608 # nosec B608
            f" WHERE {shown} GROUP BY 1, 2, 3"
        )

    def _expressions(self, vendor: str, row: str) -> tuple[str, str, str]:
        part, period, shown = self.part, self.period[vendor], self.shown
        return part.format(row=row), period.format(row=row), shown.format(row=row)

    def _on_postgresql(self, schema: str) -> list[str]:
        new_part, new_period, new_shown = self._expressions("postgresql", "NEW")
        old_part, old_period, old_shown = self._expressions("postgresql", "OLD")
        function = FUNCTION.format(
            schema=schema,
            listing=self.listing,
            insert=f"INSERT INTO {schema}apps_config_listingtally AS tally ({COLUMNS})",
            add_up=ADD_UP.format(tally="tally"),
            slot=f"pg_backend_pid() % {SLOTS}",
            **{"new_part": new_part, "new_period": new_period, "new_shown": new_shown},
            **{"old_part": old_part, "old_period": old_period, "old_shown": old_shown},
        )
        columns = ("app_id", *self.columns)
        old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
        conditions = {
            "insert": ("INSERT", new_shown),
            "update": (f"UPDATE OF {', '.join(columns)}", f"({old}) IS DISTINCT FROM ({new})"),
            "delete": ("DELETE", old_shown),
        }
        return [
            function,
            *(
                f"CREATE OR REPLACE TRIGGER tally_{self.listing}_{name} AFTER {event}"
                f" ON {self.table} FOR EACH ROW WHEN ({condition})"
                f" EXECUTE FUNCTION {schema}tally_{self.listing}()"
                for name, (event, condition) in conditions.items()
            ),
        ]

    def _on_sqlite(self) -> list[str]:
        """SQLite has one writer: slot 0 is enough."""
        add, take = (
            self._change_on_sqlite(row, change) for row, change in (("NEW", 1), ("OLD", -1))
        )
        columns = ", ".join(("app_id", *self.columns))
        events = {"insert": ("INSERT", add), "delete": ("DELETE", take)}
        events["update"] = (f"UPDATE OF {columns}", f"{take} {add}")
        return [
            f"CREATE TRIGGER tally_{self.listing}_{name} AFTER {event} ON {self.table}"
            f" BEGIN {statements} END"
            for name, (event, statements) in events.items()
        ]

    def _change_on_sqlite(self, row: str, change: int) -> str:
        part, period, shown = self._expressions("sqlite", row)
        values = f"{row}.app_id, '{self.listing}', {part}, {period}, 0, {change}"
        return (
            f"INSERT INTO apps_config_listingtally ({COLUMNS}) SELECT {values} WHERE {shown} "  # nosec B608
            + ADD_UP.format(tally="apps_config_listingtally")
        )


class AddListingTally(RunWithoutModels):
    """Create the triggers, and count the rows from before. The migration needs `atomic = False`,
    and can be run again where it was interrupted.
    """

    def __init__(self, tallied: TalliedTable) -> None:
        self.tallied = tallied
        super().__init__(self.add, self.remove)

    def add(self, apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
        if editor.collect_sql:
            self._create(editor)
        elif editor.connection.vendor == "postgresql":
            self._add_under_traffic(editor)
        else:
            with transaction.atomic(using=editor.connection.alias):
                self._create(editor)
                insert_initial_counts(editor.connection, self.tallied, editor.connection)

    def _add_under_traffic(self, editor: BaseDatabaseSchemaEditor) -> None:
        """Count by a snapshot that has exactly the rows that the triggers do not see."""
        reader = editor.connection.copy()
        try:
            with transaction.atomic(using=editor.connection.alias):
                # Its lock waits for all writers and lets none begin until the commit.
                self._create(editor)
                with reader.cursor() as cursor:
                    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    cursor.execute("SET LOCAL statement_timeout = 0")
                    cursor.execute("SELECT 1")  # takes the snapshot
            insert_initial_counts(editor.connection, self.tallied, reader)
        finally:
            reader.close()

    def _create(self, editor: BaseDatabaseSchemaEditor) -> None:
        vendor, schema = editor.connection.vendor, current_schema(editor.connection)
        for statement in self.tallied.triggers(vendor, schema):
            editor.execute(statement, params=None)
        if not editor.collect_sql:
            with editor.connection.cursor() as cursor:
                forget = "DELETE FROM apps_config_listingtally WHERE listing = %s"
                cursor.execute(forget, [self.tallied.listing])

    def remove(self, apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
        vendor, schema = editor.connection.vendor, current_schema(editor.connection)
        for statement in self.tallied.dropped_triggers(vendor, schema):
            editor.execute(statement, params=None)


def insert_initial_counts(
    connection: BaseDatabaseWrapper, tallied: TalliedTable, reader: BaseDatabaseWrapper
) -> None:
    """Add the number of all rows that `reader` sees, in the slot that no trigger writes."""
    with reader.cursor() as cursor:
        cursor.execute(tallied.count_rows(connection.vendor))
        counts = cursor.fetchall()
    insert = (
        f"INSERT INTO apps_config_listingtally ({COLUMNS})"  # noqa: S608 # nosec B608
        f" VALUES (%s, '{tallied.listing}', %s, %s, {SLOTS}, %s)"
    )
    with connection.cursor() as cursor:
        cursor.executemany(insert, counts)


def current_schema(connection: BaseDatabaseWrapper) -> str:
    """Return the quoted schema of new tables with a dot; empty on SQLite."""
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        return f"{cursor.fetchone()[0]}."
