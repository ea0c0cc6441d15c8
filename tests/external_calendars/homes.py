"""A person's calendar at a server, as its owner and guests use it: one adapter for each server."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from typing import Any, ClassVar, NamedTuple, NoReturn

from external_calendars.models import Connection
from tests.world import Tenant

EMAIL = "ada@example.com"  # of the owner
GUEST = {"name": "Marty McFly", "email": "marty@example.com"}


class Shown(NamedTuple):
    """An event as the owner sees it. guests: sorted addresses."""

    title: str
    start: datetime | date
    end: datetime | date
    guests: list[str]


class NewEvent(NamedTuple):
    """An event of the owner. weekly: repeats so many times. Times in a ZoneInfo are those of
    Europe/Berlin, which the server is told under the name that its programs use.
    """

    title: str
    start: datetime | date
    end: datetime | date
    busy: bool = True
    weekly: int = 0
    private: bool = False


class CalendarHome(ABC):
    """An empty calendar. Ids of events are the server's own.

    cannot: what the server can't do; docs/external-calendars.md says why. guest: the customer whom
    the server may invite.
    """

    name: ClassVar[str]
    cannot: ClassVar[Collection[str]] = ()
    guest: Mapping[str, str] = GUEST

    def must_not_be_asked(self) -> NoReturn:
        """For what `cannot` names: its cases are not collected."""
        raise AssertionError(f"{self.name} can't do this; no case should ask for it")

    @abstractmethod
    def connect(self, tenant: Tenant, resource: Any) -> Connection:
        """Connect the calendar with the resource, over the API."""

    # --- The owner --------------------------------------------------------------------------------
    @abstractmethod
    def add_event(self, event: NewEvent) -> str: ...

    def add(self, title: str, start: datetime | date, end: datetime | date, **given: Any) -> str:
        return self.add_event(NewEvent(title, start, end, **given))

    def fill(self, events: Iterable[NewEvent]) -> None:
        """Add many events, faster than one by one where the server allows it."""
        for event in events:
            self.add_event(event)

    @abstractmethod
    def move(self, event_id: str, start: datetime | date, end: datetime | date) -> None: ...

    @abstractmethod
    def remove(self, event_id: str) -> None: ...

    @abstractmethod
    def cancel_occurrence(self, event_id: str, start: datetime) -> None: ...

    @abstractmethod
    def move_occurrence(self, event_id: str, start: datetime, new_start: datetime) -> None:
        """It then lasts an hour."""

    @abstractmethod
    def add_guest(self, event_id: str, email: str) -> None: ...

    @abstractmethod
    def events(self) -> list[Shown]:
        """Return all events, in order of time."""

    @abstractmethod
    def ids(self) -> list[str]: ...

    # --- Guests -----------------------------------------------------------------------------------
    @abstractmethod
    def answer(self, event_id: str, email: str, answer: str) -> None:
        """answer: accepted, tentative or declined."""

    @abstractmethod
    def mails_to(self, email: str) -> int:
        """Return how many messages of the server about events a guest has got."""

    # --- The server -------------------------------------------------------------------------------
    @abstractmethod
    def count_requests(self) -> int:
        """Return how many requests the server has got so far."""

    @abstractmethod
    def fail(self) -> None:
        """End each connection without an answer, until `recover`."""

    @abstractmethod
    def recover(self) -> None: ...

    @abstractmethod
    def lose_answer(self) -> None:
        """Carry out the next write of a new event, and lose the answer."""

    @abstractmethod
    def throttle(self, *, times: int) -> None:
        """Refuse so many requests, since there were too many."""

    @abstractmethod
    def forget_marks(self) -> None:
        """The next sync has to read everything anew."""
