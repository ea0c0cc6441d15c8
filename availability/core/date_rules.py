"""Rules of dates: recurrences, days with their own hours, public holidays.

Their times are wall-clock readings (core/zones.py), like those of weekly rules: an instant is
inside a window if its reading is inside.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from dateutil.relativedelta import relativedelta
from holidays import country_holidays, list_supported_countries

from availability.core.intervals import Intervals, normalise
from availability.core.zones import DAY, offset_at
from common.ical.rrule import MAX_YEARS, RecurrenceRule, read_at_most_daily_rule, rule_starts
from common.messages import Message

MAX_DURATION = 7 * DAY
_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)


class DateRuleError(ValueError):
    """Parameters that do not fit together. `param` is the one to change."""

    def __init__(self, param: str, message: str):
        super().__init__(message)
        self.param = param


# --- Recurrences ----------------------------------------------------------------------------------
class Recurrence(NamedTuple):
    """Windows that repeat. start: the reading of the first one; duration: seconds; rrule: RFC 5545.

    The rule repeats at most daily, so there are at most 366 windows in any 366 days.
    """

    start: int
    duration: int
    rrule: str


def make_recurrence(start: int, duration: int, rrule: str) -> Recurrence:
    """Return the recurrence; raises DateRuleError on `start` or `rrule`.

    Its start must be an occurrence of the rule. A rule with COUNT must end within ten years, like
    that of a series of bookings.
    """
    recurrence = Recurrence(start, duration, rrule)
    first, rule = _reading_to_datetime(start), _parse_rule(rrule)
    if rule.until is not None and rule.until < first - timedelta(days=1):
        raise DateRuleError("rrule", Message("UNTIL must not be before the start."))
    endless = _without_count(rrule)
    if not list(rule_starts(endless, first, since=first, before=first + _SECOND, until=None)):
        raise DateRuleError("start", Message("The start must be an occurrence of the rule."))
    if rule.count is not None and _last_counted_start(recurrence) is None:
        raise DateRuleError("rrule", f"A rule with COUNT must end within {MAX_YEARS} years.")
    return recurrence


def recurring_readings(recurrences: Iterable[Recurrence], zone: str, lo: int, hi: int) -> Intervals:
    """Return the readings of the recurrences' windows that overlap [lo, hi).

    The cost depends on the length of the range, not on its distance from the first occurrence.
    """
    return normalise(
        (start, start + recurrence.duration)
        for recurrence in recurrences
        for start in _starts_between(recurrence, zone, lo - recurrence.duration, hi)
    )


@lru_cache(maxsize=512)
def _starts_between(recurrence: Recurrence, zone: str, lo: int, hi: int) -> tuple[int, ...]:
    """Return the starts as readings. Cached: the rules of a request apply to many resources."""
    first = _reading_to_datetime(recurrence.start)
    starts = rule_starts(
        _without_count(recurrence.rrule),
        first,
        since=_reading_to_datetime(lo),
        before=max(_reading_to_datetime(hi), first),
        until=_last_start(recurrence, zone),
    )
    return tuple(map(_datetime_to_reading, starts))


@lru_cache(maxsize=4096)
def _last_start(recurrence: Recurrence, zone: str) -> datetime | None:
    """Return the last possible start by the rule's COUNT or UNTIL as a reading; None: endless."""
    rule = _parse_rule(recurrence.rrule)
    if rule.count is not None:
        return _last_counted_start(recurrence)
    return rule.until_as_wall_time(lambda instant: _instant_to_wall_time(instant, zone))


def _instant_to_wall_time(instant: datetime, zone: str) -> datetime:
    seconds = int(instant.timestamp())
    return _reading_to_datetime(seconds + offset_at(zone, seconds))


@lru_cache(maxsize=4096)
def _last_counted_start(recurrence: Recurrence) -> datetime | None:
    """Return the last start of a rule with COUNT as a reading; None if it is too far off.

    Cached: to count over ten years takes milliseconds.
    """
    first = _reading_to_datetime(recurrence.start)
    before = first + relativedelta(years=MAX_YEARS) + _SECOND
    rule = _parse_rule(recurrence.rrule)
    starts = list(rule_starts(rule, first, since=first, before=before, until=None))
    return starts[-1] if len(starts) == rule.count else None


@lru_cache(maxsize=4096)
def _parse_rule(text: str) -> RecurrenceRule:
    return read_at_most_daily_rule(text)


@lru_cache(maxsize=4096)
def _without_count(text: str) -> RecurrenceRule:
    """Return the rule without COUNT, which needs no counting from the first occurrence."""
    parts = [part for part in text.split(";") if not part.startswith("COUNT=")]
    return read_at_most_daily_rule(";".join(parts))


def read_rrule(text: str) -> str:
    """Return the rule in upper case, without `RRULE:`. Raises RecurrenceRuleError."""
    return read_at_most_daily_rule(text).text


def _reading_to_datetime(reading: int) -> datetime:
    return _EPOCH + timedelta(seconds=reading)


def _datetime_to_reading(wall: datetime) -> int:
    return (wall - _EPOCH) // _SECOND


# --- Days with their own hours --------------------------------------------------------------------
class DayHours(NamedTuple):
    """The hours of one date. day: the reading of its midnight; windows: (start, end) in minutes."""

    day: int
    windows: tuple[tuple[int, int], ...]


def replaced_day_readings(days: Iterable[DayHours]) -> Intervals:
    """Return the whole days that have their own hours."""
    return normalise((each.day, each.day + DAY) for each in days)


def replacement_hours_readings(days: Iterable[DayHours]) -> Intervals:
    """Return the hours of these days."""
    return normalise(
        (each.day + start * 60, each.day + end * 60) for each in days for start, end in each.windows
    )


# --- Public holidays ------------------------------------------------------------------------------
class HolidayCalendar(NamedTuple):
    """The public holidays of a country (ISO 3166-1 alpha-2) or subdivision; categories: of the
    package `holidays`, () for its default."""

    country: str
    subdivision: str = ""
    categories: tuple[str, ...] = ()


class Holiday(NamedTuple):
    """A holiday. day: the reading of its midnight."""

    day: int
    name: str


def make_holiday_calendar(
    country: str, subdivision: str, categories: tuple[str, ...]
) -> HolidayCalendar:
    """Return the calendar. Raises DateRuleError on `country`, `subdivision` or `categories.N`."""
    if country not in _countries():
        raise DateRuleError("country", Message("Unknown country. Expected a code such as DE."))
    known = country_holidays(country)
    if subdivision and subdivision not in known.subdivisions:
        codes = ", ".join(known.subdivisions) or "none"
        raise DateRuleError("subdivision", f"Unknown subdivision. {country} has: {codes}.")
    for position, category in enumerate(categories):
        if category not in known.supported_categories:
            words = ", ".join(known.supported_categories)
            raise DateRuleError(
                f"categories.{position}", f"Unknown category. {country} has: {words}."
            )
    return HolidayCalendar(country, subdivision, categories)


@lru_cache(maxsize=1)
def _countries() -> frozenset[str]:
    return frozenset(list_supported_countries(include_aliases=False))


def holidays_between(calendar: HolidayCalendar, lo: int, hi: int) -> list[Holiday]:
    """Return the holidays whose local day overlaps the readings [lo, hi), by date."""
    return [
        holiday
        for year in range(_reading_to_datetime(lo).year, _reading_to_datetime(hi).year + 1)
        for holiday in _holidays_of_year(calendar, year)
        if holiday.day < hi and holiday.day + DAY > lo
    ]


def holiday_readings(calendars: Iterable[HolidayCalendar], lo: int, hi: int) -> Intervals:
    """Return the whole local days that are holidays in one of the calendars."""
    return normalise(
        (holiday.day, holiday.day + DAY)
        for calendar in calendars
        for holiday in holidays_between(calendar, lo, hi)
    )


@lru_cache(maxsize=2048)
def _holidays_of_year(calendar: HolidayCalendar, year: int) -> tuple[Holiday, ...]:
    found = country_holidays(
        calendar.country,
        subdiv=calendar.subdivision or None,
        years=year,
        categories=calendar.categories or None,
        language="en_US",  # explanations are in English
    )
    return tuple(
        Holiday(int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()), name)
        for day, name in sorted(found.items())
        if day.year == year
    )
