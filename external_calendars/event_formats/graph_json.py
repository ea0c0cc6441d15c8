"""Events of Microsoft 365: the resource `event` of Microsoft Graph v1.0. No database or network.

Series arrive expanded: each occurrence is an object of its own, and has in its text what it takes
from its series. Times are asked for in UTC; all-day events have dates there.

A mirrored event keeps its UID in an extended property, by which it can be searched, and at the
start of its `transactionId`, which every answer has and nobody can change.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from common.email_address import canonical_address
from common.ical.expand import Window
from common.ical.occurrences import (
    MAX_ADDRESS,
    MAX_DESCRIPTION,
    MAX_LINE,
    MAX_PARTICIPANTS,
    UNNAMED,
    CalendarOccurrence,
    ParsedObject,
    UnreadableCalendar,
)
from common.time.instants import wall_to_utc_or_gap_end
from external_calendars.event_formats.base import (
    AttendeeAnswer,
    ForeignObject,
    MirroredEvent,
    RemoteEvent,
    canonical_addresses,
)
from external_calendars.event_formats.json_text import Json, read_json, write_json

UID_PROPERTY = "String {5f1d3c5e-8a0b-4f57-9f5e-6d2f0c9b7a41} Name BookingUid"
SERIES = "seriesMaster"
OCCURRENCES = "occurrenceIds"  # ours, in the text of a series
# What an occurrence takes from its series, whose item alone has it.
FROM_SERIES = (
    *("subject", "location", "bodyPreview", "showAs", "sensitivity", "isAllDay"),
    *("attendees", "isCancelled", "responseStatus", "isOrganizer"),
)
# How the owner works that day, or a note in the calendar: they block no time.
NOT_BUSY = frozenset({"free", "workingElsewhere"})
TEAMS = "teamsForBusiness"
ONLINE_MEETING = {"isOnlineMeeting": True, "onlineMeetingProvider": TEAMS}
HIDDEN = frozenset({"private", "confidential"})
RESPONSES = {
    "accepted": "accepted",
    "tentativelyAccepted": "tentative",
    "declined": "declined",
}
INVITED = "1.1"  # sent (RFC 6638 3.2.9)
MAX_ATTENDEES = 500


def transaction_id(entry: MirroredEvent) -> str:
    """Return the id by which Graph finds a repeated creation.

    It has the entry's number of changes, since an event that was deleted keeps its id.
    """
    return f"{entry.uid}/{entry.sequence}"


def _uid_of(event: Json) -> str:
    own, slash, _ = str(event.get("transactionId") or "").rpartition("/")
    if slash and "@" in own:
        return own
    for each in event.get("singleValueExtendedProperties") or ():
        if str(each.get("id", "")).casefold() == UID_PROPERTY.casefold():
            return str(each.get("value", ""))
    return str(event.get("id") or "")


# --- Reading --------------------------------------------------------------------------------------
def occurrence_text(event: Json, series: Json | None) -> str:
    """Return the text of an item; series: that of its series, if it belongs to one."""
    inherited = {name: series[name] for name in FROM_SERIES if name in series} if series else {}
    return write_json(inherited | event)


def series_text(series: Json, occurrences: Sequence[str]) -> str:
    """Return the text of a series with the ids of its occurrences in the window."""
    return write_json(series | {OCCURRENCES: sorted(occurrences)})


def series_occurrences(text: str) -> list[str]:
    """Return the ids of `series_text`; [] for other texts."""
    found = read_json(text).get(OCCURRENCES)
    return [str(each) for each in found] if isinstance(found, list) else []


def read_object(
    text: str,
    *,
    zone: str,
    window: Window,
    latest: datetime | None = None,
    address: str = "",
) -> ParsedObject:
    event = read_json(text)
    uid = _uid_of(event)
    if event.get("type") == SERIES:
        return ParsedObject(uid, True, [])
    try:
        occurrence = _occurrence(uid, event, zone)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UnreadableCalendar(f"Its times can't be read ({type(error).__name__}).") from error
    is_seen = (
        occurrence.start < occurrence.end
        and occurrence.start < (latest or window[1])
        and occurrence.end > window[0]
        and not event.get("isCancelled")
    )
    return ParsedObject(uid, False, [occurrence] if is_seen else [])


def _occurrence(uid: str, event: Json, zone: str) -> CalendarOccurrence:
    start, end = _times(event)
    days = None if isinstance(start, datetime) else (start, end)
    is_public = event.get("sensitivity") not in HIDDEN
    location = event.get("location") or {}
    return CalendarOccurrence(
        uid=uid,
        start=_instant(start, zone),
        end=_instant(end, zone),
        all_day=days is not None,
        start_date=days[0] if days else None,
        end_date=days[1] if days else None,
        busy=event.get("showAs") not in NOT_BUSY
        and _response_of_calendar_owner(event) != "declined",
        what=(_line(event.get("subject")) if is_public else "") or UNNAMED,
        where=_line(location.get("displayName")) if is_public else "",
        description=str(event.get("bodyPreview") or "").strip()[:MAX_DESCRIPTION]
        if is_public
        else "",
        participants=_participants(event) if is_public else (),
    )


def _times(event: Json) -> tuple[Any, Any]:
    """Return start and end: dates of an all-day event, else in UTC. Raises KeyError, ValueError."""
    if event.get("isAllDay"):
        start, end = (date.fromisoformat(event[name]["dateTime"][:10]) for name in ("start", "end"))
    else:
        start, end = (_moment(event[name]) for name in ("start", "end"))
    return start, end


def _moment(value: Mapping[str, Any]) -> datetime:
    """`2026-11-23T08:00:00.0000000` in the zone that was asked for, UTC."""
    if value["timeZone"] != "UTC":
        raise ValueError(value["timeZone"])
    return datetime.fromisoformat(value["dateTime"][:19]).replace(tzinfo=UTC)


def _instant(value: datetime | date, zone: str) -> datetime:
    if isinstance(value, datetime):
        return value
    return wall_to_utc_or_gap_end(datetime(value.year, value.month, value.day), zone)


def _response_of_calendar_owner(event: Json) -> str:
    return str((event.get("responseStatus") or {}).get("response", ""))


def _line(value: object) -> str:
    return " ".join(str(value or "").split())[:MAX_LINE].strip()


def _attendees(event: Json) -> list[Json]:
    attendees = event.get("attendees") or ()
    return [each for each in attendees if _address(each)]


def _address(attendee: Json) -> str:
    return str((attendee.get("emailAddress") or {}).get("address") or "")


def _participants(event: Json) -> tuple[str, ...]:
    named = {canonical_address(_address(each)): _address(each) for each in _attendees(event)}
    fitting = [address for address in named.values() if len(address) <= MAX_ADDRESS]
    return tuple(fitting[:MAX_PARTICIPANTS])


# --- Mirrored events ------------------------------------------------------------------------------
def compose_event(entry: MirroredEvent) -> str:
    event: Json = {
        "transactionId": transaction_id(entry),
        "singleValueExtendedProperties": [{"id": UID_PROPERTY, "value": entry.uid}],
        "allowNewTimeProposals": False,
    }
    event |= _values(entry) | {"attendees": _invited([], entry)}
    return write_json(event | (ONLINE_MEETING if entry.conference == "teams" else {}))


def update_event(text: str, entry: MirroredEvent) -> str | None:
    """Return the fields to change. Microsoft itself resets the answers of a moved event."""
    event = _find_mirrored_event(text, entry.uid)
    changes: Json = {"recurrence": None} if event.get("recurrence") else {}
    wanted = _values(entry)
    if _times_or_none(event) != (entry.start, entry.end):
        changes |= {name: wanted[name] for name in ("start", "end", "isAllDay")}
    if _line(event.get("subject")) != _line(entry.what):
        changes["subject"] = wanted["subject"]
    if _line((event.get("location") or {}).get("displayName")) != _line(entry.where):
        changes["location"] = wanted["location"]
    if event.get("showAs") != "busy":
        changes["showAs"] = "busy"
    # Graph writes how to join into the body of an online meeting, and ends it without these lines.
    if not event.get("isOnlineMeeting") and not _is_same_text(event, entry.description):
        changes["body"] = wanted["body"]
    if entry.conference == "teams" and not event.get("isOnlineMeeting"):
        changes |= ONLINE_MEETING
    before = _attendees(event)
    invited = _invited(before, entry)
    if invited != before:
        changes |= {"attendees": invited, "hideAttendees": wanted["hideAttendees"]}
    return write_json(changes) if changes else None


def replace_event(text: str, entry: MirroredEvent) -> str:
    _find_mirrored_event(text, entry.uid)
    return write_json(_values(entry) | {"attendees": _invited([], entry), "recurrence": None})


def has_uid(text: str, uid: str) -> bool:
    try:
        _find_mirrored_event(text, uid)
    except (UnreadableCalendar, ForeignObject):
        return False
    return True


def read_remote_event(text: str, uid: str) -> RemoteEvent:
    event = _find_mirrored_event(text, uid)
    times = _times_or_none(event)
    if times is None:
        raise UnreadableCalendar("The event has no start or no end.")
    return RemoteEvent(
        *times,
        is_recurring=event.get("type") == SERIES,
        is_cancelled=bool(event.get("isCancelled")),
    )


def read_invitations(text: str, uid: str, addresses: Collection[str]) -> dict[str, str]:
    """Microsoft invites every attendee."""
    try:
        event = _find_mirrored_event(text, uid)
    except (UnreadableCalendar, ForeignObject):
        return {}
    there = canonical_addresses(_address(each) for each in _attendees(event))
    return dict.fromkeys(sorted(there & set(addresses)), INVITED)


def read_conference_url(text: str) -> str:
    """Return the link, which comes with the answer or in a later one."""
    meeting = read_json(text).get("onlineMeeting") or {}
    return str(meeting.get("joinUrl") or "")


def read_answers(text: str, uid: str, addresses: Collection[str]) -> dict[str, AttendeeAnswer]:
    try:
        event = _find_mirrored_event(text, uid)
    except (UnreadableCalendar, ForeignObject):
        return {}
    found = {}
    for attendee in _attendees(event):
        status = attendee.get("status") or {}
        response = RESPONSES.get(str(status.get("response")))
        if response and canonical_address(_address(attendee)) in addresses:
            at = _answered_at(status.get("time"))
            found[canonical_address(_address(attendee))] = AttendeeAnswer(response, at)
    return found


def _answered_at(text: object) -> datetime | None:
    """Return the instant of `2026-11-23T08:00:00.0000000Z`; None for another text, and for the year
    1, by which Graph means none.
    """
    try:
        moment = datetime.fromisoformat(str(text)[:19]).replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment if moment.year > 1 else None


def _find_mirrored_event(text: str, uid: str) -> Json:
    event = read_json(text)
    if _uid_of(event) != uid:
        raise ForeignObject
    return event


def _times_or_none(event: Json) -> tuple[Any, Any] | None:
    try:
        return _times(event)
    except (KeyError, TypeError, ValueError):
        return None


def _values(entry: MirroredEvent) -> Json:
    return {
        "subject": entry.what,
        "location": {"displayName": entry.where},
        "body": {"contentType": "text", "content": entry.description},
        "start": _time(entry.start),
        "end": _time(entry.end),
        "isAllDay": not isinstance(entry.start, datetime),
        "showAs": "busy",
        # The guests of a group do not know each other.
        "hideAttendees": len(entry.guests) > 1,
    }


def _time(value: datetime | date) -> Json:
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
        return {"dateTime": value.strftime("%Y-%m-%dT%H:%M:%S"), "timeZone": "UTC"}
    return {"dateTime": f"{value.isoformat()}T00:00:00", "timeZone": "UTC"}


def _is_same_text(event: Json, text: str) -> bool:
    body = event.get("body") or {}
    return str(body.get("content") or "").split() == text.split()


def _invited(attendees: Sequence[Json], entry: MirroredEvent) -> list[Json]:
    """Return the attendees: the entry's guests, and those that others have added."""
    guests = {canonical_address(guest.address): guest for guest in entry.guests}
    stay = [
        each
        for each in attendees
        if canonical_address(_address(each)) in guests
        or canonical_address(_address(each)) not in entry.known
    ]
    there = canonical_addresses(_address(each) for each in stay)
    added = [
        {
            "type": "required",
            "emailAddress": {"address": guest.address}
            | ({"name": guest.name} if guest.name else {}),
        }
        for address, guest in guests.items()
        if address not in there
    ]
    return [*stay, *added][:MAX_ATTENDEES]
