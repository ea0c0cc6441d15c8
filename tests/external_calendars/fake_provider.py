"""A provider whose calendars are a table: for what stands above the providers."""

from typing import Any

import pytest

from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import CalendarAccess, DiscoveredCalendar, ProviderError


class FakeCalendarServer:
    """`calendars`: address -> what is found there, or a Trouble. `asked`: every Access in order."""

    name, label = "shelf", "A shelf"

    def __init__(self, *, can_write: bool) -> None:
        self.can_write = can_write
        self.calendars: dict[str, DiscoveredCalendar | ProviderError] = {}
        self.asked: list[CalendarAccess] = []
        self.deadlines: list[float] = []

    def put(self, address: str, name: str = "Work", *, invites: bool = False, **found: Any) -> str:
        """A calendar at that address. Returns it."""
        may_write = found.pop("may_write", self.can_write)
        own = found.pop("at", address)
        self.calendars[address] = DiscoveredCalendar(own, name, may_write, invites)
        return address

    def new_uid(self, uid: str) -> str:
        return uid

    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        self.asked.append(access)
        self.deadlines.append(deadline)
        there = self.calendars.get(access.address, ProviderError("not_a_calendar"))
        if isinstance(there, ProviderError):
            raise there
        return there


@pytest.fixture
def fake_caldav(monkeypatch: pytest.MonkeyPatch) -> FakeCalendarServer:
    """In the place of `caldav`: calendars that can be written to."""
    provider = FakeCalendarServer(can_write=True)
    monkeypatch.setitem(PROVIDERS, "caldav", provider)
    return provider


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> FakeCalendarServer:
    """In the place of `ics`: calendars that can only be read."""
    provider = FakeCalendarServer(can_write=False)
    monkeypatch.setitem(PROVIDERS, "ics", provider)
    return provider
