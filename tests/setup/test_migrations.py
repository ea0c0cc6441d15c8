"""Rules for migrations, which run while the previous release still serves (docs/operations.md).

They apply to the migrations that follow the first release.
"""

import pytest
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    ValidateConstraint,
)
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from tests.migration_rules import faults, statements_of

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

# --- Each kind of fault ---------------------------------------------------------------------------
ADD = 'ALTER TABLE "big" ADD COLUMN "x"'
CHECK = 'ALTER TABLE "big" ADD CONSTRAINT "c" CHECK ("x" > 0)'
KEY = 'ALTER TABLE "big" ADD CONSTRAINT "k" FOREIGN KEY ("x_id") REFERENCES "other" ("id")'


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([f"{ADD} varchar(9) NOT NULL"], ["big.x: NOT NULL without a default in the database"]),
        (
            [
                f"{ADD} varchar(9) DEFAULT 'a' NOT NULL;",
                'ALTER TABLE "big" ALTER COLUMN "x" DROP DEFAULT;',
            ],
            ["big.x: NOT NULL without a default in the database"],
        ),
        (
            ["ALTER TABLE big ADD COLUMN y int, ADD COLUMN x int NOT NULL, ADD COLUMN z int"],
            ["big.x: NOT NULL without a default in the database"],
        ),
        (
            ["ALTER TABLE small ADD COLUMN x int NOT NULL"],
            ["small.x: NOT NULL without a default in the database"],
        ),
        ([f"{ADD} uuid DEFAULT gen_random_uuid() NOT NULL"], ["big.x: every row is written anew"]),
        (
            [f"{ADD} int GENERATED ALWAYS AS (y * 2) STORED"],
            ["big.x: every row is written anew"],
        ),
        (
            [f"{ADD} int DEFAULT 1 NOT NULL CONSTRAINT k REFERENCES other (id)"],
            [
                "big.x: a column and its constraint are two statements",
                "big, other: locked in one transaction",
            ],
        ),
        (
            ['ALTER TABLE "big" ALTER COLUMN "x" TYPE text USING "x"::text'],
            ["big.x: changes its type"],
        ),
        (["ALTER TABLE small ALTER COLUMN x SET DATA TYPE text"], ["small.x: changes its type"]),
        (['ALTER TABLE "big" ALTER COLUMN "x" SET NOT NULL'], ["big.x: becomes NOT NULL"]),
        (['ALTER TABLE "big" DROP COLUMN "x" CASCADE'], ["big: x is dropped or renamed"]),
        (['ALTER TABLE "big" RENAME COLUMN "x" TO "y"'], ["big: x is dropped or renamed"]),
        (['ALTER TABLE "big" RENAME TO "bigger"'], ["big: bigger is dropped or renamed"]),
        (['DROP TABLE "big" CASCADE'], ["big: is dropped"]),
        (['CREATE INDEX "i" ON "big" ("x")'], ["big: the index i is not built concurrently"]),
        (
            ['CREATE UNIQUE INDEX "i" ON "big" ("x") WHERE "x" > 0'],
            ["big: the index i is not built concurrently"],
        ),
        ([CHECK], ["big: the constraint c is validated at once"]),
        (
            [KEY],
            ["big: the constraint k is validated at once", "big, other: locked in one transaction"],
        ),
        (
            ['ALTER TABLE "big" ADD CONSTRAINT "u" UNIQUE ("x")'],
            ["big: the constraint u builds its index at once"],
        ),
        (
            ["ALTER TABLE big ADD CONSTRAINT e EXCLUDE USING gist (x WITH &&)"],
            ["big: the constraint e builds its index at once"],
        ),
        (
            [
                f"{ADD} smallint DEFAULT 0 NOT NULL",
                "ALTER TABLE big ADD CONSTRAINT e EXCLUDE USING gist (x WITH =) WHERE (x > 1)",
            ],
            ["big: the constraint e builds its index at once"],
        ),
        (
            [f"{CHECK} NOT VALID", 'ALTER TABLE "big" VALIDATE CONSTRAINT "c"'],
            ["big: c is validated in the transaction that adds it"],
        ),
        (
            [f"{KEY} NOT VALID"],
            ["big, other: locked in one transaction"],
        ),
        (
            [f"{ADD} int NULL", "CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW EXECUTE f()"],
            ["big, other: locked in one transaction"],
        ),
        (["UPDATE big SET x = 1"], ["big: all rows are changed in one statement"]),
        (["DELETE FROM big"], ["big: all rows are changed in one statement"]),
    ],
)
def test_forbidden_statements_are_found(statements: list[str], expected: list[str]) -> None:
    assert faults(statements, small={"small"}) == expected


@pytest.mark.parametrize(
    "statements",
    [
        ["-- a comment", "", f"{ADD} varchar(9) NULL"],
        [f"{ADD} varchar(9) DEFAULT '' NOT NULL"],
        [f"{ADD} timestamptz DEFAULT now() NOT NULL"],
        ["ALTER TABLE big ALTER COLUMN x SET DEFAULT 'a'"],
        ["ALTER TABLE big ALTER COLUMN x DROP NOT NULL"],
        ['CREATE INDEX CONCURRENTLY "i" ON "big" ("x")'],
        ['DROP INDEX CONCURRENTLY IF EXISTS "i"'],
        [f"{CHECK} NOT VALID"],
        ['ALTER TABLE "big" VALIDATE CONSTRAINT "c"'],
        ["ALTER TABLE big ADD CONSTRAINT u UNIQUE USING INDEX i"],
        [
            'CREATE TABLE "new" ("id" bigint NOT NULL PRIMARY KEY)',
            'ALTER TABLE "new" ADD COLUMN "x" int NOT NULL',
            'ALTER TABLE "new" ADD CONSTRAINT "k" FOREIGN KEY ("x") REFERENCES "big" ("id")',
            'CREATE INDEX "i" ON "new" ("x")',
        ],
        [
            f"{ADD} smallint DEFAULT 0 NOT NULL",
            "ALTER TABLE big ADD CONSTRAINT e EXCLUDE USING gist (x WITH =) WHERE (y AND x > 0)",
        ],
        ["CREATE INDEX i ON small (x)", "ALTER TABLE small ADD CONSTRAINT c CHECK (x > 0)"],
        ["UPDATE small SET x = 1"],
    ],
)
def test_allowed_statements(statements: list[str]) -> None:
    assert faults(statements, small={"small"}) == []


def test_outside_a_transaction_constraints_may_be_added_and_validated() -> None:
    statements = [
        f"{CHECK} NOT VALID",
        'ALTER TABLE "big" VALIDATE CONSTRAINT "c"',
        f"{KEY} NOT VALID",
        'ALTER TABLE "other" ADD COLUMN "y" int NULL',
    ]

    assert faults(statements, atomic=False) == []


class Careless(migrations.Migration):
    """As makemigrations writes it."""

    operations = [
        migrations.AddField("booking", "colour", models.CharField(max_length=9, default="red")),
        migrations.AlterField("booking", "state", models.CharField(max_length=64)),
        migrations.AddIndex("booking", models.Index(fields=["graph"], name="by_graph")),
        migrations.AddConstraint(
            "booking", models.CheckConstraint(condition=~models.Q(graph=""), name="has_graph")
        ),
        migrations.RunPython(
            lambda apps, editor: editor.execute("UPDATE bookings_booking SET x=1")
        ),
    ]


class Careful(migrations.Migration):
    atomic = False
    operations = [
        migrations.AddField(
            "booking", "colour", models.CharField(max_length=9, default="red", db_default="red")
        ),
        migrations.AddField(
            "booking",
            "origin",
            models.ForeignKey(
                "apps_config.app",
                models.CASCADE,
                null=True,
                db_index=False,
                db_constraint=False,
            ),
        ),
        AddIndexConcurrently("booking", models.Index(fields=["graph"], name="by_graph")),
        AddConstraintNotValid(
            "booking", models.CheckConstraint(condition=~models.Q(graph=""), name="has_graph")
        ),
        ValidateConstraint("booking", "has_graph"),
    ]


def faults_of(kind: type[migrations.Migration]) -> list[str]:
    migration = kind("new", "bookings")
    state = MigrationLoader(connection).project_state()
    return faults(statements_of(migration, state, connection), atomic=migration.atomic)


def test_unsafe_migration_is_refused() -> None:
    assert faults_of(Careless) == [
        "bookings_booking.colour: NOT NULL without a default in the database",
        "bookings_booking.state: changes its type",
        "bookings_booking: the index by_graph is not built concurrently",
        "bookings_booking: the constraint has_graph is validated at once",
        "bookings_booking: all rows are changed in one statement",
    ]


def test_safe_migration_is_accepted() -> None:
    assert faults_of(Careful) == []
