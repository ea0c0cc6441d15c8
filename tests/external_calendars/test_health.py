"""What operators see of connected calendars."""

import re
from datetime import timedelta
from typing import Any

import pytest

from availability.models import Calendar
from common.db.sql import database_now
from external_calendars.models import Connection
from external_calendars.sync.health_queries import count_problems, max_seconds_stale
from ops.doctor import OK, WARN, check_calendars
from tests.external_calendars.memory import connect
from tests.world import Tenant


def age(connection: Connection, seconds: float, problem: str = "", stopped: bool = False) -> None:
    """Time since the last complete sync, and what prevents the next."""
    now = database_now()
    synced_at = now - timedelta(seconds=seconds)
    Calendar.objects.filter(id=connection.pk).update(synced_at=synced_at)
    Connection.objects.filter(pk=connection.pk).update(
        problem=problem,
        problem_since=synced_at if problem else None,
        next_at=None if stopped else now,
        created_at=now - timedelta(days=9),
    )


def test_health_without_connected_calendars(db: None) -> None:
    assert check_calendars() == (OK, "no calendar is connected", "")
    assert (count_problems(), max_seconds_stale(database_now())) == ({}, 0)


@pytest.fixture
def three(tenant: Tenant) -> list[Connection]:
    ada = tenant.make_resource()
    return [connect(ada["id"]) for _ in range(3)]


def test_health_with_all_synced(three: list[Connection]) -> None:
    for number, connection in enumerate(three):
        age(connection, number * 100)

    assert check_calendars() == (OK, "3 connected, all up to date", "")
    assert round(max_seconds_stale(database_now()), -1) == 200
    assert count_problems() == {"": 3}


def test_health_with_stale_calendars(three: list[Connection], tenant: Tenant) -> None:
    age(three[0], 10)
    age(three[1], 4 * 3600, "unreachable")
    age(three[2], 9 * 3600, "unauthorized", stopped=True)
    gone = connect(tenant.make_resource("Gone")["id"])
    age(gone, 10**6, "bad_answer")
    Calendar.objects.filter(id=gone.pk).update(deleted_at=database_now())

    finding = check_calendars()

    assert (finding.level, finding.seen) == (
        WARN,
        "2 stale, the oldest for 9.0 h (unauthorized, unreachable)",
    )
    assert round(max_seconds_stale(database_now()), -2) == 4 * 3600
    assert count_problems() == {"": 1, "unauthorized": 1, "unreachable": 1}


def test_first_sync_in_progress_is_no_problem(three: list[Connection]) -> None:
    age(three[0], 10)

    found = check_calendars()

    assert found == (OK, "3 connected, 2 in their first sync, the others up to date", "")


@pytest.mark.parametrize(
    ("given", "causes"),
    [
        ({"problem": "unreachable", "problem_since": database_now}, "unreachable"),
        ({"problem": "unauthorized", "next_at": None}, "unauthorized"),
        ({"created_at": lambda: database_now() - timedelta(hours=1)}, "not synced"),
    ],
)
def test_failed_or_slow_first_sync_is_a_problem(
    three: list[Connection], given: dict[str, Any], causes: str
) -> None:
    age(three[0], 10)
    values = {name: one() if callable(one) else one for name, one in given.items()}
    Connection.objects.filter(pk=three[1].pk).update(**values)

    found = check_calendars()

    seen = re.fullmatch(r"(\d+) stale, the oldest for [^(]+\((.*)\)", found.seen)
    assert (found.level, seen and seen.groups()) == (WARN, ("1", causes))


def test_never_synced_calendar_is_stale_since_creation(three: list[Connection]) -> None:
    Connection.objects.update(created_at=database_now() - timedelta(hours=2))

    assert check_calendars().seen == "3 stale, the oldest for 2.0 h (not synced)"
