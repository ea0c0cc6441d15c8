"""What every connection of the service has set on PostgreSQL."""

from collections.abc import Sequence

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import pre_migrate

from scheduling.settings import parse_database, with_postgresql_options

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

TIMEOUTS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


def shown(names: Sequence[str]) -> list[str]:
    values = []
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"SHOW {name}")
            values.append(cursor.fetchone()[0])
    return values


def test_connection_has_timeouts_and_no_jit() -> None:
    assert shown([*TIMEOUTS, "jit"]) == ["5s", "15s", "30s", "off"]


URL = (
    "postgres://ada@pg1:5432,pg2:5433/name?target_session_attrs=read-write"
    "&options=-c%20statement_timeout%3D60s&prepare_threshold=7"
)
LIMITS = (
    "-c lock_timeout=5s -c statement_timeout=15s -c idle_in_transaction_session_timeout=30s"
    " -c jit=off "
)


@pytest.mark.parametrize(("pooled", "limits"), [(False, LIMITS), (True, "")])
def test_url_with_several_hosts_and_options(pooled: bool, limits: str) -> None:
    found = with_postgresql_options(parse_database("DATABASE_URL", URL), pooled=pooled)

    assert (found["HOST"], found["PORT"]) == ("pg1,pg2", "5432,5433")
    assert found["DISABLE_SERVER_SIDE_CURSORS"] is pooled
    assert found["OPTIONS"] == {
        "options": f"{limits}-c statement_timeout=60s",
        "target_session_attrs": "read-write",
        "prepare_threshold": 7,
        "server_side_binding": True,
        "connect_timeout": 5,
    }


def test_pooler_has_no_startup_options_or_prepared_statements() -> None:
    url = "postgres://ada@pooler:6432/name"

    found = with_postgresql_options(parse_database("DATABASE_URL", url), pooled=True)

    assert found["OPTIONS"] == {
        "server_side_binding": True,
        "prepare_threshold": None,
        "connect_timeout": 5,
    }


def test_migrations_have_no_statement_timeout_but_a_lock_timeout() -> None:
    seen: list[list[str]] = []

    def look(**signal: object) -> None:
        seen.append(shown(TIMEOUTS))

    pre_migrate.connect(look)
    try:
        call_command("migrate", verbosity=0)
    finally:
        pre_migrate.disconnect(look)

    assert {tuple(one) for one in seen} == {("5s", "0", "30s")}
    assert shown(TIMEOUTS) == ["5s", "15s", "30s"]
