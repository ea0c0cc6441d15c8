"""Events as iCalendar objects (RFC 5545), of CalDAV servers and feeds. No database or network."""

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from icalendar import Calendar, Component, Event, vCalAddress

from common.email_address import canonical_address
from common.ical.occurrences import UnreadableCalendar, attendee_address, read_object
from common.ical.writing import Guest, ical_address, ical_time, new_calendar
from external_calendars.event_formats.base import (
    AttendeeAnswer,
    ForeignObject,
    MirroredEvent,
    RemoteEvent,
    canonical_addresses,
)

__all__ = [
    "compose_event",
    "has_uid",
    "read_answers",
    "read_conference_url",
    "read_invitations",
    "read_object",
    "read_remote_event",
    "replace_event",
    "update_event",
]

# Properties that make the event recur, or that end it otherwise than DTEND.
REPETITION = ("RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID")
SCHEDULE_STATUS = "SCHEDULE-STATUS"
NEEDS_ACTION = "NEEDS-ACTION"
RESPONSES = {"ACCEPTED": "accepted", "TENTATIVE": "tentative", "DECLINED": "declined"}
STATUS_CODE = re.compile(r"[1-5]\.\d{1,2}")


def compose_event(entry: MirroredEvent) -> str:
    """Return a new iCalendar object with CRLF line ends."""
    calendar = new_calendar()
    event = Event()
    event.add("UID", entry.uid)
    event.add("SEQUENCE", entry.sequence)
    _write_values(event, entry)
    event.add("DTSTAMP", entry.stamp)
    calendar.add_component(event)
    return calendar.to_ical().decode()


def update_event(text: str, entry: MirroredEvent) -> str | None:
    """Return `text` with the entry's values; None if it has them already.

    Keeps what others have added: alarms, categories, attendees, and unless the time changes, their
    replies. Raises UnreadableCalendar, ForeignObject.
    """
    calendar = _read(text)
    event = _find_master(calendar, entry.uid)
    was_at = _span(event)
    changed = _drop_repetition(calendar, event)
    changed |= _write_values(event, entry)
    if not changed:
        return None
    is_moved = was_at != _span(event)
    if is_moved:
        _reset_answers(event, entry)
    sequence = _read_sequence(event) + is_moved
    _put(event, "SEQUENCE", max(sequence, entry.sequence))
    _put(event, "DTSTAMP", entry.stamp)
    event.pop("LAST-MODIFIED", None)
    return calendar.to_ical().decode()


def replace_event(text: str, entry: MirroredEvent) -> str:
    """Return a new object that keeps only the SEQUENCE of `text`. Raises as `update_event`."""
    sequence = _read_sequence(_find_master(_read(text), entry.uid))
    return compose_event(replace(entry, sequence=max(sequence, entry.sequence)))


def read_invitations(text: str, uid: str, addresses: Collection[str]) -> dict[str, str]:
    """Return these attendees with their SCHEDULE-STATUS (RFC 6638 3.2.9), "" without one.

    {"marty@example.com": "1.1"}; of several codes the last. {} if `text` is another object.
    """
    try:
        event = _find_master(_read(text), uid)
    except (UnreadableCalendar, ForeignObject):
        return {}
    found = {_address(attendee): attendee.params for attendee in _attendees(event)}
    return {
        address: max(STATUS_CODE.findall(str(params.get(SCHEDULE_STATUS, ""))), default="")
        for address, params in found.items()
        if address in addresses
    }


def read_conference_url(text: str) -> str:
    """CalDAV servers make no links."""
    return ""


def read_answers(text: str, uid: str, addresses: Collection[str]) -> dict[str, AttendeeAnswer]:
    """Return the answers of those of these attendees who have answered, by their PARTSTAT.

    {} if `text` is another object.
    """
    try:
        event = _find_master(_read(text), uid)
    except (UnreadableCalendar, ForeignObject):
        return {}
    found = {_address(attendee): _partstat(attendee) for attendee in _attendees(event)}
    return {
        address: AttendeeAnswer(RESPONSES[partstat])
        for address, partstat in found.items()
        if address in addresses and partstat in RESPONSES
    }


def has_uid(text: str, uid: str) -> bool:
    """Return whether `text` has an event with the UID; False for unreadable text."""
    try:
        _find_master(_read(text), uid)
    except (UnreadableCalendar, ForeignObject):
        return False
    return True


def read_remote_event(text: str, uid: str) -> RemoteEvent:
    """Return the event's times and status. Raises UnreadableCalendar, ForeignObject."""
    calendar = _read(text)
    event = _find_master(calendar, uid)
    span = _span(event)
    if span is None:
        raise UnreadableCalendar("The event has no start or no end.")
    several = len(_of_uid(calendar, uid)) > 1
    return RemoteEvent(
        *span,
        is_recurring=several or any(name in event for name in REPETITION),
        is_cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
    )


# --- Reading --------------------------------------------------------------------------------------
def _read(text: str) -> Component:
    try:
        calendar = Calendar.from_ical(text)
    except Exception as error:  # foreign text may cause any error in the parser
        raise UnreadableCalendar(f"The text is not iCalendar ({type(error).__name__}).") from error
    if calendar.name != "VCALENDAR":
        raise UnreadableCalendar("The text is not a calendar.")
    return calendar


def _of_uid(calendar: Component, uid: str) -> list[Component]:
    return [event for event in calendar.walk("VEVENT") if str(event.get("UID", "")).strip() == uid]


def _find_master(calendar: Component, uid: str) -> Component:
    """Return the master event, not one of its exceptions. Raises ForeignObject."""
    events = _of_uid(calendar, uid)
    if not events:
        raise ForeignObject
    return next((event for event in events if "RECURRENCE-ID" not in event), events[0])


def _span(event: Component) -> tuple[Any, Any] | None:
    try:
        start, end = (_in_utc(getattr(event, name)) for name in ("start", "end"))
        return start, end
    except Exception:
        return None  # without times, or with malformed ones


def _in_utc(value: datetime | date) -> datetime | date:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def _partstat(attendee: vCalAddress) -> str:
    return str(attendee.params.get("PARTSTAT", NEEDS_ACTION)).upper()


def _read_sequence(event: Component) -> int:
    try:
        return int(event.get("SEQUENCE", 0))
    except (TypeError, ValueError):
        return 0


# --- Writing --------------------------------------------------------------------------------------
def _drop_repetition(calendar: Component, event: Component) -> bool:
    """Remove recurrence rules and exceptions; return whether there were any."""
    exceptions = [
        component
        for component in _of_uid(calendar, str(event["UID"]).strip())
        if component is not event
    ]
    for exception in exceptions:
        calendar.subcomponents.remove(exception)
    found = [name for name in REPETITION if event.pop(name, None) is not None]
    return bool(exceptions or found)


def _write_values(event: Component, entry: MirroredEvent) -> bool:
    """Write the entry's values into `event`; return whether anything changed."""
    changed = False
    if _span(event) != (_in_utc(entry.start), _in_utc(entry.end)):
        for name, value in (("DTSTART", entry.start), ("DTEND", entry.end)):
            _put(event, name, ical_time(value))
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
    """Replace a property; an empty text removes it."""
    event.pop(name, None)
    if value != "":
        event.add(name, value)


def _invite(event: Component, entry: MirroredEvent) -> bool:
    """Add and remove attendees, keep the replies of the others; return whether anything changed."""
    attendees = _attendees(event)
    guests_by_address = {canonical_address(guest.address): guest for guest in entry.guests}
    stay = [
        each_attendee
        for each_attendee in attendees
        if _address(each_attendee) in guests_by_address
        or _address(each_attendee) not in entry.known
    ]
    new = guests_by_address.keys() - {_address(each_attendee) for each_attendee in stay}
    added = [_attendee(guest) for address, guest in guests_by_address.items() if address in new]
    changed = bool(added) or len(stay) < len(attendees)
    if changed:
        event.pop("ATTENDEE", None)
        for attendee in (*stay, *added):
            event.add("ATTENDEE", attendee)
    if entry.organizer and guests_by_address and "ORGANIZER" not in event:
        event.add("ORGANIZER", ical_address(entry.organizer))
        changed = True
    return changed


def _reset_answers(event: Component, entry: MirroredEvent) -> None:
    """Ask the entry's guests again: their answers were about another time."""
    addresses = canonical_addresses(guest.address for guest in entry.guests)
    for attendee in _attendees(event):
        if _address(attendee) in addresses and _partstat(attendee) != NEEDS_ACTION:
            attendee.params["PARTSTAT"] = NEEDS_ACTION


def _attendees(event: Component) -> list[vCalAddress]:
    found = event.get("ATTENDEE", [])
    return list(found) if isinstance(found, list) else [found]


def _attendee(guest: Guest) -> vCalAddress:
    """Return an attendee. The provider invites: SCHEDULE-AGENT defaults to SERVER (RFC 6638)."""
    return ical_address(
        guest,
        CUTYPE="INDIVIDUAL",
        ROLE="REQ-PARTICIPANT",
        PARTSTAT=NEEDS_ACTION,
        RSVP="TRUE",
    )


def _address(attendee: Any) -> str:
    return canonical_address(attendee_address(attendee))
