"""What every connection of the service has set on PostgreSQL."""

from collections.abc import Sequence

import pytest
from django.db import connection

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
