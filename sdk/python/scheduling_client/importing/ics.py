"""Calendar files (RFC 5545): their events take time, or are bookings of their attendees.

The files are read by the packages icalendar and python-dateutil: `scheduling-client[ics]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from scheduling_client.importing.reading import MAX_ROWS, read_file
from scheduling_client.importing.records import (
    Booking,
    Event,
    Person,
    Record,
    Skipped,
    SourceFailed,
    Unreadable,
    Unusable,
)
from scheduling_client.importing.times import check_order, instant_of, zone_name

try:
    import icalendar
    from dateutil import rrule
except ImportError:
    IS_INSTALLED = False
else:
    IS_INSTALLED = True

MAX_OCCURRENCES = 1000  # of one event
As = Literal["events", "bookings"]


class Reader:
    """Reads the events of one file.

    resource: whose calendar it is. zone: of times without one. until: recurring events are expanded
    from `now` to then.
    """

    def __init__(
        self, *, resource: str, wanted: As, zone: str, now: datetime, until: datetime
    ) -> None:
        self.resource = resource
        self.wanted = wanted
        self.zone = zone_name(zone)
        self.now = now
        self.until = until
        self.kind: Literal["event", "booking"] = "event" if wanted == "events" else "booking"

    def read(self, path: str) -> Iterator[Record]:
        """Yield the events of a file. Raises SourceFailed."""
        if not IS_INSTALLED:
            raise SourceFailed("Install scheduling-client[ics] to read calendar files.")
        try:
            calendars = icalendar.Calendar.from_ical(read_file(Path(path)), multiple=True)
        except ValueError as error:
            raise SourceFailed(f"{path} is no calendar file: {error}.") from error
        entries: list[Any] = [entry for calendar in calendars for entry in calendar.walk("VEVENT")]
        if len(entries) > MAX_ROWS:
            raise SourceFailed(f"{path} has more than {MAX_ROWS} events.")
        changed: dict[str, set[datetime]] = {}  # occurrences that have an entry of their own
        for entry in entries:
            if "RECURRENCE-ID" in entry and "DTSTART" in entry:
                with suppress(Unusable):  # reported below
                    wall = self.to_wall_time(entry["RECURRENCE-ID"].dt, self.zone_of(entry))
                    changed.setdefault(str(entry.get("UID", "")).strip(), set()).add(wall)
        for number, entry in enumerate(entries, 1):
            key = str(entry.get("UID", "")) or f"row {number}"
            try:
                yield from self.read_entry(entry, changed)
            except Unusable as error:
                yield Unreadable(kind=self.kind, key=key[:200], reason=str(error))

    def read_entry(self, entry: Any, changed: dict[str, set[datetime]]) -> Iterator[Record]:
        uid = str(entry.get("UID", "")).strip()
        if not uid:
            raise Unusable("It has no UID.")
        if "DTSTART" not in entry:
            raise Unusable("It has no DTSTART.")
        zone = self.zone_of(entry)
        start = self.to_wall_time(entry["DTSTART"].dt, zone)
        length = self.length_of(entry, zone)
        if "RECURRENCE-ID" in entry:
            original = self.to_wall_time(entry["RECURRENCE-ID"].dt, zone)
            yield self.record(entry, f"{uid}/{original:%Y%m%dT%H%M%S}", start, length, zone)
        elif "RRULE" in entry or "RDATE" in entry:
            skipped = changed.get(uid, set())
            for wall in self.occurrences(entry, start, zone):
                if wall not in skipped:
                    key = f"{uid}/{wall:%Y%m%dT%H%M%S}"
                    yield self.occurrence(entry, key, wall, length, zone)
        else:
            yield self.record(entry, uid, start, length, zone)

    def zone_of(self, entry: Any) -> str:
        """Return the zone of an event: that of its DTSTART, else the reader's. Raises Unusable."""
        begin = entry["DTSTART"]
        if "TZID" in begin.params:
            return zone_name(str(begin.params["TZID"]))
        return "UTC" if isinstance(begin.dt, datetime) and begin.dt.tzinfo else self.zone

    def to_wall_time(self, moment: date | datetime, zone: str) -> datetime:
        """Return a time of the file on the clock of `zone`; a date is its midnight."""
        if not isinstance(moment, datetime):
            return datetime(moment.year, moment.month, moment.day)
        if moment.tzinfo is None or str(moment.tzinfo) == zone:
            return moment.replace(tzinfo=None)
        return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)

    def length_of(self, entry: Any, zone: str) -> timedelta:
        """Return the length on the clock: DTEND, DURATION, else a day for a date."""
        start = entry["DTSTART"].dt
        if "DTEND" in entry:
            return self.to_wall_time(entry["DTEND"].dt, zone) - self.to_wall_time(start, zone)
        if "DURATION" in entry:
            length: timedelta = entry["DURATION"].dt
            return length
        if isinstance(start, datetime):
            raise Unusable("It has neither DTEND nor DURATION.")
        return timedelta(days=1)

    def occurrences(self, entry: Any, start: datetime, zone: str) -> list[datetime]:
        """Return the starts from now on, on the clock. Raises Unusable."""
        first = self.now.replace(tzinfo=None) - timedelta(days=1)
        last = self.until.replace(tzinfo=None) + timedelta(days=1)
        found = rrule.rruleset()
        try:
            for rule in several(entry.get("RRULE")):
                text = rule.to_ical().decode()
                found.rrule(rrule.rrulestr(with_until_on_the_clock(text, zone), dtstart=start))
        except ValueError as error:
            raise Unusable(f"Its RRULE can't be read: {error}.") from error
        found.rdate(start)
        for name, add in (("RDATE", found.rdate), ("EXDATE", found.exdate)):
            for dates in several(entry.get(name)):
                for each in dates.dts:
                    if isinstance(each.dt, tuple):
                        raise Unusable("It has an RDATE with a period.")
                    add(self.to_wall_time(each.dt, zone))
        starts = []
        for wall in found.xafter(first, count=MAX_OCCURRENCES + 1, inc=True):
            if wall > last:
                break
            starts.append(wall)
        if len(starts) > MAX_OCCURRENCES:
            raise Unusable(f"It occurs more than {MAX_OCCURRENCES} times until --until.")
        return starts

    def occurrence(
        self, entry: Any, key: str, start: datetime, length: timedelta, zone: str
    ) -> Record:
        """One of several: if it can't be read, the others go on."""
        try:
            return self.record(entry, key, start, length, zone)
        except Unusable as error:
            return Unreadable(kind=self.kind, key=key, reason=str(error))

    def record(self, entry: Any, key: str, wall: datetime, length: timedelta, zone: str) -> Record:
        start, end = instant_of(wall, zone), instant_of(wall + length, zone)
        check_order(start, end)
        what = str(entry.get("SUMMARY", "")).strip() or "Busy"
        is_cancelled = str(entry.get("STATUS", "")).upper() == "CANCELLED"
        if self.wanted == "events":
            if is_cancelled:
                return Skipped(kind="event", key=key, reason="It is cancelled.")
            if str(entry.get("TRANSP", "")).upper() == "TRANSPARENT":
                return Skipped(kind="event", key=key, reason="It takes no time (TRANSPARENT).")
            return Event(key=key, resource=self.resource, start=start, end=end, what=what)
        people = people_of(entry)
        if not people:
            return Skipped(kind="booking", key=key, reason="It has no attendee.")
        return Booking(
            key=key,
            resource=self.resource,
            service=None,
            start=start,
            end=end,
            people=people,
            what=what,
            where=text_of(entry, "LOCATION"),
            description=text_of(entry, "DESCRIPTION"),
            state="cancelled" if is_cancelled else "confirmed",
        )


def people_of(entry: Any) -> tuple[Person, ...]:
    """Return the attendees with an e-mail address, without the organizer and resources."""
    organizer = address_of(entry.get("ORGANIZER"))
    people = {}
    for attendee in several(entry.get("ATTENDEE")):
        address = address_of(attendee)
        kind = str(attendee.params.get("CUTYPE", "INDIVIDUAL")).upper()
        if address and address != organizer and kind == "INDIVIDUAL":
            name = str(attendee.params.get("CN", "")).strip() or address
            people[address] = Person(name=name, email=address)
    return tuple(people.values())


def address_of(value: Any) -> str:
    """Return the address of mailto:..., in small letters, else an empty text."""
    text = str(value) if isinstance(value, icalendar.vCalAddress) else ""
    scheme, _, address = text.partition(":")
    return address.strip().lower() if scheme.lower() == "mailto" else ""


def several(value: Any) -> list[Any]:
    """Return the values of a property that may occur several times."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(entry: Any, name: str) -> str | None:
    return str(entry.get(name, "")).strip() or None


def with_until_on_the_clock(rule: str, zone: str) -> str:
    """Return an RRULE whose UNTIL is no instant in UTC but what clocks in `zone` then show."""
    parts = rule.split(";")
    for number, part in enumerate(parts):
        name, _, value = part.partition("=")
        if name.upper() == "UNTIL" and value.endswith("Z"):
            until = datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            parts[number] = f"UNTIL={until.astimezone(ZoneInfo(zone)):%Y%m%dT%H%M%S}"
    return ";".join(parts)
