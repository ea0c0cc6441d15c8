"""Parse external iCalendar text into occurrences. Pure: no database, no network."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from icalendar import Component

from common.email_address import canonical_address
from common.ical.components import (
    UnreadableCalendar,
    all_values,
    first_value,
    keyword_value,
    read_components,
)
from common.ical.expand import (
    MAX_OCCURRENCES,
    OccurrenceSpan,
    Window,
    expand_series,
    has_recurrence,
)
from common.ical.timezones import Clock, ClocksByTzid, ZoneClock, resolve_tzid
from common.time.instants import FIRST_YEAR, LAST_YEAR

__all__ = [
    "CalendarOccurrence",
    "ParsedObject",
    "UnreadableCalendar",
    "read_object",
    "read_occurrences",
]

MAX_UID = 300
MAX_LINE = 200
MAX_DESCRIPTION = 8000
MAX_ADDRESS = 254
MAX_PARTICIPANTS = 100
FIRST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
LAST = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)
UNNAMED = "Busy"
ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")


class CalendarOccurrence(NamedTuple):
    """One occurrence: aware UTC in whole seconds, half-open, end after start.

    All-day occurrences also have their dates, the end exclusive. Texts fit the columns of an Event.
    """

    uid: str
    start: datetime
    end: datetime
    all_day: bool
    start_date: date | None
    end_date: date | None
    busy: bool
    what: str
    where: str
    description: str
    participants: tuple[str, ...]


class ParsedObject(NamedTuple):
    """A parsed object. uid: "" if it has none. occurrences: those that overlap the window."""

    uid: str
    is_recurring: bool
    occurrences: list[CalendarOccurrence]


def read_occurrences(
    text: str, *, zone: str, window: Window, address: str = ""
) -> list[CalendarOccurrence]:
    """Return the occurrences that overlap the half-open `window`. Raises UnreadableCalendar.

    zone: the zone (the resource's) of dates and floating times. address: the owner's e-mail; events
    that this attendee has declined do not block.
    """
    return read_object(text, zone=zone, window=window, address=address).occurrences


def read_object(
    text: str,
    *,
    zone: str,
    window: Window,
    latest: datetime | None = None,
    address: str = "",
) -> ParsedObject:
    """Parse one object like `read_occurrences`, with its UID and whether it repeats.

    latest: a later end of the window for events that do not repeat. If an object has several UIDs
    (RFC 4791, section 4.1, allows one), each is expanded on its own, and all get the first UID.
    Raises UnreadableCalendar, also above 5,000 occurrences and for rules more frequent than hourly.
    """
    calendars = read_components(text)
    try:
        return _read(calendars, zone, window, latest or window[1], canonical_address(address))
    except UnreadableCalendar:
        raise
    except Exception as error:  # the libraries raise many types of errors for malformed text
        raise UnreadableCalendar(
            f"Its times can't be read ({type(error).__name__}: {error})."
        ) from error


def _read(
    calendars: Sequence[Component], zone: str, window: Window, latest: datetime, address: str
) -> ParsedObject:
    groups: dict[str, list[Component]] = {}
    events = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    for event in events:
        groups.setdefault(_uid_of(event), []).append(event)
    uid = next(iter(groups), "")
    clocks = _clocks(calendars, zone, window)
    occurrences: list[CalendarOccurrence] = []
    is_recurring = False
    for group in groups.values():
        timed = [event for event in group if first_value(event, "DTSTART") is not None]
        if timed:
            repeats = has_recurrence(timed)
            is_recurring = is_recurring or repeats
            seen = window if repeats else (window[0], latest)
            for stretch in expand_series(timed, clocks, window):
                stretch = _limit_to_supported_years(stretch)
                is_off = keyword_value(stretch.component, "STATUS") == "CANCELLED"
                if _touches(stretch, seen) and not is_off:
                    occurrences.append(_occurrence(uid, stretch, address))
                if len(occurrences) > MAX_OCCURRENCES:
                    raise UnreadableCalendar("The event has too many occurrences.")
    occurrences.sort(key=lambda occurrence: (occurrence.start, occurrence.end))
    return ParsedObject(uid, is_recurring, occurrences)


def _clocks(calendars: Sequence[Component], zone: str, window: Window) -> ClocksByTzid:
    defined = {
        str(first_value(component, "TZID")): component
        for calendar in calendars
        for component in calendar.walk("VTIMEZONE")
    }
    days = ZoneClock(zone)
    default: Clock = days
    for calendar in calendars:
        named = resolve_tzid(str(first_value(calendar, "X-WR-TIMEZONE") or ""))
        default = ZoneClock(named) if named else default
    return ClocksByTzid(defined, default=default, days=days, window=window)


def _uid_of(event: Component) -> str:
    return _line(first_value(event, "UID"), MAX_UID)


def _limit_to_supported_years(stretch: OccurrenceSpan) -> OccurrenceSpan:
    """Limit the span to the supported years."""
    start, end = max(stretch.start, FIRST), min(stretch.end, LAST)
    if (start, end) == stretch[1:3]:
        return stretch
    days = stretch.days
    if days is not None:
        days = max(days[0], FIRST.date()), min(days[1], LAST.date())
    return stretch._replace(start=start, end=end, days=days)


def _touches(stretch: OccurrenceSpan, window: Window) -> bool:
    """Return whether the span overlaps the window; a span without length does not."""
    return stretch.start < stretch.end and stretch.start < window[1] and stretch.end > window[0]


def _occurrence(uid: str, stretch: OccurrenceSpan, address: str) -> CalendarOccurrence:
    event, days = stretch.component, stretch.days
    is_public = keyword_value(event, "CLASS") not in ("PRIVATE", "CONFIDENTIAL")
    what = _line(first_value(event, "SUMMARY"), MAX_LINE) if is_public else ""
    return CalendarOccurrence(
        uid=uid,
        start=stretch.start,
        end=stretch.end,
        all_day=days is not None,
        start_date=days[0] if days else None,
        end_date=days[1] if days else None,
        busy=_blocks(event, address),
        what=what or UNNAMED,
        where=_line(first_value(event, "LOCATION"), MAX_LINE) if is_public else "",
        description=_description(event) if is_public else "",
        participants=tuple(_participants(event)) if is_public else (),
    )


def _blocks(event: Component, address: str) -> bool:
    if keyword_value(event, "TRANSP") == "TRANSPARENT":
        return False
    if keyword_value(event, "X-MICROSOFT-CDO-BUSYSTATUS") == "FREE":
        return False
    return not any(
        str(attendee.params.get("PARTSTAT", "")).upper() == "DECLINED"
        and canonical_address(attendee_address(attendee)) == address
        for attendee in all_values(event, "ATTENDEE")
        if address
    )


def _line(value: object, longest: int) -> str:
    return " ".join(str(value or "").split())[:longest].strip()


def _description(event: Component) -> str:
    text = str(first_value(event, "DESCRIPTION") or "").replace("\r\n", "\n").replace("\r", "\n")
    return text.strip()[:MAX_DESCRIPTION].strip()


def _participants(event: Component) -> Iterator[str]:
    """Yield the attendees' addresses, each once, at most MAX_PARTICIPANTS."""
    named: dict[str, str] = {}
    for attendee in all_values(event, "ATTENDEE"):
        address = attendee_address(attendee)
        if len(address) <= MAX_ADDRESS and ADDRESS.fullmatch(address):
            named.setdefault(canonical_address(address), address)
    yield from list(named.values())[:MAX_PARTICIPANTS]


def attendee_address(attendee: object) -> str:
    """Return the address of a `mailto:` URI; of other URIs, the EMAIL parameter or ""."""
    scheme, _, address = str(attendee).partition(":")
    if scheme.casefold() == "mailto":
        return address.strip()
    return str(getattr(attendee, "params", {}).get("EMAIL", "")).strip()
