"""A feed of many events into one text for each UID, by its lines: 5,000 events in a blink.

Nothing is understood of the events but their UIDs, zones and dates; reading them comes later.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from external_calendars.providers.base import Object

UID_LENGTH = 300
NAME_LENGTH = 200
MOST_DEPTH = 20
# Of all entries together: each has copies of its zones, so that a feed may come to more than it is.
MOST_LETTERS = 64 << 20

FOLD = re.compile(rb"\n[ \t]")  # before decoding: a fold may lie within a letter
ZONE_NAME = re.compile(r';TZID="?([^":;]+)"?[:;]', re.I)
UID = re.compile(r"UID[;:]", re.I)
# Many feeds stamp each event with the moment at which they are asked: no change.
STAMP = re.compile(r"DTSTAMP[;:]", re.I)
DATES = re.compile(r"^(?:DTSTART|DTEND)(?:;[^:]*)?:(\d{8})", re.I | re.M)
# The time of an event with one of these is not within its two dates.
OPEN_ENDED = re.compile(r"^(?:RRULE|RDATE|DURATION|RECURRENCE-ID)[;:]", re.I | re.M)
KEPT = re.compile(r"(?:VERSION|PRODID|CALSCALE|X-WR-TIMEZONE)[;:]", re.I)
MARGIN = timedelta(days=2)  # a date in any zone is at most so far from that in UTC


class NotWhole(ValueError):
    """The text is no calendar, or not all of one."""


class Swollen(ValueError):
    """The entries come to much more text than the feed had."""


class Component(NamedTuple):
    """The lines of a VEVENT or VTIMEZONE, with its name for others: the UID, the TZID."""

    kind: str
    name: str
    text: str


class Calendar(NamedTuple):
    """One VCALENDAR of the stream: its own lines that are kept, and what it holds."""

    lines: tuple[str, ...]
    components: tuple[Component, ...]


class Entry:
    """All that is said under one UID, as a calendar of its own with the zones that it names."""

    def __init__(self, uid: str, lines: Iterable[str]) -> None:
        self.uid, self.lines = uid, tuple(lines)
        self.events: list[str] = []
        self.zones: dict[str, str] = {}

    @property
    def href(self) -> str:
        """The UID, or its hash where it is longer than a UID may be here."""
        return self.uid if len(self.uid) <= UID_LENGTH else hashed(self.uid)

    @property
    def text(self) -> str:
        parts = ["BEGIN:VCALENDAR", *self.lines, *self.zones.values(), *self.events]
        return "\r\n".join([*parts, "END:VCALENDAR", ""])

    @property
    def etag(self) -> str:
        lines = self.text.split("\r\n")
        return hashed("\n".join(line for line in lines if not STAMP.match(line)))

    def as_object(self) -> Object:
        return Object(self.href, self.etag, self.text)

    def may_touch(self, start: datetime, end: datetime) -> bool:
        """False only where the dates lie plainly outside of the range."""
        said = "\n".join(self.events).replace("\r", "")
        dates = sorted(DATES.findall(said))
        if not dates or OPEN_ENDED.search(said):
            return True
        first, last = f"{start - MARGIN:%Y%m%d}", f"{end + MARGIN:%Y%m%d}"
        return dates[0] <= last and first <= dates[-1]


def split_feed(body: bytes) -> list[Entry]:
    """The entries of a feed, in the order of their first events. Raises NotWhole, Swollen."""
    entries, letters = dict[str, Entry](), 0
    for calendar in calendars_in(unfolded(body)):
        zones = {part.name: part.text for part in calendar.components if part.kind == "VTIMEZONE"}
        for part in calendar.components:
            if part.kind != "VEVENT":
                continue
            uid = part.name or uid_for(part.text)
            text = part.text if part.name else part.text.replace("\r\n", f"\r\nUID:{uid}\r\n", 1)
            entry = entries.setdefault(uid, Entry(uid, calendar.lines))
            entry.events.append(text)
            for name in ZONE_NAME.findall(text):
                if name in zones and name not in entry.zones:
                    entry.zones[name] = zones[name]
                    letters += len(zones[name])
            letters += len(text)
            if letters > MOST_LETTERS:
                raise Swollen
    return list(entries.values())


def calendar_name(body: bytes) -> str:
    """What a feed calls itself (X-WR-CALNAME, or NAME of RFC 7986), "" where it does not."""
    for line in unfolded(body):
        name, mark, value = line.partition(":")
        if mark and name.partition(";")[0].upper() in ("X-WR-CALNAME", "NAME"):
            plain = re.sub(r"\\([\\;,])", r"\1", value.replace("\\n", " "))
            return " ".join(plain.split())[:NAME_LENGTH]
        if line.upper() == "BEGIN:VEVENT":
            break
    return ""


def unfolded(body: bytes) -> list[str]:
    """The content lines (RFC 5545 3.1), with any kind of line end, without empty ones."""
    plain = body.replace(b"\0", b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = FOLD.sub(b"", plain).decode("utf-8-sig", errors="replace")
    return [line for line in text.split("\n") if line and not line.isspace()]


def calendars_in(lines: list[str]) -> Iterator[Calendar]:
    """Raises NotWhole, also for no calendar at all."""
    position = 0
    while position < len(lines):
        calendar, position = read_calendar(lines, position)
        yield calendar
    if not lines:
        raise NotWhole("The answer is empty.")


def read_calendar(lines: list[str], position: int) -> tuple[Calendar, int]:
    """The calendar that begins at `position`, and where the next one would."""
    if lines[position].strip().upper() != "BEGIN:VCALENDAR":
        raise NotWhole("The answer is no calendar.")
    kept, components, open_names = [], [], ["VCALENDAR"]
    begin = position
    for number in range(position + 1, len(lines)):
        line = lines[number]
        word = line[:6].upper()
        if word == "BEGIN:":
            open_names.append(line[6:].strip().upper())
            lines[number] = f"BEGIN:{open_names[-1]}"
            begin = number if len(open_names) == 2 else begin
            if len(open_names) > MOST_DEPTH:
                raise NotWhole("The calendar's parts lie too deep in each other.")
        elif word.startswith("END:"):
            name = open_names.pop()
            lines[number] = f"END:{name}"
            if line[4:].strip().upper() != name:
                raise NotWhole("The calendar's parts do not end where they should.")
            if not open_names:
                return Calendar(tuple(kept), tuple(components)), number + 1
            if len(open_names) == 1:
                components.append(component(lines[begin : number + 1]))
        elif len(open_names) == 1 and KEPT.match(line):
            kept.append(line)
    raise NotWhole("The calendar breaks off.")


def component(lines: list[str]) -> Component:
    """Its own name and not that of an alarm within it."""
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
    return Component(kind, name, "\r\n".join(lines) if wanted else "")


def uid_for(text: str) -> str:
    """Of an event that has none: the same for as long as it says the same."""
    return hashed("\n".join(line for line in text.split("\r\n") if not STAMP.match(line)))


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
