"""What every connection of the service has set on PostgreSQL."""

from collections.abc import Sequence

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import pre_migrate

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

TIMEOUTS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


def shown(names: Sequence[str]) -> list[str]:
    values = []
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"SHOW {name}")
            values.append(cursor.fetchone()[0])
    return values


def test_a_connection_has_its_timeouts_and_compiles_nothing() -> None:
    assert shown([*TIMEOUTS, "jit"]) == ["5s", "15s", "30s", "off"]


def test_migrations_may_take_their_time_but_not_wait_for_locks() -> None:
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
