"""What the tests of written bookings share: a calendar that is connected, a provider in memory that
may fail or die at any request, and what stands there."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import icalendar

from availability.models import Calendar
from external_calendars.credentials import store_credentials
from external_calendars.event_formats import ical
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers.base import CalendarAccess, PreconditionFailed, RemoteObject
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from tests.world import app_of

ADDRESS = "https://dav.example.com/ada/work/"


class Dies(BaseException):
    """The process ends here."""


class Memory:
    """Calendars by their address, objects by their path. `calls`: "put /ada/work/x.ics", in order.

    `before(call)` and `after(call)` may raise, around what a call does.
    """

    name, label, can_write = "caldav", "In memory", True
    event_format = ical

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, str]] = {}
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda call: None
        self.after: Callable[[str], None] = lambda call: None
        self._etags = itertools.count(1)
        self._lock = threading.Lock()

    # --- as another client sees and changes it ----------------------------------------------------
    def set(self, href: str, text: str) -> str:
        etag = f'"{next(self._etags)}"'
        self.objects[href] = (etag, text)
        return etag

    def text(self, href: str) -> str:
        return self.objects[href][1]

    # --- the provider -----------------------------------------------------------------------------
    def _do(self, verb: str, href: str, act: Callable[[], Any]) -> Any:
        with self._lock:
            call = f"{verb} {href}"
            self.calls.append(call)
            self.before(call)
            try:
                return act()
            finally:
                self.after(call)

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        return self._do("read", href, lambda: self._object(href))

    def _object(self, href: str) -> RemoteObject | None:
        there = self.objects.get(href)
        return RemoteObject(href, *there) if there else None

    def put(
        self, access: CalendarAccess, href: str, text: str, etag: str, *, deadline: float
    ) -> RemoteObject:
        def write() -> RemoteObject:
            self._check(href, etag)
            return RemoteObject(href, self.set(href, text), "")

        return self._do("put", href, write)

    def delete(self, access: CalendarAccess, href: str, etag: str, *, deadline: float) -> None:
        def remove() -> None:
            if href in self.objects:
                self._check(href, etag)
                del self.objects[href]

        self._do("delete", href, remove)

    def _check(self, href: str, etag: str) -> None:
        there = self.objects.get(href, ("", ""))[0]
        if there != etag:
            raise PreconditionFailed

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        found = [self._do("fetch", href, lambda href=href: self._object(href)) for href in hrefs]
        yield [one for one in found if one]

    def new_uid(self, uid: str) -> str:
        return uid

    def locate(self, access: CalendarAccess, uid: str, *, deadline: float) -> str:
        path = "/" + access.address.split("/", 3)[3]
        return f"{path}{uid}.ics"


def connect(
    resource: Any,
    access: CalendarAccess | str = ADDRESS,
    *,
    is_primary: bool = True,
    provider: str = "caldav",
    **given: Any,
) -> Calendar:
    """A calendar of the resource that can be written to."""
    access = CalendarAccess(access) if isinstance(access, str) else access
    calendar = Calendar.objects.create(
        app=app_of(resource["id"]),
        resource_id=resource["id"],
        name="Work",
        provider=provider,
        provider_id=access.address,
        provider_access=Calendar.WRITER,
        provider_primary=is_primary,
        **given,
    )
    connection = Connection(calendar=calendar)
    store_credentials(connection, access)
    connection.save(force_insert=True)
    return calendar


def write() -> int:
    """What is due goes out; how many tries there were."""
    return run_dispatcher("calendar")


def make_due() -> None:
    """As if the time of the next tries had come, and every lease had lapsed."""
    for row in Delivery.objects.open().filter(type="calendar"):
        Delivery.objects.filter(id=row.id).update(next_at=row.created_at)


def deliveries(**only: Any) -> list[tuple[str, str, str]]:
    """(kind, state, reason) of each write, in the order of planning."""
    rows = Delivery.objects.filter(type="calendar", **only).order_by("id")
    return [(row.kind, row.state, row.reason) for row in rows]


def copies(**only: Any) -> list[tuple[str, str]]:
    """(state, reason) of what was written, in the order of its making."""
    rows = WrittenEvent.objects.filter(**only).order_by("id")
    return [(row.state, row.reason) for row in rows]


class Shown(NamedTuple):
    """What a calendar program shows of an object."""

    uid: str
    start: datetime | date
    end: datetime | date
    what: str
    guests: list[str]


def events_of(text: str) -> list[icalendar.Event]:
    return icalendar.Calendar.from_ical(text).events


def shown(text: str) -> Shown:
    """Of an object with one event."""
    [event] = events_of(text)
    guests = event.get("ATTENDEE", [])
    guests = guests if isinstance(guests, list) else [guests]
    return Shown(
        str(event["UID"]),
        event.start,
        event.end,
        str(event["SUMMARY"]),
        sorted(str(guest).removeprefix("mailto:") for guest in guests),
    )


def change(text: str, **values: Any) -> str:
    """The object's text with properties of its event replaced (None: taken out), as a person does
    in a calendar program."""
    calendar = icalendar.Calendar.from_ical(text)
    [event] = calendar.events
    for name, value in values.items():
        event.pop(name.upper(), None)
        if value is not None:
            event.add(name, value)
    return calendar.to_ical().decode()


def look(calendar: Calendar, objects: dict[str, tuple[str, str]]) -> None:
    """As a look leaves it behind: href -> (etag, text) of all that stands there."""
    ExternalObject.objects.filter(connection=calendar.id).delete()
    for href, (etag, text) in objects.items():
        uid = str(events_of(text)[0]["UID"])
        ExternalObject.objects.create(
            connection=calendar.connection, href=href, etag=etag, text=text, uid=uid
        )
