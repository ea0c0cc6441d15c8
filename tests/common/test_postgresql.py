"""The check of a connection at the beginning of a request."""

import select
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def idle() -> Iterator[BaseDatabaseWrapper]:
    """A second connection as a web process keeps it between requests."""
    copy = connections["default"].copy()
    copy.settings_dict = {**copy.settings_dict, "CONN_HEALTH_CHECKS": True}
    with copy.cursor() as cursor:
        cursor.execute("SELECT 1")
    begin_request(copy)
    with copy.cursor() as cursor:
        cursor.execute("SELECT 1")
    yield copy
    copy.close()


def begin_request(idle: BaseDatabaseWrapper) -> None:
    idle.health_check_enabled = True
    idle.health_check_done = False


def backend_of(idle: BaseDatabaseWrapper) -> int:
    with idle.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def count_checks(idle: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The results of Django's own check."""
    results = []
    check = type(idle).__mro__[1].is_usable  # type: ignore[attr-defined]

    def recording(self: Any) -> bool:
        results.append(check(self))
        return results[-1]

    monkeypatch.setattr(type(idle).__mro__[1], "is_usable", recording)
    return results


def test_idle_connection_is_reused(
    idle: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = count_checks(idle, monkeypatch)
    before = backend_of(idle)
    begin_request(idle)

    assert (backend_of(idle), checks) == (before, [])


def test_an_ended_connection_is_replaced(
    idle: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = count_checks(idle, monkeypatch)
    before = backend_of(idle)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [before])
    select.select([idle.connection.fileno()], [], [], 20)
    begin_request(idle)

    assert backend_of(idle) != before
    assert checks == [False]


def test_idle_connection_is_checked_after_30_seconds(
    idle: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = count_checks(idle, monkeypatch)
    later = time.monotonic() + 31
    monkeypatch.setattr("common.db.postgresql.base.time.monotonic", lambda: later)
    for _ in range(2):
        begin_request(idle)
        backend_of(idle)

    assert checks == [True]
