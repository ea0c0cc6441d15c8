"""Whole calendars on real servers: 300 events and 12 series, many more with --deep, and
what changes in them."""

import contextlib
from collections import Counter
from datetime import timedelta
from typing import NamedTuple

import pytest
import requests

from availability.models import Calendar, Event
from common.db.sql import database_now
from external_calendars.models import Connection, ExternalObject
from external_calendars.providers.base import CalendarAccess
from external_calendars.sync.run import FAILED, SYNCED, UNFINISHED
from tests.external_calendars.icalendars import OWN_ZONE, calendar, event, one
from tests.external_calendars.memory import connect, look
from tests.external_calendars.servers import CalendarServer, Collection
from tests.world import Tenant

# A server may take half a minute to answer: no transaction of the test's own may stand around that.
pytestmark = pytest.mark.django_db(transaction=True)


class Size(NamedTuple):
    """`early`: after so many reports of progress the first pass is ended."""

    singles: int
    series: int
    early: int


SMALL, LARGE = Size(300, 12, 2), Size(5000, 200, 20)


def texts(size: Size) -> dict[str, str]:
    """Singles of an hour each from tomorrow on, ten a day; series of each week in several zones."""
    first = (database_now() + timedelta(days=1)).replace(hour=8, minute=0, second=0, microsecond=0)
    found = {}
    for number in range(size.singles):
        start = first + timedelta(days=number // 10 % 390, hours=number % 10)
        found[f"single-{number}.ics"] = one(
            "DTSTAMP:20260101T000000Z",
            f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
            f"DTEND:{start + timedelta(minutes=50):%Y%m%dT%H%M%SZ}",
            f"SUMMARY:Single {number}",
            "DESCRIPTION:" + "What is to be said about it. " * 5,
            uid=f"single-{number}",
        )
    zones = ["Europe/Berlin", "W. Europe Standard Time", "Our Own", "America/New_York"]
    for number in range(size.series):
        lines = [
            "DTSTAMP:20260101T000000Z",
            f"DTSTART;TZID={zones[number % 4]}:2026{number % 12 + 1:02}05T{number % 9 + 8:02}3000",
            "DURATION:PT25M",
            f"RRULE:FREQ=WEEKLY;BYDAY=TU,TH;INTERVAL={number % 3 + 1}",
            f"SUMMARY:Series {number}",
        ]
        components = [event(*lines, uid=f"series-{number}")]
        found[f"series-{number}.ics"] = calendar(OWN_ZONE, *components)
    return found


@pytest.fixture(params=[SMALL, pytest.param(LARGE, marks=pytest.mark.deep)], ids=["small", "large"])
def size(request: pytest.FixtureRequest) -> Size:
    return request.param


@pytest.fixture
def full(server: CalendarServer, size: Size, transactional_db: None) -> Collection:
    """A collection with all of them."""
    collection = server.make_calendar()
    collection.fill(texts(size))
    # Radicale reads what was put into its folder when it is first asked for it: half a minute, or
    # more where others use the machine.
    for _ in range(5):
        with contextlib.suppress(requests.RequestException):
            collection.names()
            break
    server.front.forget()
    return collection


def join(tenant: Tenant, collection: Collection) -> Connection:
    ada = tenant.make_resource(timezone="Europe/Berlin")
    return connect(ada["id"], "caldav", collection.access)


def counts(connection: Connection) -> dict[str, int]:
    """Events by the first word of what they are."""
    found = Event.objects.filter(calendar=connection.pk).values_list("what", flat=True)
    return Counter(what.split()[0] for what in found)


def test_sync_of_a_large_calendar(full: Collection, size: Size, tenant: Tenant) -> None:
    singles, series, early = size
    server, connection = full.server, join(tenant, full)
    told: list[tuple[int, int]] = []

    # The first look ends early, as in a task whose time is up, and its successor goes on.
    ended = look(
        connection,
        stopping=lambda: len(told) == early,
        report_progress=lambda *far: told.append(far),
    )
    assert ended == UNFINISHED
    assert told[0][1] == told[-1][1] == singles + series
    assert (connection.done, connection.total) == told[-1]
    first_part = ExternalObject.objects.count()
    assert first_part == told[-1][0]
    assert Calendar.objects.get(id=connection.pk).synced_at is None
    told.clear()
    assert look(connection, report_progress=lambda *far: told.append(far)) == SYNCED

    assert told[-1] == (singles + series - first_part,) * 2
    assert (connection.problem, connection.unread) == ("", 0)
    assert ExternalObject.objects.count() == singles + series
    assert ExternalObject.objects.exclude(text="").count() == series
    found = counts(connection)
    assert found["Single"] == singles
    assert found["Series"] > series * 35

    # Nothing new: one request, and no row is another.
    before = rows()
    with server.front.counted() as asked:
        assert look(connection) == SYNCED
    assert len(asked) == 1
    assert rows() == before

    # One of each kind of change, by another client.
    full.put("single-7.ics", one("DTSTART:20301201T100000Z", "DURATION:PT1H", uid="single-7"))
    full.delete("single-8.ics")
    full.put("new.ics", one("DTSTART:20301202T100000Z", "DURATION:PT1H", uid="new"))
    with server.front.counted() as asked:
        assert look(connection) == SYNCED
    assert len(asked) <= 4
    after = rows()
    changed = {row[0] for row in set(after) ^ set(before)}
    assert len(changed) == 3
    later = Event.objects.filter(start__year=2030).order_by("start")
    assert list(later.values_list("provider_id", flat=True)) == ["single-7", "new"]
    assert not Event.objects.filter(provider_id="single-8").exists()


def rows() -> list[tuple[object, ...]]:
    return list(Event.objects.values_list("id", "start", "end", "what", "updated_at"))


def test_sync_with_a_wrong_password(server: CalendarServer, tenant: Tenant) -> None:
    collection = server.make_calendar()
    ada = tenant.make_resource()
    connection = connect(
        ada["id"], "caldav", CalendarAccess(collection.url, collection.user, "wrong")
    )

    assert look(connection) == FAILED

    assert (connection.problem, connection.is_stopped) == ("unauthorized", False)
