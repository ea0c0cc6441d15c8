"""Every table says in docs/sharding-keys.md by what its rows are divided among databases."""

import re
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import connection

from tests.services import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

APP = "apps_config_app"
KEYS = ("app", "cell", "directory")


def rows() -> Iterator[tuple[str, list[str]]]:
    """(key, tables) of each line of the table."""
    text = (ROOT / "docs/sharding-keys.md").read_text()
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| sharding key"):
            key, _, tables = (cell.strip() for cell in line.strip("|").split("|"))
            yield key, re.findall(r"`([\w.]+)`", tables)


def columns_of(table: str) -> dict[str, str]:
    """Column -> the table that it refers to, or an empty text."""
    models = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
    fields = models[table]._meta.concrete_fields if table in models else ()
    return {
        field.column: field.related_model._meta.db_table if field.is_relation else ""
        for field in fields
    }


def test_every_table_has_a_sharding_key() -> None:
    listed = [name.partition(".")[0] for _, names in rows() for name in names]

    assert sorted(listed) == sorted(connection.introspection.table_names())
    assert {key for key, _ in rows()} == set(KEYS)


def test_rows_of_an_app_refer_to_it() -> None:
    """`table` has `app_id`; `table.column` refers to a table that leads to the app."""
    leading = {
        name.partition(".")[0]: name.partition(".")[2] or "app_id"
        for key, names in rows()
        if key == "app"
        for name in names
    }
    faults = []
    for table, column in leading.items():
        columns = columns_of(table)
        if column not in columns:
            faults.append(f"{table} has no column {column}")
        elif column not in ("app_id", "id") and columns[column] not in leading:
            faults.append(f"{table}.{column} leads to no table of the app")

    assert faults == []
    assert [table for table, column in leading.items() if column == "id"] == [
        APP,
        "apps_config_historicalapp",
    ]


def test_cell_and_directory_tables_have_no_app() -> None:
    with_app = [
        name
        for key, names in rows()
        if key != "app"
        for name in names
        # allauth's `app` is a client at an identity provider.
        if columns_of(name).get("app_id") not in (None, "socialaccount_socialapp")
    ]

    assert with_app == []
