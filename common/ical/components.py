"""Parse iCalendar text (RFC 5545) into components, bounded in size and without global state.

The library parses lines and values, but not time zones: it caches zones for the whole process under
names that the next text may define otherwise. Times are returned as written; see timezones.py.
"""

import re
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from typing import Any

from icalendar import Component
from icalendar.cal.component_factory import ComponentFactory
from icalendar.parser import Contentline, Contentlines
from icalendar.parser.ical.calendar import CalendarIcalParser
from icalendar.prop import TypesFactory

MAX_CHARACTERS = 10_000_000  # including attachments
MAX_LINES = 200_000
MAX_LINES_READ = 20_000
MAX_CHARACTERS_READ = 2_000_000
MAX_RULES = 100  # a rule with COUNT that starts in 1970 takes 50 ms to expand
MAX_DEPTH = 8
MAX_LINE = 100_000
MAX_TEXT = 20_000

# Characters dropped before parsing: control characters, lone surrogates, CR without LF.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
_NAME = re.compile(r"\s*([A-Za-z0-9-]+)\s*[;:]")
TEXTS = frozenset({"SUMMARY", "LOCATION", "DESCRIPTION"})
# If one of these can't be parsed in an event or zone, the text is refused: a time would be wrong.
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


class UnreadableCalendar(ValueError):
    """The text could not be parsed as iCalendar."""


def read_components(text: str, *, further: Collection[str] = ()) -> list[Component]:
    """Return the text's VCALENDARs with the properties in READ and `further` ones.

    Raises UnreadableCalendar.
    """
    if len(text) > MAX_CHARACTERS or text.count("\n") > MAX_LINES:
        raise UnreadableCalendar("The text is too long.")
    lines = list(_lines(_UNWANTED.sub("", text), READ.union(further)))
    if len(lines) > MAX_LINES_READ or sum(map(len, lines)) > MAX_CHARACTERS_READ:
        raise UnreadableCalendar("The text has too much content.")
    if sum(line[:5].upper() == "RRULE" for line in lines) > MAX_RULES:
        raise UnreadableCalendar("The text has too many rules.")
    try:
        components = _Parser(lines).parse()
    except UnreadableCalendar:
        raise
    except Exception as error:  # the library raises many types of errors for malformed text
        raise UnreadableCalendar(f"The text can't be read ({type(error).__name__}).") from error
    calendars = [component for component in components if component.name == "VCALENDAR"]
    if not calendars:
        raise UnreadableCalendar("The text is not a calendar.")
    return calendars


def _lines(text: str, names: Collection[str]) -> Iterator[Contentline]:
    """Yield the unfolded lines of these properties; cut long texts."""
    depth = 0
    for line in Contentlines.from_ical(text):
        match = _NAME.match(line[:100])
        name = match[1].upper() if match else ""
        if name not in names or line.endswith(":"):
            continue
        depth += (name == "BEGIN") - (name == "END")
        if depth > MAX_DEPTH:
            raise UnreadableCalendar("The text is nested too deeply.")
        if len(line) > MAX_TEXT and name in TEXTS:
            line = Contentline(line[:MAX_TEXT])
        if len(line) > MAX_LINE:
            raise UnreadableCalendar("A line is too long.")
        yield line


class _Parser(CalendarIcalParser):
    """Drop unparsable properties; refuse the text if they determine times."""

    datetime_names = ()

    def __init__(self, lines: list[Contentline]) -> None:
        super().__init__(lines, ComponentFactory(), TypesFactory.instance())

    def handle_end_component(self, vals: str) -> None:
        super().handle_end_component("")  # with the name, the library would cache a time zone

    def prepare_components(self) -> None:
        """Skip the library's second pass, which resolves time zones."""

    def handle_line_parse_error(self, exception: Exception) -> None:
        """Drop the line."""

    def handle_property_parse_error(
        self, exception: Exception, name: str, params: Any, val: str, line: Contentline
    ) -> None:
        if self.component is not None and self.component.name in TIMED and name in TIMES:
            raise UnreadableCalendar(f"{name} can't be {val:.60}.") from exception


def all_values(component: Component, name: str) -> list[Any]:
    """Return all values of a property; [] if it is absent."""
    found = component.get(name)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def first_value(component: Component, name: str) -> Any:
    """Return the first value of a property; None if it is absent."""
    return next(iter(all_values(component, name)), None)


def keyword_value(component: Component, name: str) -> str:
    """Return a property's value in upper case; "" if it is absent."""
    return str(first_value(component, name) or "").strip().upper()


def value_text(value: Any) -> str:
    """Return a value as iCalendar text, such as `FREQ=DAILY` for a rule."""
    return value.to_ical().decode()


def date_values(component: Component, name: str) -> list[date]:
    """Return a property's dates and times as written; of periods, the starts."""
    found = []
    for each_value in all_values(component, name):
        for value in each_value.dts:
            moment = value.dt[0] if isinstance(value.dt, tuple) else value.dt
            if isinstance(moment, date):
                found.append(moment)
    return found


def tzid_of(value: Any) -> str:
    """Return the TZID of a date property; "" if it has none."""
    return str(value.params.get("TZID", ""))


def sequence_of(component: Component) -> int:
    """Return the component's SEQUENCE; -1 if it has none."""
    found = first_value(component, "SEQUENCE")
    return found if isinstance(found, int) else -1


def duration_of(value: Any) -> timedelta:
    """Return the length of a DURATION; zero if the value is no duration."""
    return value.dt if isinstance(value.dt, timedelta) else timedelta()


def is_date(moment: date) -> bool:
    return not isinstance(moment, datetime)
