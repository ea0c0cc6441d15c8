"""Recurrence rules (RFC 5545, section 3.3.10) on the wall clock of a resource.

Understood are rules of whole days that end: FREQ from DAILY to YEARLY with COUNT or UNTIL. The
time of day is that of the start, so the BY parts of hours and less are refused.

Every day of at most ten years is looked at once, so that no rule takes long: libraries look for the
next occurrence of a rule that nothing fits until the year 9999.
"""

import calendar
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import TypeVar

from dateutil.relativedelta import relativedelta

from scheduling.api.instants import (
    InstantError,
    check_year,
    parse_instant,
    wall_to_utc_or_gap_end,
    zone,
)

MAX_LENGTH = 500
MAX_OCCURRENCES = 366
MAX_YEARS = 10

Times = tuple[datetime, datetime]
T = TypeVar("T")


class RecurrenceError(ValueError):
    """The rule can't be used; the text says why."""


def _numbers(least: int, most: int, *, from_end: bool = False) -> Callable[[str], bool]:
    """A list of integers of that size, which may count from the end."""

    def fits(text: str) -> bool:
        words = text.split(",")
        sign = "[+-]?" if from_end else ""
        return all(
            re.fullmatch(rf"{sign}[0-9]{{1,4}}", word) and least <= abs(int(word)) <= most
            for word in words
        )

    return fits


def _one(least: int, most: int) -> Callable[[str], bool]:
    return lambda text: "," not in text and _numbers(least, most)(text)


def _pattern(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = f"({'|'.join(DAYS)})"
_DAYS = rf"([+-]?[1-9][0-9]?)?{_DAY}(,([+-]?[1-9][0-9]?)?{_DAY})*"
# The name of each part, and whether a text is a value of it.
PARTS: Mapping[str, Callable[[str], bool]] = {
    "FREQ": _pattern("DAILY|WEEKLY|MONTHLY|YEARLY"),
    "INTERVAL": _one(1, 1000),
    "COUNT": _one(1, MAX_OCCURRENCES),
    "UNTIL": _pattern("[0-9]{8}(T[0-9]{6}Z?)?"),
    "WKST": _pattern(_DAY),
    "BYDAY": _pattern(_DAYS),
    "BYMONTH": _numbers(1, 12),
    "BYMONTHDAY": _numbers(1, 31, from_end=True),
    "BYYEARDAY": _numbers(1, 366, from_end=True),
    "BYWEEKNO": _numbers(1, 53, from_end=True),
    "BYSETPOS": _numbers(1, 366, from_end=True),
}


# Which parts a frequency has no use for (RFC 5545, the table of section 3.3.10).
MISPLACED: Mapping[str, tuple[str, ...]] = {
    "DAILY": ("BYWEEKNO", "BYYEARDAY"),
    "WEEKLY": ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"),
    "MONTHLY": ("BYWEEKNO", "BYYEARDAY"),
    "YEARLY": (),
}
DAY_PARTS = ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO")


class Recurrence:
    """A rule: its text as it was sent, in upper case and without `RRULE:`."""

    def __init__(self, text: str) -> None:
        """`FREQ=WEEKLY;COUNT=52`. Raises RecurrenceError."""
        self.text = text.strip().upper().removeprefix("RRULE:")
        if len(self.text) > MAX_LENGTH:
            raise RecurrenceError(f"Must have at most {MAX_LENGTH} characters.")
        self.parts = _read_parts(self.text)
        self.frequency = self.parts["FREQ"]
        self.interval = int(self.parts.get("INTERVAL", 1))
        self.count = int(self.parts["COUNT"]) if "COUNT" in self.parts else None
        self.week_start = DAYS.index(self.parts.get("WKST", "MO"))

    def numbers(self, part: str) -> frozenset[int]:
        return frozenset(int(word) for word in self.parts.get(part, "").split(",") if word)

    @cached_property
    def weekdays(self) -> frozenset[tuple[int, int]]:
        """BYDAY as (which one, weekday); 0: each."""
        words = [word for word in self.parts.get("BYDAY", "").split(",") if word]
        return frozenset((int(word[:-2] or 0), DAYS.index(word[-2:])) for word in words)


def _read_parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for word in text.split(";"):
        name, equals, value = word.partition("=")
        if not equals or name not in PARTS:
            raise RecurrenceError(f"{name:.40} is no part of a rule that can be used here.")
        if name in parts:
            raise RecurrenceError(f"{name} is there twice.")
        if not PARTS[name](value):
            raise RecurrenceError(f"{name} can't be {value:.40}.")
        parts[name] = value
    if "FREQ" not in parts:
        raise RecurrenceError("FREQ is needed.")
    if ("COUNT" in parts) == ("UNTIL" in parts):
        raise RecurrenceError("Either COUNT or UNTIL is needed.")
    _check_places(parts)
    return parts


def _check_places(parts: Mapping[str, str]) -> None:
    frequency = parts["FREQ"]
    for name in MISPLACED[frequency]:
        if name in parts:
            raise RecurrenceError(f"{name} has no place in a {frequency} rule.")
    counts_days = any(character.isdigit() for character in parts.get("BYDAY", ""))
    if counts_days and (frequency in ("DAILY", "WEEKLY") or "BYWEEKNO" in parts):
        raise RecurrenceError("BYDAY takes numbers in MONTHLY and YEARLY rules only.")
    if "BYSETPOS" in parts and not any(name in parts for name in (*DAY_PARTS, "BYMONTH")):
        raise RecurrenceError("BYSETPOS needs another BY part.")


def expand_recurrence(
    rule: Recurrence, start: datetime, end: datetime, zone_name: str
) -> list[Times]:
    """Start and end of every occurrence, aware UTC; the first is the one given.

    Counted on the zone's wall clock: both ends keep their readings over clock changes, a reading
    inside a gap means the gap's end, and days that a month does not have are left out. Raises
    RecurrenceError: more occurrences or years than allowed, or a start that the rule leaves out.
    """
    first, last = (one.astimezone(zone(zone_name)).replace(tzinfo=None) for one in (start, end))
    horizon = first + relativedelta(years=MAX_YEARS)
    until = _read_until(rule.parts["UNTIL"], zone_name) if "UNTIL" in rule.parts else horizon
    if until > horizon:
        raise RecurrenceError(f"Must end within {MAX_YEARS} years.")
    walls = (datetime.combine(day, first.time()) for day in _days(rule, first.date(), until.date()))
    found = list(islice((wall for wall in walls if wall <= until), MAX_OCCURRENCES + 1))
    if not found or found[0] != first:
        raise RecurrenceError("The start must be an occurrence of the rule.")
    if rule.count is None and len(found) > MAX_OCCURRENCES:
        raise RecurrenceError(f"Must have at most {MAX_OCCURRENCES} occurrences.")
    if len(found) < (rule.count or 0):
        raise RecurrenceError(f"Must end within {MAX_YEARS} years.")
    others = [_times(wall, last - first, end - start, zone_name) for wall in found[1 : rule.count]]
    return [(start, end), *others]


def _read_until(text: str, zone_name: str) -> datetime:
    """The last reading that may be a start: a date counts to its end, `Z` is UTC."""
    day = f"{text[:4]}-{text[4:6]}-{text[6:8]}"
    time = f"{text[9:11]}:{text[11:13]}:{text[13:15]}" if "T" in text else "23:59:59"
    try:
        read = parse_instant(f"{day}T{time}", "UTC").replace(tzinfo=None)
    except InstantError as error:
        raise RecurrenceError(f"UNTIL: {error}") from error
    if not text.endswith("Z"):
        return read
    return read.replace(tzinfo=UTC).astimezone(zone(zone_name)).replace(tzinfo=None)


def _times(wall: datetime, by_wall: timedelta, elapsed: timedelta, zone_name: str) -> Times:
    try:
        start = check_year(wall_to_utc_or_gap_end(wall, zone_name))
        end = check_year(wall_to_utc_or_gap_end(wall + by_wall, zone_name))
    except InstantError as error:
        raise RecurrenceError(str(error)) from error
    # Both in one gap of the clock: it lasts as long as the first.
    return start, end if end > start else start + elapsed


# --- Days -----------------------------------------------------------------------------------------
ONE_DAY = timedelta(days=1)


def _days(rule: Recurrence, first: date, last: date) -> Iterator[date]:
    """The days of the rule from `first` to `last`, in order."""
    positions = rule.numbers("BYSETPOS")
    for found in fitting_days(rule, first, last):
        chosen = at_positions(found, positions) if positions else found
        yield from (day for day in chosen if first <= day <= last)


def fitting_days(
    rule: Recurrence, first: date, last: date, *, since: date = date.min
) -> Iterator[list[date]]:
    """By period of the rule that begins with `first` (a year, a month, a week, a day), its days
    before BYSETPOS; also those of its first and last period that lie outside of `first` to `last`.

    Periods that end before `since` are left out, and cost nothing.
    """
    fits = DayFilter(rule, first)
    for period in _PERIODS[rule.frequency](rule, first, last, max(since, first)):
        yield [day for day in period if fits(day)]


def at_positions(found: Sequence[T], positions: Collection[int]) -> list[T]:
    """Those whose place, counted from either end, BYSETPOS names."""
    return [
        one
        for place, one in enumerate(found)
        if place + 1 in positions or place - len(found) in positions
    ]


def _days_from(first: date, count: int) -> list[date]:
    return [first + ONE_DAY * place for place in range(count)]


def _daily(rule: Recurrence, first: date, last: date, since: date) -> Iterator[list[date]]:
    start = _step_before(first.toordinal(), since.toordinal(), rule.interval)
    for day in range(start, last.toordinal() + 1, rule.interval):
        yield [date.fromordinal(day)]


def _weekly(rule: Recurrence, first: date, last: date, since: date) -> Iterator[list[date]]:
    monday = first.toordinal() - (first.weekday() - rule.week_start) % 7
    start = _step_before(monday, since.toordinal(), 7 * rule.interval)
    for day in range(start, last.toordinal() + 1, 7 * rule.interval):
        yield _days_from(date.fromordinal(day), 7)


def _monthly(rule: Recurrence, first: date, last: date, since: date) -> Iterator[list[date]]:
    start = _step_before(_month_number(first), _month_number(since), rule.interval)
    for number in range(start, _month_number(last) + 1, rule.interval):
        month = date(number // 12, number % 12 + 1, 1)
        yield _days_from(month, _days_in_month(month))


def _yearly(rule: Recurrence, first: date, last: date, since: date) -> Iterator[list[date]]:
    start = _step_before(first.year, since.year, rule.interval)
    for year in range(start, last.year + 1, rule.interval):
        yield _days_from(date(year, 1, 1), _days_in_year(date(year, 1, 1)))


def _step_before(first: int, since: int, step: int) -> int:
    """The last of first, first + step, ... that is not after `since`."""
    return first + (since - first) // step * step


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


_PERIODS: Mapping[str, Callable[[Recurrence, date, date, date], Iterator[list[date]]]] = {
    "DAILY": _daily,
    "WEEKLY": _weekly,
    "MONTHLY": _monthly,
    "YEARLY": _yearly,
}


class DayFilter:
    """Whether a day is one of the rule's, before BYSETPOS; what it does not say is as `first`."""

    def __init__(self, rule: Recurrence, first: date) -> None:
        self.months = rule.numbers("BYMONTH")
        self.month_days = rule.numbers("BYMONTHDAY")
        self.year_days = rule.numbers("BYYEARDAY")
        self.weeks = rule.numbers("BYWEEKNO")
        self.weekdays = rule.weekdays
        self.week_start = rule.week_start
        # A numbered weekday counts within the month, or within the year where no month is named.
        self.counts_in_year = rule.frequency == "YEARLY" and not self.months
        if any(name in rule.parts for name in DAY_PARTS):
            if self.weeks and not self.weekdays:
                self.weekdays = frozenset({(0, first.weekday())})
        elif rule.frequency == "WEEKLY":
            self.weekdays = frozenset({(0, first.weekday())})
        elif rule.frequency in ("MONTHLY", "YEARLY"):
            self.month_days = frozenset({first.day})
            if rule.frequency == "YEARLY" and not self.months:
                self.months = frozenset({first.month})

    def __call__(self, day: date) -> bool:
        return (
            (not self.months or day.month in self.months)
            and (not self.weekdays or self._is_weekday(day))
            and (not self.month_days or _is_at(day.day, _days_in_month(day), self.month_days))
            and (not self.year_days or _is_at(_year_day(day), _days_in_year(day), self.year_days))
            and (not self.weeks or _is_at(*_week(day, self.week_start), self.weeks))
        )

    def _is_weekday(self, day: date) -> bool:
        weekday = day.weekday()
        if (0, weekday) in self.weekdays:
            return True
        place, length = day.day, _days_in_month(day)
        if self.counts_in_year:
            place, length = _year_day(day), _days_in_year(day)
        from_start, from_end = (place - 1) // 7 + 1, -((length - place) // 7 + 1)
        return (from_start, weekday) in self.weekdays or (from_end, weekday) in self.weekdays


def _is_at(place: int, length: int, places: frozenset[int]) -> bool:
    """Whether a place, counted from either end, is named."""
    return place in places or place - length - 1 in places


def _days_in_month(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _days_in_year(day: date) -> int:
    return 366 if calendar.isleap(day.year) else 365


def _year_day(day: date) -> int:
    return day.timetuple().tm_yday


def _week(day: date, week_start: int) -> tuple[int, int]:
    """The number of the day's week, and of the last in its year: a week belongs to the year in
    which it has at least four days."""
    return _week_number(day, week_start), _week_number(
        date(_fourth_day(day, week_start).year, 12, 28), week_start
    )


def _week_number(day: date, week_start: int) -> int:
    return (_year_day(_fourth_day(day, week_start)) - 1) // 7 + 1


def _fourth_day(day: date, week_start: int) -> date:
    """Of the day's week: it decides whose year the week is."""
    return day + ONE_DAY * (3 - (day.weekday() - week_start) % 7)
