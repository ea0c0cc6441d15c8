"""Split a feed into one iCalendar text per UID, line by line: fast enough for 5,000 events.

Only UIDs, zones and dates of the events are parsed here.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from common.messages import Message
from external_calendars.providers.base import RemoteObject

UID_LENGTH = 300
NAME_LENGTH = 200
MAX_DEPTH = 20
# Of all entries together. Each entry has copies of its zones, so the total may exceed the feed.
MAX_LETTERS = 64 << 20

FOLD = re.compile(rb"\n[ \t]")  # before decoding: a fold may split a UTF-8 sequence
ZONE_NAME = re.compile(r';TZID="?([^":;]+)"?[:;]', re.I)
UID = re.compile(r"UID[;:]", re.I)
# Many feeds set DTSTAMP to the time of the request: not a change.
STAMP = re.compile(r"DTSTAMP[;:]", re.I)
DATES = re.compile(r"^(?:DTSTART|DTEND)(?:;[^:]*)?:(\d{8})", re.I | re.M)
# An event with one of these may extend beyond its two dates.
OPEN_ENDED = re.compile(r"^(?:RRULE|RDATE|DURATION|RECURRENCE-ID)[;:]", re.I | re.M)
KEPT = re.compile(r"(?:VERSION|PRODID|CALSCALE|X-WR-TIMEZONE)[;:]", re.I)
MARGIN = timedelta(days=2)  # a date in any zone is at most this far from the date in UTC


class FeedTruncated(ValueError):
    """The text is not a calendar, or is incomplete."""


class FeedTooLarge(ValueError):
    """The entries are much larger than the feed."""


class FeedComponent(NamedTuple):
    """The lines of a VEVENT or VTIMEZONE; `name` is its UID or TZID."""

    kind: str
    name: str
    text: str


class FeedCalendar(NamedTuple):
    """One VCALENDAR of the stream: its kept properties and its components."""

    lines: tuple[str, ...]
    components: tuple[FeedComponent, ...]


class FeedEntry:
    """All events of one UID, as a calendar of its own with the zones they name."""

    def __init__(self, uid: str, lines: Iterable[str]) -> None:
        self.uid, self.lines = uid, tuple(lines)
        self.events: list[str] = []
        self.zones: dict[str, str] = {}

    @property
    def href(self) -> str:
        """The UID, or its hash if it is longer than UID_LENGTH."""
        return self.uid if len(self.uid) <= UID_LENGTH else hash_text(self.uid)

    @property
    def text(self) -> str:
        parts = ["BEGIN:VCALENDAR", *self.lines, *self.zones.values(), *self.events]
        return "\r\n".join([*parts, "END:VCALENDAR", ""])

    @property
    def etag(self) -> str:
        lines = self.text.split("\r\n")
        return hash_text("\n".join(line for line in lines if not STAMP.match(line)))

    def as_object(self) -> RemoteObject:
        return RemoteObject(self.href, self.etag, self.text)

    def may_touch(self, start: datetime, end: datetime) -> bool:
        """False only if the dates are certainly outside the range."""
        text = "\n".join(self.events).replace("\r", "")
        dates = sorted(DATES.findall(text))
        if not dates or OPEN_ENDED.search(text):
            return True
        first, last = f"{start - MARGIN:%Y%m%d}", f"{end + MARGIN:%Y%m%d}"
        return dates[0] <= last and first <= dates[-1]


def split_feed(body: bytes) -> list[FeedEntry]:
    """Return the entries in the order of their first events. Raises FeedTruncated, FeedTooLarge."""
    entries, letters = dict[str, FeedEntry](), 0
    for calendar in parse_calendars(unfold_lines(body)):
        zones = {part.name: part.text for part in calendar.components if part.kind == "VTIMEZONE"}
        for part in calendar.components:
            if part.kind != "VEVENT":
                continue
            uid = part.name or synthetic_uid(part.text)
            text = part.text if part.name else part.text.replace("\r\n", f"\r\nUID:{uid}\r\n", 1)
            entry = entries.setdefault(uid, FeedEntry(uid, calendar.lines))
            entry.events.append(text)
            for name in ZONE_NAME.findall(text):
                if name in zones and name not in entry.zones:
                    entry.zones[name] = zones[name]
                    letters += len(zones[name])
            letters += len(text)
            if letters > MAX_LETTERS:
                raise FeedTooLarge
    return list(entries.values())


def calendar_name(body: bytes) -> str:
    """Return the feed's name (X-WR-CALNAME, or NAME of RFC 7986); "" if it has none."""
    for line in unfold_lines(body):
        name, mark, value = line.partition(":")
        if mark and name.partition(";")[0].upper() in ("X-WR-CALNAME", "NAME"):
            plain = re.sub(r"\\([\\;,])", r"\1", value.replace("\\n", " "))
            return " ".join(plain.split())[:NAME_LENGTH]
        if line.upper() == "BEGIN:VEVENT":
            break
    return ""


def unfold_lines(body: bytes) -> list[str]:
    """Return the content lines (RFC 5545 3.1), for any kind of line end, without empty ones."""
    plain = body.replace(b"\0", b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = FOLD.sub(b"", plain).decode("utf-8-sig", errors="replace")
    return [line for line in text.split("\n") if line and not line.isspace()]


def parse_calendars(lines: list[str]) -> Iterator[FeedCalendar]:
    """Yield the calendars. Raises FeedTruncated, also without any calendar."""
    position = 0
    while position < len(lines):
        calendar, position = parse_calendar(lines, position)
        yield calendar
    if not lines:
        raise FeedTruncated(Message("The response is empty."))


def parse_calendar(lines: list[str], position: int) -> tuple[FeedCalendar, int]:
    """Return the calendar that begins at `position`, and the position of the next one."""
    if lines[position].strip().upper() != "BEGIN:VCALENDAR":
        raise FeedTruncated(Message("The response is not a calendar."))
    kept: list[str] = []
    components: list[FeedComponent] = []
    open_names = ["VCALENDAR"]
    begin = position
    for number in range(position + 1, len(lines)):
        line = lines[number]
        word = line[:6].upper()
        if word == "BEGIN:":
            open_names.append(line[6:].strip().upper())
            lines[number] = f"BEGIN:{open_names[-1]}"
            begin = number if len(open_names) == 2 else begin
            if len(open_names) > MAX_DEPTH:
                raise FeedTruncated("The calendar is nested too deeply.")
        elif word.startswith("END:"):
            name = open_names.pop()
            lines[number] = f"END:{name}"
            if line[4:].strip().upper() != name:
                raise FeedTruncated("The calendar's BEGIN and END lines do not match.")
            if not open_names:
                return FeedCalendar(tuple(kept), tuple(components)), number + 1
            if len(open_names) == 1:
                components.append(parse_component(lines[begin : number + 1]))
        elif len(open_names) == 1 and KEPT.match(line):
            kept.append(line)
    raise FeedTruncated(Message("The calendar is incomplete."))


def parse_component(lines: list[str]) -> FeedComponent:
    """Return the component with its own name, not that of a nested alarm."""
    kind = lines[0][6:].strip().upper()
    wanted = {"VEVENT": "UID", "VTIMEZONE": "TZID"}.get(kind)
    name, level = "", 0
    for line in lines if wanted else ():
        word, mark, value = line.partition(":")
        word = word.upper()
        level += (word == "BEGIN") - (word == "END")
        if level == 1 and mark and word.partition(";")[0] == wanted:
            name = value.strip()
            break
    return FeedComponent(kind, name, "\r\n".join(lines) if wanted else "")


def synthetic_uid(text: str) -> str:
    """Return a UID for an event without one; it depends on the event's content only."""
    return hash_text("\n".join(line for line in text.split("\r\n") if not STAMP.match(line)))


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
