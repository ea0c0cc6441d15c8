"""iCalendar text (RFC 5545) into components: bounded, and without anything that outlives it.

The library reads lines and values. Its zones are left alone: it keeps what a text defines for the
whole process, under names that the next text may define otherwise. So every time comes as it is
written, and clocks.py says what it means.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from icalendar import Component
from icalendar.cal.component_factory import ComponentFactory
from icalendar.parser import Contentline, Contentlines
from icalendar.parser.ical.calendar import CalendarIcalParser
from icalendar.prop import TypesFactory

MOST_CHARACTERS = 10_000_000  # with what is attached
MOST_LINES = 200_000
MOST_LINES_READ = 20_000
MOST_CHARACTERS_READ = 2_000_000
MOST_RULES = 100  # one that counts from 1970 takes a twentieth of a second
MOST_DEPTH = 8
LONGEST_LINE = 100_000
LONGEST_TEXT = 20_000

# What a text can't mean: control characters, and halves of surrogate pairs.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
_NAME = re.compile(r"\s*([A-Za-z0-9-]+)\s*[;:]")
TEXTS = frozenset({"SUMMARY", "LOCATION", "DESCRIPTION"})
# What decides about time: an event or zone in which one of these can't be read is not read at all.
TIMES = frozenset(
    {"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID"}
)
TIMED = frozenset({"VEVENT", "STANDARD", "DAYLIGHT"})
READ = (
    TEXTS
    | TIMES
    | {"BEGIN", "END", "UID", "SEQUENCE", "STATUS", "TRANSP", "CLASS", "ATTENDEE"}
    | {"X-MICROSOFT-CDO-BUSYSTATUS", "X-WR-TIMEZONE", "TZID", "TZOFFSETFROM", "TZOFFSETTO"}
)


class Unreadable(ValueError):
    """The text is no iCalendar that could be read."""


def read_components(text: str) -> list[Component]:
    """Its VCALENDARs, with the properties that are of use here. Raises Unreadable."""
    if len(text) > MOST_CHARACTERS or text.count("\n") > MOST_LINES:
        raise Unreadable("The text is too long.")
    lines = list(_lines(_UNWANTED.sub("", text)))
    if len(lines) > MOST_LINES_READ or sum(map(len, lines)) > MOST_CHARACTERS_READ:
        raise Unreadable("The text says too much.")
    if sum(line[:5].upper() == "RRULE" for line in lines) > MOST_RULES:
        raise Unreadable("The text has too many rules.")
    try:
        components = _Parser(lines).parse()
    except Unreadable:
        raise
    except Exception as error:  # whatever the library trips over, it is the text's fault
        raise Unreadable(f"The text can't be read ({type(error).__name__}).") from error
    calendars = [component for component in components if component.name == "VCALENDAR"]
    if not calendars:
        raise Unreadable("The text is no calendar.")
    return calendars


def _lines(text: str) -> Iterator[Contentline]:
    """Unfolded, those that are read; of long texts the beginning."""
    depth = 0
    for line in Contentlines.from_ical(text):
        match = _NAME.match(line[:100])
        name = match[1].upper() if match else ""
        if name not in READ or line.endswith(":"):
            continue
        depth += (name == "BEGIN") - (name == "END")
        if depth > MOST_DEPTH:
            raise Unreadable("The text is nested too deeply.")
        if len(line) > LONGEST_TEXT and name in TEXTS:
            line = Contentline(line[:LONGEST_TEXT])
        if len(line) > LONGEST_LINE:
            raise Unreadable("A line is too long.")
        yield line


class _Parser(CalendarIcalParser):
    """Leaves out what can't be read, unless it decides about time."""

    datetime_names = ()

    def __init__(self, lines: list[Contentline]) -> None:
        super().__init__(lines, ComponentFactory(), TypesFactory.instance())

    def handle_end_component(self, vals: str) -> None:
        super().handle_end_component("")  # by its name the library would keep a zone

    def prepare_components(self) -> None:
        """Nothing to look up again: no zone was looked up."""

    def handle_line_parse_error(self, exception: Exception) -> None:
        """The line is left out."""

    def handle_property_parse_error(
        self, exception: Exception, name: str, params: Any, val: str, line: Contentline
    ) -> None:
        if self.component is not None and self.component.name in TIMED and name in TIMES:
            raise Unreadable(f"{name} can't be {val:.60}.") from exception


def all_of(component: Component, name: str) -> list[Any]:
    """The values of a property that may be there several times."""
    found = component.get(name)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def first_of(component: Component, name: str) -> Any:
    """The value of a property that is there once; None where it is not."""
    return next(iter(all_of(component, name)), None)


def word_of(component: Component, name: str) -> str:
    """A property of one word, in upper case; "" where it is not there."""
    return str(first_of(component, name) or "").strip().upper()


def text_of(value: Any) -> str:
    """A value as it is written, such as that of a rule."""
    return value.to_ical().decode()


def dates_of(component: Component, name: str) -> list[date]:
    """The dates and times of a property, as they are written; of periods their beginnings."""
    found = []
    for one in all_of(component, name):
        for value in one.dts:
            moment = value.dt[0] if isinstance(value.dt, tuple) else value.dt
            if isinstance(moment, date):
                found.append(moment)
    return found


def zone_of(value: Any) -> str:
    """The TZID of a date property; "" where it has none."""
    return str(value.params.get("TZID", ""))


def version_of(component: Component) -> int:
    """Its SEQUENCE; below any where it has none."""
    found = first_of(component, "SEQUENCE")
    return found if isinstance(found, int) else -1


def length_of(value: Any) -> timedelta:
    """Of a DURATION."""
    return value.dt if isinstance(value.dt, timedelta) else timedelta()


def is_whole_day(moment: date) -> bool:
    return not isinstance(moment, datetime)
