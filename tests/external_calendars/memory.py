"""A provider whose one calendar lies in memory, and connections to it that are made by hand."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from availability.models import Calendar, Event, Resource
from common.encryption import encrypt_text
from external_calendars.event_formats import ical
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import (
    CalendarAccess,
    ChangeSet,
    DiscoveredCalendar,
    RemoteObject,
    StoredObjects,
)
from external_calendars.sync import leases
from external_calendars.sync import run as sync_module
from external_calendars.sync.leases import claim_connections
from external_calendars.sync.run import sync_calendar

ADDRESS = "https://calendar.example.com/ada/"


class Memory:
    """`memory.put("a", text)` as another client does. `calls` counts what is asked of it.

    trouble: what the next calls raise. before_batch: called before each batch is handed out.
    """

    name, label, can_write = "memory", "In memory", True
    event_format = ical

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, str]] = {}
        self.numbers = itertools.count(1)
        self.changes: list[str] = []
        self.calls: list[str] = []
        self.trouble: Exception | None = None
        self.batch = 100
        self.before_batch: Callable[[], None] = lambda: None
        self.tells_etags = True

    def put(self, href: str, text: str) -> None:
        self.objects[href] = (f'"{next(self.numbers)}"', text)
        self.changes.append(href)

    def remove(self, href: str) -> None:
        del self.objects[href]
        self.changes.append(href)

    # --- What a provider does ---------------------------------------------------------------------
    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        return DiscoveredCalendar(access.address, "Memory", True, False)

    def list_changes(
        self,
        access: CalendarAccess,
        mark: Mapping[str, Any],
        stored: StoredObjects,
        *,
        deadline: float,
    ) -> ChangeSet:
        self._called("look")
        new_mark = {"seen": len(self.changes)}
        if not mark:
            return ChangeSet(self._etags(self.objects), [], True, new_mark)
        touched = dict.fromkeys(self.changes[mark["seen"] :])
        here = [href for href in touched if href in self.objects]
        gone = [href for href in touched if href not in self.objects]
        return ChangeSet(self._etags(here), gone, False, new_mark)

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        for first in range(0, len(hrefs), self.batch):
            few = hrefs[first : first + self.batch]
            self.before_batch()
            self._called(f"fetch {len(few)}")
            yield [RemoteObject(href, *self.objects[href]) for href in few if href in self.objects]

    def new_uid(self, uid: str) -> str:
        return uid

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        return RemoteObject(href, *self.objects[href]) if href in self.objects else None

    def _etags(self, hrefs: Any) -> dict[str, str]:
        return {href: self.objects[href][0] if self.tells_etags else "" for href in hrefs}

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if self.trouble is not None:
            raise self.trouble

    def asked(self) -> list[str]:
        """The calls since this was asked last."""
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def frozen_clock(clock: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock, which the database's own follows here: `still.shift(seconds)`."""
    for module in (leases, sync_module):
        monkeypatch.setattr(module, "database_now", timezone.now)
    return clock


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    provider = Memory()
    monkeypatch.setitem(PROVIDERS, "memory", provider)
    return provider


def connect(
    resource_id: str, provider: str = "memory", access: CalendarAccess | None = None
) -> Connection:
    """A connected calendar of the resource that is due at once."""
    access = access or CalendarAccess(ADDRESS, "ada", "secret")
    resource = Resource.objects.get(id=resource_id)
    calendar = Calendar.objects.create(
        app_id=resource.app_id,
        resource=resource,
        name="Elsewhere",
        provider=provider,
        provider_id=access.address,
        provider_access=Calendar.WRITER,
    )
    return Connection.objects.create(
        calendar=calendar,
        address=encrypt_text(access.address),
        username=access.username,
        password=encrypt_text(access.password),
        next_at=datetime.fromisoformat("2020-01-01T00:00:00+00:00"),
    )


def look(connection: Connection, **given: Any) -> str:
    """One pass now, due or not; how it ended. The row is read again."""
    (claimed,) = claim_connections(1, calendar_id=connection.pk)
    ended = sync_calendar(claimed, **given)
    if Connection.objects.filter(pk=connection.pk).exists():
        connection.refresh_from_db()
    return ended


def events_of(connection: Connection) -> list[Event]:
    rows = Event.objects.filter(calendar=connection.pk)
    return list(rows.order_by("start", "end", "what", "id"))


def spans_of(connection: Connection) -> list[str]:
    """`Lunch 11-20 10:00/11:00` in UTC."""
    return [f"{e.what} {e.start:%m-%d %H:%M}/{e.end:%H:%M}" for e in events_of(connection)]
