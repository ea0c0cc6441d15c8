"""SQL of migrations: triggers, and columns that are filled while the previous release writes.

Statements name every table and function with the schema in which they are created (`{schema}.`):
the body of a function is read with the search path of whoever fires its trigger.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState, StateApps

MAX_ROWS_PER_UPDATE = 2000


class RunWithoutModels(migrations.RunPython):
    """`RunPython` for a function that uses no models: its `apps` has none.

    For `RunPython`, Django builds the classes of all models again: a tenth of a second.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        super().database_forwards(app_label, schema_editor, ProjectState(), ProjectState())

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, ProjectState(), ProjectState())


class VendorSQL(RunWithoutModels):
    """Run the statements of the connection's database; `{schema}.` is the current schema."""

    def __init__(self, *, postgresql: Sequence[str], sqlite: Sequence[str]) -> None:
        statements = {"postgresql": postgresql, "sqlite": sqlite}

        def run(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
            schema = current_schema(editor)
            for statement in statements[editor.connection.vendor]:
                editor.execute(statement.replace("{schema}.", schema), params=None)

        super().__init__(run, migrations.RunPython.noop)


def current_schema(editor: BaseDatabaseSchemaEditor) -> str:
    """Return the quoted schema of new tables with a dot; empty on SQLite."""
    if editor.connection.vendor != "postgresql":
        return ""
    with editor.connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        return f"{cursor.fetchone()[0]}."


# --- Columns that are filled later ----------------------------------------------------------------
def add_not_null(table: str, column: str) -> str:
    """Refuse null in new rows on PostgreSQL; `validate_not_null` proves it of the older ones."""
    condition = f"CHECK ({column} IS NOT NULL) NOT VALID"
    return f"ALTER TABLE {table} ADD CONSTRAINT {_not_null_name(table, column)} {condition}"


def add_and_validate_not_null(table: str, column: str) -> list[str]:
    """The same, in a migration that can be run again."""
    drop = f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {_not_null_name(table, column)}"
    return [drop, add_not_null(table, column), validate_not_null(table, column)]


def validate_not_null(table: str, column: str) -> str:
    return f"ALTER TABLE {table} VALIDATE CONSTRAINT {_not_null_name(table, column)}"


def _not_null_name(table: str, column: str) -> str:
    return f"{table.partition('_')[2]}_{column}_not_null"


class FillColumns(RunWithoutModels):
    """Fill columns of existing rows in batches, each in a transaction of its own.

    columns: column -> SQL of its value, or such SQL per vendor. where: which rows have a value.
    key: the column of the index by which rows are read. The migration needs `atomic = False`, and
    can be run again where it was interrupted.
    """

    def __init__(
        self,
        table: str,
        columns: Mapping[str, str | Mapping[str, str]],
        *,
        where: str = "TRUE",
        key: str = "id",
    ) -> None:
        self.table, self.columns, self.where, self.key = table, columns, where, key
        super().__init__(self.fill, migrations.RunPython.noop)

    def fill(self, apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
        """First the rows that nobody has locked, so that no writer waits in a deadlock; then the
        others one by one.
        """
        self._pass(editor, MAX_ROWS_PER_UPDATE, " FOR NO KEY UPDATE SKIP LOCKED")
        self._pass(editor, 1, " FOR NO KEY UPDATE")

    def _pass(self, editor: BaseDatabaseSchemaEditor, rows: int, lock: str) -> None:
        vendor, key = editor.connection.vendor, self.key
        values = {
            column: value if isinstance(value, str) else value[vendor]
            for column, value in self.columns.items()
        }
        missing = " OR ".join(f"{column} IS NULL" for column in values)
        batch = (
            f"SELECT {key} FROM {self.table} WHERE {self.where} AND ({missing}){{after}}"  # noqa: S608 # nosec B608
            f" ORDER BY {key} LIMIT {rows}{lock if vendor == 'postgresql' else ''}"
        )
        assigned = ", ".join(f"{column} = {value}" for column, value in values.items())
        update = (  # a percent sign of a value is no placeholder
            f"UPDATE {self.table} SET {assigned} WHERE {key} IN ({batch})"  # noqa: S608 # nosec B608
            f" RETURNING {key}"
        )
        last: list[Any] = []
        while True:
            with editor.connection.cursor() as cursor:
                after = f" AND {key} > %s" if last else ""
                cursor.execute(update.replace("%", "%%").replace("{after}", after), last)
                keys = [row[0] for row in cursor.fetchall()]
            if not keys:
                return
            last = [max(keys)]


# --- UUIDs in the order of a counter --------------------------------------------------------------
def epoch_ms(instant: str) -> dict[str, str]:
    """Return SQL for the Unix milliseconds of an instant, per vendor."""
    return {
        "postgresql": f"floor(extract(epoch FROM {instant}) * 1000)::bigint",
        "sqlite": f"CAST(round((julianday({instant}) - 2440587.5) * 86400000) AS integer)",
    }


_NOW_MS = {
    "postgresql": epoch_ms("clock_timestamp()")["postgresql"],
    "sqlite": epoch_ms("'now'")["sqlite"],
}
# The last digit of a home has two bits of it, and two random ones, which are cleared.
_CLEARED = "000044448888cccc"


def ordered_uuid(ms: str | Mapping[str, str], counter: str, app_id: str) -> dict[str, str]:
    """Return SQL for an id as `common.ids` makes it, with a counter in place of random bits.

    ms: SQL for the Unix milliseconds, or such SQL per vendor.
    """
    ms_of = {"postgresql": ms, "sqlite": ms} if isinstance(ms, str) else ms
    hex_digits = f"replace({app_id}::text, '-', '')"
    home_of = (
        "CASE WHEN substr({app}, 13, 1) = '8' THEN substr({app}, 17, 2) || {last} ELSE '800' END"
    )
    postgresql = home_of.format(
        app=hex_digits,
        last=f"translate(substr({hex_digits}, 19, 1), '0123456789abcdef', '{_CLEARED}')",
    )
    sqlite = home_of.format(
        app=app_id,
        last=f"substr('{_CLEARED}', instr('0123456789abcdef', substr({app_id}, 19, 1)), 1)",
    )
    return {
        "postgresql": f"(lpad(to_hex({ms_of['postgresql']}), 12, '0') || '8000' || {postgresql}"
        f" || lpad(to_hex({counter}), 13, '0'))::uuid",
        "sqlite": f"printf('%012x', {ms_of['sqlite']}) || '8000' || {sqlite}"
        f" || printf('%013x', {counter})",
    }


def unique_index(name: str, columns: str) -> VendorSQL:
    """Build a unique index on `table (columns)` while the table is in use."""
    return VendorSQL(
        postgresql=[
            f"DROP INDEX CONCURRENTLY IF EXISTS {name}",  # an interrupted run leaves an invalid one
            f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {columns}",
        ],
        sqlite=[f"CREATE UNIQUE INDEX IF NOT EXISTS {name} ON {columns}"],
    )


# --- The app of a row's parent --------------------------------------------------------------------
def add_app_column(model: str) -> migrations.SeparateDatabaseAndState:
    """Add `ParentsAppField`: null in the database until `FillColumns`, never for the models."""

    def field(**options: Any) -> models.ForeignKey:
        return models.ForeignKey(
            "apps_config.app",
            models.DO_NOTHING,
            related_name="+",
            db_index=False,
            db_constraint=False,
            **options,
        )

    return migrations.SeparateDatabaseAndState(
        database_operations=[migrations.AddField(model, "app", field(null=True))],
        state_operations=[migrations.AddField(model, "app", field())],
    )


def app_of(parent: str, column: str) -> str:
    """Return SQL for the app of the parent, for `FillColumns`."""
    return f"(SELECT parent.app_id FROM {parent} AS parent WHERE parent.id = {column})"  # noqa: S608 # nosec B608


def parents_app_triggers(table: str, parent: str, column: str, *, uuid: bool = False) -> VendorSQL:
    """Refuse a row whose `app_id` is not that of its parent, or that changes it.

    A row without one (written by the release before) gets its parent's. uuid: such a row also gets
    its key `uuid`, in the order of its counter `id`.
    """
    return VendorSQL(
        postgresql=_parents_app_triggers_on_postgresql(table, parent, column, uuid=uuid),
        sqlite=_parents_app_triggers_on_sqlite(table, parent, column, uuid=uuid),
    )


def _parents_app_triggers_on_postgresql(
    table: str, parent: str, column: str, *, uuid: bool
) -> list[str]:
    differs = (
        f"RAISE EXCEPTION '{table}: another app than that of {parent}'"
        " USING ERRCODE = 'integrity_constraint_violation';"
    )
    fill_uuid = ""
    if uuid:
        value = ordered_uuid(_NOW_MS, "NEW.id", "NEW.app_id")["postgresql"]
        fill_uuid = f"ELSIF NEW.uuid IS NULL THEN NEW.uuid := {value};"
    function = f"""
CREATE FUNCTION {{schema}}.{table}_app() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE parents_app uuid;
BEGIN
    SELECT app_id INTO parents_app FROM {{schema}}.{parent} WHERE id = NEW.{column};
    IF NEW.app_id IS NULL THEN NEW.app_id := parents_app; END IF;
    IF NEW.app_id IS DISTINCT FROM parents_app THEN {differs} END IF;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.app_id <> NEW.app_id THEN {differs} END IF;
    {fill_uuid}
    END IF;
    RETURN NEW;
END $$"""  # noqa: S608 # nosec B608
    changed = f"(OLD.app_id, OLD.{column}) IS DISTINCT FROM (NEW.app_id, NEW.{column})"
    return [
        function,
        f"CREATE TRIGGER app_on_insert BEFORE INSERT ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION {{schema}}.{table}_app()",
        f"CREATE TRIGGER app_on_update BEFORE UPDATE ON {table} FOR EACH ROW"
        f" WHEN (NEW.app_id IS NULL OR {changed}) EXECUTE FUNCTION {{schema}}.{table}_app()",
    ]


def _parents_app_triggers_on_sqlite(
    table: str, parent: str, column: str, *, uuid: bool
) -> list[str]:
    parents = f"(SELECT app_id FROM {parent} WHERE id = NEW.{column})"  # noqa: S608 # nosec B608
    refuse = f"SELECT RAISE(ABORT, '{table}: another app than that of {parent}');"
    assigned, missing = f"app_id = {parents}", "NEW.app_id IS NULL"
    if uuid:
        value = ordered_uuid(_NOW_MS, "NEW.id", parents)["sqlite"]
        assigned += f", uuid = coalesce(uuid, {value})"
        missing += " OR NEW.uuid IS NULL"
    return [
        f"CREATE TRIGGER {table}_app_on_insert BEFORE INSERT ON {table}"
        f" WHEN {parents} IS NULL OR NEW.app_id <> {parents} BEGIN {refuse} END",
        f"CREATE TRIGGER {table}_app_filled AFTER INSERT ON {table} WHEN {missing} BEGIN"  # noqa: S608 # nosec B608
        f" UPDATE {table} SET {assigned} WHERE rowid = NEW.rowid; END",
        f"CREATE TRIGGER {table}_app_on_update BEFORE UPDATE OF app_id, {column} ON {table}"
        f" WHEN (OLD.app_id IS NOT NULL AND NEW.app_id IS NOT OLD.app_id)"
        f" OR NEW.app_id <> {parents} BEGIN {refuse} END",
    ]


def fixed_app(table: str) -> VendorSQL:
    """Refuse to move a row to another app: its children were compared with it when written."""
    refused = f"{table}: a row stays in its app"
    return VendorSQL(
        postgresql=[
            f"""
CREATE FUNCTION {{schema}}.{table}_fixed_app() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{refused}' USING ERRCODE = 'integrity_constraint_violation';
END $$""",
            f"CREATE TRIGGER fixed_app BEFORE UPDATE OF app_id ON {table} FOR EACH ROW WHEN"
            f" (OLD.app_id <> NEW.app_id) EXECUTE FUNCTION {{schema}}.{table}_fixed_app()",
        ],
        sqlite=[
            f"CREATE TRIGGER {table}_fixed_app BEFORE UPDATE OF app_id ON {table}"
            f" WHEN OLD.app_id <> NEW.app_id BEGIN SELECT RAISE(ABORT, '{refused}'); END",
        ],
    )


# --- Autovacuum -----------------------------------------------------------------------------------
# A table that grows: by default, autovacuum waits until a fifth of it has changed.
LARGE = (
    "autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.01,"
    " autovacuum_vacuum_insert_scale_factor = 0.05"
)
# A table that grows, and whose rows are chosen by app. PostgreSQL takes an app that is not in the
# statistics for one without rows, and then reads all its rows where another index finds one.
FREQUENT_ANALYZE = "autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000"
# A table of few rows that change all the time: it is small only if it is vacuumed without pauses.
BUSY = (
    "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_cost_delay = 0"
)


def set_autovacuum(settings: Mapping[str, str]) -> VendorSQL:
    """Set the storage parameters of tables: LARGE, FREQUENT_ANALYZE or BUSY.

    Readers and writers don't wait.
    """
    statements = [f"ALTER TABLE {table} SET ({values})" for table, values in settings.items()]
    return VendorSQL(postgresql=statements, sqlite=[])
