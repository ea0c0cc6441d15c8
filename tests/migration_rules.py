"""What a migration may not do, because the previous release goes on serving while it runs.

`faults` reads the SQL of one migration on PostgreSQL. Older code knows no new column, so it has to
get its value from the database; no statement may keep writers of a large table waiting while it
reads all of its rows; and no transaction may lock several tables, because requests lock them in
another order.
"""

import re
from collections.abc import Collection, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.state import ProjectState

NAME = r'"?(\w+)"?'
CREATED = re.compile(rf"CREATE TABLE (?:IF NOT EXISTS )?{NAME}")
ALTERED = re.compile(rf"ALTER TABLE (?:ONLY )?{NAME} (.*)")
ADDED = re.compile(rf"ADD COLUMN {NAME} (.*?)(?=, (?:ADD|ALTER|DROP) |;|$)")
DEFAULT_DROPPED = re.compile(rf"ALTER COLUMN {NAME} DROP DEFAULT")
TRIGGERED = re.compile(rf"CREATE (?:OR REPLACE )?TRIGGER {NAME} .*? ON {NAME}")
REFERENCED = re.compile(rf"REFERENCES {NAME}")
TYPE_CHANGED = re.compile(rf"ALTER COLUMN {NAME} (?:SET DATA )?TYPE ")
NULL_REFUSED = re.compile(rf"ALTER COLUMN {NAME} SET NOT NULL")
REMOVED = re.compile(rf"(?:DROP|RENAME) COLUMN (?:IF EXISTS )?{NAME}|RENAME TO {NAME}")
CONSTRAINED = re.compile(
    rf"ADD CONSTRAINT {NAME} (FOREIGN KEY|CHECK|UNIQUE|PRIMARY KEY|EXCLUDE)(.*)"
)
VALIDATED = re.compile(rf"VALIDATE CONSTRAINT {NAME}")
INDEXED = re.compile(
    rf"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?{NAME} ON {NAME}"
)
DROPPED = re.compile(rf"DROP TABLE (?:IF EXISTS )?{NAME}")
REWRITTEN = re.compile(rf"^(?:UPDATE|DELETE FROM) {NAME}")
EACH_ROW_ITS_OWN = re.compile(
    r"DEFAULT .*?(?:random|clock_timestamp|nextval|uuid)\w*\(|GENERATED ALWAYS AS \(|serial\b"
)


def faults(
    statements: Sequence[str], *, small: Collection[str] = (), atomic: bool = True
) -> list[str]:
    """A sentence for each thing that a migration may not do, in the order of its statements.

    small: tables that hold so little that reading them whole takes no time. atomic: whether all
    statements are one transaction.
    """
    texts = [" ".join(statement.split()) for statement in statements]
    texts = [text for text in texts if text and not text.startswith("--")]
    new = {name for text in texts for name in CREATED.findall(text)}
    reader = _Reader(texts, new, new | set(small), atomic)
    found = [fault for text in texts for fault in reader.faults_of(text)]
    locked = _locked_tables(texts) - reader.spared
    if atomic and len(locked) > 1:
        found.append(f"{', '.join(sorted(locked))}: locked in one transaction")
    return found


def _locked_tables(texts: Sequence[str]) -> set[str]:
    """The tables whose writers wait for the statements."""
    locked: set[str] = set()
    for text in texts:
        if altered := ALTERED.match(text):
            locked |= {altered[1], *REFERENCED.findall(text)}
        locked |= {table for _, table in TRIGGERED.findall(text)}
    return locked


class _Reader:
    def __init__(
        self, texts: Sequence[str], new: Collection[str], spared: Collection[str], atomic: bool
    ) -> None:
        self.new, self.spared, self.atomic = new, spared, atomic
        self.unvalidated: set[str] = set()
        self.new_columns: dict[str, dict[str, str]] = {}
        for text in texts:
            for table, actions in ALTERED.findall(text):
                for column, definition in ADDED.findall(actions):
                    if default := re.search(r"DEFAULT (\d+)", definition):
                        self.new_columns.setdefault(table, {})[column] = default[1]
        self.without_default = {
            (table, column)
            for text in texts
            for table, actions in ALTERED.findall(text)
            for column in DEFAULT_DROPPED.findall(actions)
        }

    def faults_of(self, text: str) -> list[str]:
        found = [
            fault for table, rest in ALTERED.findall(text) for fault in self.altered(table, rest)
        ]
        for concurrently, index, table in INDEXED.findall(text):
            if not concurrently and table not in self.spared:
                found.append(f"{table}: the index {index} is not built concurrently")
        found += [f"{table}: is dropped" for table in DROPPED.findall(text)]
        found += [
            f"{table}: all rows are changed in one statement"
            for table in REWRITTEN.findall(text)
            if table not in self.spared
        ]
        return found

    def altered(self, table: str, actions: str) -> list[str]:
        if table in self.new:
            return []
        found = [fault for added in ADDED.findall(actions) for fault in self.added(table, *added)]
        found += [f"{table}.{name}: changes its type" for name in TYPE_CHANGED.findall(actions)]
        found += [f"{table}.{name}: becomes NOT NULL" for name in NULL_REFUSED.findall(actions)]
        found += [
            f"{table}: {column or name} is dropped or renamed"
            for column, name in REMOVED.findall(actions)
        ]
        for constraint in CONSTRAINED.findall(actions):
            found += self.constrained(table, *constraint)
        if self.atomic:
            found += [
                f"{table}: {name} is validated in the transaction that adds it"
                for name in VALIDATED.findall(actions)
                if name in self.unvalidated
            ]
        return found

    def is_empty(self, table: str, rest: str) -> bool:
        """Whether the condition excludes the default of a column that this migration adds: the
        table is read once, but no row is indexed.
        """
        condition = rest.partition("WHERE")[2]
        return any(
            re.search(rf"AND {column} > {default}\b", condition)
            for column, default in self.new_columns.get(table, {}).items()
        )

    def added(self, table: str, column: str, definition: str) -> list[str]:
        has_default = "DEFAULT" in definition and (table, column) not in self.without_default
        found = []
        if "NOT NULL" in definition and not has_default:
            found.append(f"{table}.{column}: NOT NULL without a default in the database")
        if EACH_ROW_ITS_OWN.search(definition) and table not in self.spared:
            found.append(f"{table}.{column}: every row is written anew")
        if re.search("REFERENCES|CHECK|UNIQUE", definition) and table not in self.spared:
            found.append(f"{table}.{column}: a column and its constraint are two statements")
        return found

    def constrained(self, table: str, name: str, kind: str, rest: str) -> list[str]:
        if table in self.spared or "USING INDEX" in rest:
            return []
        if kind == "EXCLUDE" and self.is_empty(table, rest):
            return []
        if kind in ("FOREIGN KEY", "CHECK"):
            if "NOT VALID" in rest:
                self.unvalidated.add(name)
                return []
            return [f"{table}: the constraint {name} is validated at once"]
        return [f"{table}: the constraint {name} builds its index at once"]


def statements_of(
    migration: Migration, state: ProjectState, connection: BaseDatabaseWrapper
) -> list[str]:
    """The SQL of a migration that is applied to `state`, which is left as it is.

    Functions of RunPython are called too: what they give to the schema editor counts.
    """
    before = state.clone()
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        for operation in migration.operations:
            after = before.clone()
            operation.state_forwards(migration.app_label, after)
            operation.database_forwards(migration.app_label, editor, before, after)
            before = after
    return editor.collected_sql
