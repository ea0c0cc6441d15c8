"""Events of Google Calendar: its JSON resource `Event` (API v3). No database or network.

The text of an event that repeats is a series: `{"master": Event, "exceptions": {id: Event}}`.
Google writes recurrence as lines of iCalendar, so events are read as iCalendar. A cancelled
exception has only its id, `recurringEventId` and `originalStartTime`.

The id of a mirrored event is made from its UID, so a repeated insertion finds the first one. Google
derives `iCalUID` from the id, so this is its UID here, too.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from icalendar import Event

from common.email_address import canonical_address
from common.ical import occurrences
from common.ical.expand import Window
from common.ical.occurrences import ParsedObject, UnreadableCalendar
from common.ical.writing import Guest, ical_address, new_calendar
from external_calendars.event_formats.base import (
    AttendeeAnswer,
    ForeignObject,
    MirroredEvent,
    RemoteEvent,
    canonical_addresses,
)
from external_calendars.event_formats.json_text import Json, read_json, write_json

UID_SUFFIX = "@google.com"
# The property in which a mirrored event keeps its UID, visible to this service only.
UID_PROPERTY = "bookingUid"
CANCELLED = "cancelled"
MEET = "hangoutsMeet"
# What the owner's day is like, not appointments: they never block.
NEVER_BLOCK = frozenset({"workingLocation", "birthday"})
RECURRENCE_LINE = re.compile(r"(RRULE|RDATE|EXDATE|EXRULE)[;:][^\r\n]*")
RESPONSES = frozenset({"accepted", "tentative", "declined"})
INVITED = "1.1"  # sent (RFC 6638 3.2.9)
PARTSTATS = {
    "needsAction": "NEEDS-ACTION",
    "declined": "DECLINED",
    "tentative": "TENTATIVE",
    "accepted": "ACCEPTED",
}


# --- Ids ------------------------------------------------------------------------------------------
def google_uid(uid: str) -> str:
    """Return the UID at Google of the event with this UID."""
    # base32hex in small letters: the letters and digits that Google allows in an id.
    digest = base64.b32hexencode(hashlib.sha256(uid.encode()).digest()).decode()
    return digest.rstrip("=").lower() + UID_SUFFIX


def event_id(uid: str, generation: int = 0) -> str:
    """Return the id of the event with this UID at Google.

    generation: ids of events that were deleted for good can't be used again.
    """
    return uid.removesuffix(UID_SUFFIX) + (f"g{generation}" if generation else "")


def _uid_of(event: Json) -> str:
    own = _stored_uid(event)
    # A copy of a mirrored event that a person makes has another id.
    if own and str(event.get("id", "")).startswith(event_id(own)):
        return own
    return str(event.get("iCalUID") or event.get("id") or "")


def _stored_uid(event: Json) -> str:
    properties = event.get("extendedProperties")
    private = properties.get("private") if isinstance(properties, dict) else None
    return str(private.get(UID_PROPERTY, "")) if isinstance(private, dict) else ""


# --- Series ---------------------------------------------------------------------------------------
def series_text(master: Json, exceptions: Mapping[str, Json]) -> str:
    return write_json({"master": master, "exceptions": dict(exceptions)})


def read_series(text: str) -> tuple[Json, dict[str, Json]]:
    """Return (master, exceptions by id); of a single event, without exceptions."""
    value = read_json(text)
    if isinstance(value.get("master"), dict) and isinstance(value.get("exceptions"), dict):
        return value["master"], value["exceptions"]
    return value, {}


def is_cancelled(text: str) -> bool:
    return read_series(text)[0].get("status") == CANCELLED


# --- Reading --------------------------------------------------------------------------------------
def read_object(
    text: str,
    *,
    zone: str,
    window: Window,
    latest: datetime | None = None,
    address: str = "",
) -> ParsedObject:
    master, exceptions = read_series(text)
    uid = _uid_of(master)
    if master.get("eventType") in NEVER_BLOCK:
        return ParsedObject(uid, bool(master.get("recurrence")), [])
    try:
        ical = _to_ical(uid, master, exceptions)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableCalendar(f"Its times can't be read ({type(error).__name__}).") from error
    return occurrences.read_object(ical, zone=zone, window=window, latest=latest, address=address)


def _to_ical(uid: str, master: Json, exceptions: Mapping[str, Json]) -> str:
    calendar = new_calendar()
    calendar.add_component(_component(uid, master))
    for exception in exceptions.values():
        calendar.add_component(_component(uid, exception, master))
    lines = "".join(
        f"{line}\r\n"
        for line in master.get("recurrence") or ()
        if isinstance(line, str) and RECURRENCE_LINE.fullmatch(line)
    )
    return calendar.to_ical().decode().replace("END:VEVENT\r\n", f"{lines}END:VEVENT\r\n", 1)


def _component(uid: str, event: Json, master: Json | None = None) -> Event:
    component = Event()
    component.add("UID", uid)
    original = event.get("originalStartTime") if master else None
    start = _moment(event.get("start") or original or {})
    if original:
        component.add("RECURRENCE-ID", _moment(original))
    component.add("DTSTART", start)
    if event.get("end"):
        component.add("DTEND", _moment(event["end"]))
    if event.get("status") == CANCELLED:
        component.add("STATUS", "CANCELLED")
    for name, key in (("SUMMARY", "summary"), ("LOCATION", "location")):
        if event.get(key):
            component.add(name, str(event[key]))
    if event.get("description"):
        component.add("DESCRIPTION", str(event["description"]))
    if event.get("transparency") == "transparent" or _is_declined_by_owner(event):
        component.add("TRANSP", "TRANSPARENT")
    if event.get("visibility") in ("private", "confidential"):
        component.add("CLASS", "PRIVATE")
    for attendee in _attendees(event):
        status = PARTSTATS.get(str(attendee.get("responseStatus")), "NEEDS-ACTION")
        guest = Guest(str(attendee.get("displayName") or ""), attendee["email"])
        component.add("ATTENDEE", ical_address(guest, PARTSTAT=status))
    return component


def _is_declined_by_owner(event: Json) -> bool:
    return any(
        attendee.get("self") and attendee.get("responseStatus") == "declined"
        for attendee in _attendees(event)
    )


def _attendees(event: Json) -> list[Json]:
    attendees = event.get("attendees") or []
    return [each for each in attendees if isinstance(each, dict) and each.get("email")]


def _moment(value: Mapping[str, Any]) -> datetime | date:
    """Return a date, or a time in the event's zone. Raises KeyError, ValueError."""
    if "date" in value:
        return date.fromisoformat(value["date"])
    moment = datetime.fromisoformat(value["dateTime"])
    zone = value.get("timeZone")
    if not isinstance(zone, str) or zone == "UTC":
        return moment.astimezone(UTC) if moment.tzinfo else moment
    try:
        return moment.astimezone(ZoneInfo(zone)) if moment.tzinfo else moment
    except (ZoneInfoNotFoundError, ValueError):
        return moment.astimezone(UTC) if moment.tzinfo else moment


# --- Mirrored events ------------------------------------------------------------------------------
def compose_event(entry: MirroredEvent) -> str:
    event: Json = {"extendedProperties": {"private": {UID_PROPERTY: entry.uid}}}
    _write_values(event, entry)
    return write_json(event)


def update_event(text: str, entry: MirroredEvent) -> str | None:
    event = _find_mirrored_event(text, entry.uid)
    changed = event.pop("recurrence", None) is not None
    changed |= _write_values(event, entry)
    return write_json(event) if changed else None


def replace_event(text: str, entry: MirroredEvent) -> str:
    before = _find_mirrored_event(text, entry.uid)
    event = read_json(compose_event(entry))
    return write_json(event | {name: before[name] for name in ("id", "sequence") if name in before})


def has_uid(text: str, uid: str) -> bool:
    try:
        return _find_mirrored_event(text, uid).get("status") != CANCELLED
    except (UnreadableCalendar, ForeignObject):
        return False


def read_remote_event(text: str, uid: str) -> RemoteEvent:
    event = _find_mirrored_event(text, uid)
    try:
        start, end = _moment(event["start"]), _moment(event["end"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableCalendar("The event has no start or no end.") from error
    return RemoteEvent(
        start,
        end,
        is_recurring=bool(event.get("recurrence")),
        is_cancelled=event.get("status") == CANCELLED,
    )


def read_invitations(text: str, uid: str, addresses: Collection[str]) -> dict[str, str]:
    """Google invites every attendee of an event that is written with `sendUpdates=all`."""
    try:
        event = _find_mirrored_event(text, uid)
    except (UnreadableCalendar, ForeignObject):
        return {}
    there = canonical_addresses(attendee["email"] for attendee in _attendees(event))
    return dict.fromkeys(sorted(there & set(addresses)), INVITED)


def read_conference_url(text: str) -> str:
    """Google makes the conference after its answer: it is `pending` at first."""
    data = read_series(text)[0].get("conferenceData") or {}
    points = [
        each for each in data.get("entryPoints") or () if each.get("entryPointType") == "video"
    ]
    return str(points[0].get("uri") or "") if points else ""


def read_answers(text: str, uid: str, addresses: Collection[str]) -> dict[str, AttendeeAnswer]:
    try:
        event = _find_mirrored_event(text, uid)
    except (UnreadableCalendar, ForeignObject):
        return {}
    found = {
        canonical_address(attendee["email"]): attendee.get("responseStatus")
        for attendee in _attendees(event)
    }
    return {
        address: AttendeeAnswer(response)
        for address, response in found.items()
        if address in addresses and response in RESPONSES
    }


def _find_mirrored_event(text: str, uid: str) -> Json:
    event, _ = read_series(text)
    if _uid_of(event) != uid:
        raise ForeignObject
    return event


def _write_values(event: Json, entry: MirroredEvent) -> bool:
    """Write the entry's values into `event`; return whether anything changed."""
    before = write_json(event)
    if _times(event) != (_in_utc(entry.start), _in_utc(entry.end)):
        event["start"], event["end"] = _time(entry.start), _time(entry.end)
        _reset_answers(event, entry)
    wanted = {
        "summary": entry.what,
        "location": entry.where,
        "description": entry.description,
        "status": "confirmed",
        "transparency": "opaque",
    }
    for name, value in wanted.items():
        # Google leaves out empty texts and "opaque".
        if event.get(name, "opaque" if name == "transparency" else "") != value:
            event[name] = value
    _invite(event, entry)
    if entry.conference == "meet" and not event.get("conferenceData"):
        # An id that was used before makes no second conference.
        request_id = f"{event_id(entry.uid)}-{entry.sequence}"
        solution = {"type": MEET}
        event["conferenceData"] = {
            "createRequest": {"requestId": request_id, "conferenceSolutionKey": solution}
        }
    return write_json(event) != before


def _times(event: Json) -> Sequence[Any]:
    try:
        return _in_utc(_moment(event["start"])), _in_utc(_moment(event["end"]))
    except (KeyError, TypeError, ValueError):
        return ()


def _time(value: datetime | date) -> Json:
    if isinstance(value, datetime):
        return {"dateTime": value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"date": value.isoformat()}


def _in_utc(value: datetime | date) -> datetime | date:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def _reset_answers(event: Json, entry: MirroredEvent) -> None:
    """Ask the entry's guests again: their answers were about another time."""
    guests = canonical_addresses(guest.address for guest in entry.guests)
    for attendee in _attendees(event):
        if canonical_address(attendee["email"]) in guests:
            attendee["responseStatus"] = "needsAction"


def _invite(event: Json, entry: MirroredEvent) -> None:
    """Add and remove attendees; keep the replies of the others."""
    guests = {canonical_address(guest.address): guest for guest in entry.guests}
    stay = [
        attendee
        for attendee in _attendees(event)
        if canonical_address(attendee["email"]) in guests
        or canonical_address(attendee["email"]) not in entry.known
    ]
    there = canonical_addresses(attendee["email"] for attendee in stay)
    added = [
        {"email": guest.address} | ({"displayName": guest.name} if guest.name else {})
        for address, guest in guests.items()
        if address not in there
    ]
    if added or len(stay) < len(_attendees(event)):
        event["attendees"] = [*stay, *added]
