"""Bookings as entries of a calendar elsewhere (RFC 5545). Pure: no database, no network."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from icalendar import Calendar, Component, Event, vCalAddress

from external_calendars.reading import Unreadable
from notifications.mail.invitations import PRODUCT, Guest, moment, person

# What makes one event several, or gives it another end than DTEND.
REPETITION = ("RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID")


class NotOurs(Exception):
    """What stands there has another UID."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a booking's event says. start, end: aware, or dates of whole days, the end exclusive.

    guests: who is invited. known: the addresses, in lower case, of all whom the booking ever had:
    which of them is not invited any more is taken out, other attendees are the owner's own.
    """

    uid: str
    sequence: int
    stamp: datetime
    start: datetime | date
    end: datetime | date
    what: str
    where: str
    description: str
    organizer: Guest | None
    guests: Sequence[Guest]
    known: Collection[str]


class Standing(NamedTuple):
    """What an entry says of its time: as in Entry; without a zone where it floats."""

    start: datetime | date
    end: datetime | date
    is_recurring: bool
    is_cancelled: bool


def compose(entry: Entry) -> str:
    """A new entry, as text with CRLF."""
    calendar = Calendar()
    calendar.add("PRODID", PRODUCT)
    calendar.add("VERSION", "2.0")
    calendar.add("CALSCALE", "GREGORIAN")
    event = Event()
    event.add("UID", entry.uid)
    event.add("SEQUENCE", entry.sequence)
    _say(event, entry)
    event.add("DTSTAMP", entry.stamp)
    calendar.add_component(event)
    return calendar.to_ical().decode()


def revise(text: str, entry: Entry) -> str | None:
    """The text that stands there with what the entry says, and with all that others have added:
    alarms, categories, guests, their answers. None: it says so already. Raises Unreadable, NotOurs.
    """
    calendar = _read(text)
    event = _find(calendar, entry.uid)
    was_at = _span(event)
    changed = _drop_repetition(calendar, event)
    changed |= _say(event, entry)
    if not changed:
        return None
    sequence = _sequence(event) + (was_at != _span(event))
    _put(event, "SEQUENCE", max(sequence, entry.sequence))
    _put(event, "DTSTAMP", entry.stamp)
    event.pop("LAST-MODIFIED", None)
    return calendar.to_ical().decode()


def renew(text: str, entry: Entry) -> str:
    """A new entry instead of what stands there, of which nothing is kept. Raises as `revise`."""
    there = _sequence(_find(_read(text), entry.uid))
    return compose(replace(entry, sequence=max(there, entry.sequence)))


def is_of(text: str, uid: str) -> bool:
    """Whether it is the entry of that UID."""
    try:
        _find(_read(text), uid)
    except (Unreadable, NotOurs):
        return False
    return True


def read_standing(text: str, uid: str) -> Standing:
    """When the entry is, as it stands there. Raises Unreadable, NotOurs."""
    calendar = _read(text)
    event = _find(calendar, uid)
    span = _span(event)
    if span is None:
        raise Unreadable("It has no start or no end.")
    several = len(_of_uid(calendar, uid)) > 1
    return Standing(
        *span,
        is_recurring=several or any(name in event for name in REPETITION),
        is_cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
    )


# --- Reading --------------------------------------------------------------------------------------
def _read(text: str) -> Component:
    try:
        calendar = Calendar.from_ical(text)
    except Exception as error:  # whatever a stranger's text does to the parser
        raise Unreadable(f"It is no iCalendar ({type(error).__name__}).") from error
    if calendar.name != "VCALENDAR":
        raise Unreadable("It is no calendar.")
    return calendar


def _of_uid(calendar: Component, uid: str) -> list[Component]:
    return [one for one in calendar.walk("VEVENT") if str(one.get("UID", "")).strip() == uid]


def _find(calendar: Component, uid: str) -> Component:
    """The event itself, not one of its exceptions."""
    events = _of_uid(calendar, uid)
    if not events:
        raise NotOurs
    return next((event for event in events if "RECURRENCE-ID" not in event), events[0])


def _span(event: Component) -> tuple[Any, Any] | None:
    try:
        return _in_utc(event.start), _in_utc(event.end)
    except Exception:
        return None  # as above: without times, or with some that are none


def _in_utc(value: datetime | date) -> datetime | date:
    is_aware = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC) if is_aware else value


def _sequence(event: Component) -> int:
    try:
        return int(event.get("SEQUENCE", 0))
    except (TypeError, ValueError):
        return 0


# --- Writing --------------------------------------------------------------------------------------
def _drop_repetition(calendar: Component, event: Component) -> bool:
    """Make it one event again. Whether it was none."""
    exceptions = [one for one in _of_uid(calendar, str(event["UID"]).strip()) if one is not event]
    for one in exceptions:
        calendar.subcomponents.remove(one)
    found = [name for name in REPETITION if event.pop(name, None) is not None]
    return bool(exceptions or found)


def _say(event: Component, entry: Entry) -> bool:
    """Whether anything had to be said anew."""
    changed = False
    if _span(event) != (_in_utc(entry.start), _in_utc(entry.end)):
        for name, value in (("DTSTART", entry.start), ("DTEND", entry.end)):
            _put(event, name, moment(value))
        event.pop("DURATION", None)
        changed = True
    texts = {
        "SUMMARY": entry.what,
        "LOCATION": entry.where,
        "DESCRIPTION": entry.description,
        "STATUS": "CONFIRMED",
        "TRANSP": "OPAQUE",
    }
    for name, text in texts.items():
        if str(event.get(name, "")) != text:
            changed = True
            _put(event, name, text)
    return _invite(event, entry) or changed


def _put(event: Component, name: str, value: Any) -> None:
    """Instead of what is there; an empty text is left out."""
    event.pop(name, None)
    if value != "":
        event.add(name, value)


def _invite(event: Component, entry: Entry) -> bool:
    """Add and take out attendees; those who stay keep what they have answered."""
    there = _attendees(event)
    wanted = {guest.address.lower(): guest for guest in entry.guests}
    stay = [one for one in there if _address(one) in wanted or _address(one) not in entry.known]
    new = wanted.keys() - {_address(one) for one in stay}
    added = [_attendee(guest) for address, guest in wanted.items() if address in new]
    changed = bool(added) or len(stay) < len(there)
    if changed:
        event.pop("ATTENDEE", None)
        for one in (*stay, *added):
            event.add("ATTENDEE", one)
    if entry.organizer and wanted and "ORGANIZER" not in event:
        event.add("ORGANIZER", person(entry.organizer))
        changed = True
    return changed


def _attendees(event: Component) -> list[vCalAddress]:
    found = event.get("ATTENDEE", [])
    return list(found) if isinstance(found, list) else [found]


def _attendee(guest: Guest) -> vCalAddress:
    """Who invites them is the provider (RFC 6638): SCHEDULE-AGENT is its default, SERVER."""
    return person(
        guest,
        CUTYPE="INDIVIDUAL",
        ROLE="REQ-PARTICIPANT",
        PARTSTAT="NEEDS-ACTION",
        RSVP="TRUE",
    )


def _address(attendee: Any) -> str:
    return str(attendee).strip().lower().removeprefix("mailto:")


def lower(addresses: Iterable[str]) -> frozenset[str]:
    return frozenset(address.lower() for address in addresses if address)
