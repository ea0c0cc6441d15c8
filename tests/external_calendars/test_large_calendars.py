"""The first sync of a large calendar: exact busy time, and a bounded use of memory and database.

300 events and 12 series; with --deep 5,000 events and 200 series. CalDAV servers have more of it in
test_real_servers.py.
"""

import gc
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.utils import timezone

from availability.models import Event
from external_calendars.models import Connection, ExternalObject
from external_calendars.sync.run import SYNCED
from tests.external_calendars.homes import EMAIL, CalendarHome, NewEvent
from tests.external_calendars.memory import look
from tests.external_calendars.test_every_server import BERLIN, _at_home, home
from tests.world import Tenant

__all__ = ["_at_home", "home"]
pytestmark = pytest.mark.django_db(transaction=True)

WEEKS = 50


class Size(NamedTuple):
    """megabytes: that the sync may use at a time, with those of the fake that answers it."""

    singles: int
    series: int
    megabytes: int


SMALL, LARGE = Size(300, 12, 15), Size(5000, 200, 100)
sizes = pytest.mark.parametrize(
    "size", [SMALL, pytest.param(LARGE, marks=pytest.mark.deep)], ids=["small", "large"]
)


def large_calendar(size: Size) -> Iterator[NewEvent]:
    """Singles in UTC, 13 a day; series of every hour of the week, over two clock changes."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for number in range(size.singles):
        start = midnight + timedelta(days=number // 13, hours=8 + number % 13)
        yield NewEvent(f"Single {number}", start, start + timedelta(minutes=50))
    monday = datetime.now(BERLIN).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = monday.replace(tzinfo=None) - timedelta(days=7 + monday.weekday())
    for number in range(size.series):
        wall = monday + timedelta(hours=number % 160)
        # A change of the clock skips or repeats the hours until three.
        start = (wall + timedelta(hours=3 if wall.hour < 3 else 0)).replace(tzinfo=BERLIN)
        end = start + timedelta(minutes=25)
        yield NewEvent(f"Series {number}", start, end, weekly=WEEKS)


def expected_spans(events: Iterator[NewEvent]) -> set[tuple[str, datetime, datetime]]:
    """By the clock on the wall in each week."""
    found = set()
    for event in events:
        assert isinstance(event.start, datetime) and isinstance(event.end, datetime)
        for week in range(event.weekly or 1):
            span = [moment + timedelta(weeks=week) for moment in (event.start, event.end)]
            start, end = (moment.astimezone(UTC) for moment in span)
            found.add((event.title, start, end))
    return found


@sizes
@pytest.mark.parametrize("home", ["radicale", "google", "microsoft"], indirect=True)
def test_first_sync_of_a_large_calendar(tenant: Tenant, home: CalendarHome, size: Size) -> None:
    home.fill(large_calendar(size))
    ada = tenant.make_resource("Ada Lovelace", email=EMAIL, timezone="Europe/Berlin")
    work = home.connect(tenant, ada)
    expected = expected_spans(large_calendar(size))
    gc.collect()
    tracemalloc.start()

    statements: list[str] = []

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql.split(maxsplit=1)[0])
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        assert look(work) == SYNCED
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (work.problem, work.unread, work.done) == ("", 0, work.total)
    rows = Event.objects.filter(calendar=work.pk, busy=True)
    assert set(rows.values_list("what", "start", "end")) == expected
    assert rows.count() == len(expected)
    assert peak < size.megabytes * 1_000_000, f"{peak / 1e6:.0f} MB"
    # Objects are stored 100 at a time, and at most 1,000 occurrences.
    parts = ExternalObject.objects.count() / 100 + len(expected) / 1000 + 2
    assert len(statements) < 16 * parts, f"{len(statements)} statements in {parts:.0f} parts"
    before = home.count_requests()
    assert look(Connection.objects.get(pk=work.pk)) == SYNCED
    assert home.count_requests() == before + 1
