"""Recurrence rules (RFC 5545, section 3.3.10) on a wall clock: parse and expand.

External calendars may have any rule that repeats at most hourly. A booking's rule has FREQ from
DAILY to YEARLY with COUNT or UNTIL; BYHOUR, BYMINUTE and BYSECOND are refused, because the start
determines the time of day.

Expansion visits each day between two bounds once, so every rule is cheap. Libraries search for an
occurrence of an unsatisfiable rule until the year 9999.
"""

import calendar
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import cached_property, lru_cache
from itertools import chain, islice, product
from typing import TypeVar

from dateutil.relativedelta import relativedelta

from common.messages import Message, find_message
from common.time.instants import (
    LAST_YEAR,
    InstantError,
    check_year,
    to_aware,
    wall_time,
    wall_to_utc_or_gap_end,
)

# Limits of a booking's rule.
MAX_LENGTH = 500
MAX_OCCURRENCES = 366
MAX_YEARS = 10
# A rule with COUNT is expanded from its first day on.
EARLIEST_COUNTED = 1970

Times = tuple[datetime, datetime]
Fits = Callable[[str], bool]
T = TypeVar("T")


class RecurrenceRuleError(ValueError):
    """The rule is invalid or not supported; the message is for the client."""


# --- Reading --------------------------------------------------------------------------------------
def _numbers(least: int, most: int, *, from_end: bool = False) -> Fits:
    """Match lists of integers from `least` to `most`; `from_end` allows signs."""

    def fits(text: str) -> bool:
        words = text.split(",")
        sign = "[+-]?" if from_end else ""
        return all(
            re.fullmatch(rf"{sign}[0-9]{{1,9}}", word) and least <= abs(int(word)) <= most
            for word in words
        )

    return fits


def _single(least: int, most: int) -> Fits:
    return lambda text: "," not in text and _numbers(least, most)(text)


def _pattern(pattern: str) -> Fits:
    return lambda text: re.fullmatch(pattern, text) is not None


DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = f"({'|'.join(DAYS)})"
_DAYS = rf"([+-]?[1-9][0-9]?)?{_DAY}(,([+-]?[1-9][0-9]?)?{_DAY})*"
# Part -> predicate for its values, in a booking's rule.
BOOKING_PARTS: Mapping[str, Fits] = {
    "FREQ": _pattern("DAILY|WEEKLY|MONTHLY|YEARLY"),
    "INTERVAL": _single(1, 1000),
    "COUNT": _single(1, MAX_OCCURRENCES),
    "UNTIL": _pattern("[0-9]{8}(T[0-9]{6}Z?)?"),
    "WKST": _pattern(_DAY),
    "BYDAY": _pattern(_DAYS),
    "BYMONTH": _numbers(1, 12),
    "BYMONTHDAY": _numbers(1, 31, from_end=True),
    "BYYEARDAY": _numbers(1, 366, from_end=True),
    "BYWEEKNO": _numbers(1, 53, from_end=True),
    "BYSETPOS": _numbers(1, 366, from_end=True),
}
# In any rule. Of RFC 7529, RSCALE has no effect, and SKIP other than OMIT is not supported.
PARTS: Mapping[str, Fits] = {
    **BOOKING_PARTS,
    "FREQ": _pattern("HOURLY|DAILY|WEEKLY|MONTHLY|YEARLY"),
    "INTERVAL": _single(1, 9999),
    "COUNT": _single(1, 999_999_999),
    "BYHOUR": _numbers(0, 23),
    "BYMINUTE": _numbers(0, 59),
    "BYSECOND": _numbers(0, 60),
    "RSCALE": _pattern(".*"),
    "SKIP": _pattern("OMIT"),
}
# Parts that a frequency does not allow (RFC 5545, the table of section 3.3.10).
MISPLACED: Mapping[str, tuple[str, ...]] = {
    "DAILY": ("BYWEEKNO", "BYYEARDAY"),
    "WEEKLY": ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"),
    "MONTHLY": ("BYWEEKNO", "BYYEARDAY"),
    "YEARLY": (),
}
DAY_PARTS = ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO")


class RecurrenceRule:
    """A parsed rule such as `FREQ=WEEKLY;BYDAY=MO,TH`.

    text: as sent, in upper case and without `RRULE:`. until: the last possible start, naive (of a
    date: the end of the day), in UTC if `until_is_utc`; None: no last start.
    """

    def __init__(self, text: str, known: Mapping[str, Fits] = PARTS) -> None:
        """`known`: the allowed parts. Raises RecurrenceRuleError."""
        self.text = text.strip().upper().removeprefix("RRULE:")
        self.parts = _read_parts(self.text, known)
        self.frequency = self.parts["FREQ"]
        self.interval = int(self.parts.get("INTERVAL", 1))
        self.count = int(self.parts["COUNT"]) if "COUNT" in self.parts else None
        self.week_start = DAYS.index(self.parts.get("WKST", "MO"))
        self.until = _read_until(self.parts.get("UNTIL", ""))
        self.until_is_utc = self.until is not None and self.parts["UNTIL"].endswith("Z")
        hours, minutes, seconds = (
            len(self.numbers(part)) or 1 for part in ("BYHOUR", "BYMINUTE", "BYSECOND")
        )
        if minutes * seconds > 1 if self.frequency == "HOURLY" else hours * minutes * seconds > 24:
            raise RecurrenceRuleError("The event repeats more than once an hour.")

    def until_as_wall_time(self, to_wall: Callable[[datetime], datetime]) -> datetime | None:
        """Return `until` as a wall-clock reading; `to_wall` converts an instant (aware UTC)."""
        if self.until is None or not self.until_is_utc:
            return self.until
        return to_wall(to_aware(self.until))

    def numbers(self, part: str) -> frozenset[int]:
        return frozenset(int(word) for word in self.parts.get(part, "").split(",") if word)

    @cached_property
    def weekdays(self) -> frozenset[tuple[int, int]]:
        """BYDAY as (n, weekday); n is 0 for every such weekday, and in DAILY and WEEKLY rules."""
        words = [word for word in self.parts.get("BYDAY", "").split(",") if word]
        is_numbered = self.frequency in ("MONTHLY", "YEARLY")
        return frozenset(
            (int(word[:-2] or 0) if is_numbered else 0, DAYS.index(word[-2:])) for word in words
        )


def _read_parts(text: str, known: Mapping[str, Fits]) -> dict[str, str]:
    words = text.split(";")
    if known is PARTS:  # a booking's rule is stored and sent unchanged: ignore no part
        words = [word.strip() for word in words if word.strip() and not word.startswith("X-")]
    parts: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in known:
            raise RecurrenceRuleError(f"{name:.40} is not supported.")
        if name in parts:
            raise RecurrenceRuleError(f"{name} occurs twice.")
        if not known[name](value):
            raise RecurrenceRuleError(f"{name} can't be {value:.40}.")
        parts[name] = value
    if "FREQ" not in parts:
        raise RecurrenceRuleError("FREQ is required.")
    return parts


def _read_until(text: str) -> datetime | None:
    """Parse UNTIL; None beyond the supported years, since many clients write 9999 for no end."""
    if not text:
        return None
    try:
        until = datetime.strptime(f"{text[:8]}{text[9:15] or '235959'}", "%Y%m%d%H%M%S")
    except ValueError:
        raise RecurrenceRuleError("UNTIL: There is no such date or time.") from None
    return until if until.year <= LAST_YEAR else None


def read_booking_rule(text: str) -> RecurrenceRule:
    """Parse a booking's rule such as `FREQ=WEEKLY;COUNT=52`. Raises RecurrenceRuleError."""
    rule = _parse_rule(text)
    if ("COUNT" in rule.parts) == ("UNTIL" in rule.parts):
        raise RecurrenceRuleError("Either COUNT or UNTIL is required.")
    _check_parts(rule)
    return rule


def read_at_most_daily_rule(text: str) -> RecurrenceRule:
    """Parse a rule that repeats at most daily, and need not end. Raises RecurrenceRuleError."""
    rule = _parse_rule(text)
    if "COUNT" in rule.parts and "UNTIL" in rule.parts:
        raise RecurrenceRuleError("COUNT and UNTIL can't be combined.")
    _check_parts(rule)
    return rule


def _parse_rule(text: str) -> RecurrenceRule:
    if len(text.strip()) > MAX_LENGTH:
        raise RecurrenceRuleError(
            Message("Must have at most %(limit)s characters.", limit=MAX_LENGTH)
        )
    return RecurrenceRule(text, BOOKING_PARTS)


def _check_parts(rule: RecurrenceRule) -> None:
    parts, frequency = rule.parts, rule.frequency
    for name in MISPLACED[frequency]:
        if name in parts:
            raise RecurrenceRuleError(f"{name} is not allowed in a {frequency} rule.")
    counts_days = any(character.isdigit() for character in parts.get("BYDAY", ""))
    if counts_days and (frequency in ("DAILY", "WEEKLY") or "BYWEEKNO" in parts):
        raise RecurrenceRuleError("BYDAY takes numbers only in MONTHLY and YEARLY rules.")
    if "BYSETPOS" in parts and not any(name in parts for name in (*DAY_PARTS, "BYMONTH")):
        raise RecurrenceRuleError("BYSETPOS requires another BY part.")


# --- Expanding ------------------------------------------------------------------------------------
def expand_recurrence(
    rule: RecurrenceRule, start: datetime, end: datetime, zone_name: str
) -> list[Times]:
    """Return start and end (aware UTC) of every occurrence; the first is `start`, `end`.

    The starts keep their reading of the zone's clock over clock changes; a reading inside a gap
    becomes the gap's end. All occurrences have the same elapsed length (RFC 5545, section 3.8.5.3).
    Days that a month does not have are skipped. Raises RecurrenceRuleError for too many
    occurrences or years, and if `start` does not fit the rule.
    """
    first = wall_time(start, zone_name)
    horizon = first + relativedelta(years=MAX_YEARS)
    until = rule.until_as_wall_time(lambda instant: wall_time(instant, zone_name))
    if rule.count is None and (until is None or until > horizon):
        raise RecurrenceRuleError(f"Must end within {MAX_YEARS} years.")
    before = horizon + timedelta(seconds=1)
    walls = rule_starts(rule, first, since=first, before=before, until=until)
    starts = list(islice(walls, MAX_OCCURRENCES + 1))
    if not starts or starts[0] != first:
        raise RecurrenceRuleError(Message("The start must be an occurrence of the rule."))
    if len(starts) > MAX_OCCURRENCES:
        raise RecurrenceRuleError(f"Must have at most {MAX_OCCURRENCES} occurrences.")
    if len(starts) < (rule.count or 0):
        raise RecurrenceRuleError(f"Must end within {MAX_YEARS} years.")
    return [(start, end), *(_times(wall, end - start, zone_name) for wall in starts[1:])]


def _times(wall: datetime, length: timedelta, zone_name: str) -> Times:
    try:
        start = check_year(wall_to_utc_or_gap_end(wall, zone_name))
        return start, check_year(start + length)
    except (InstantError, OverflowError) as error:
        raise RecurrenceRuleError(find_message(error)) from error


def rule_starts(
    rule: RecurrenceRule,
    first: datetime,
    *,
    since: datetime,
    before: datetime,
    until: datetime | None,
) -> Iterator[datetime]:
    """Yield the rule's starts in order, as readings of one wall clock (naive).

    Only starts from `first` on, in the half-open range `since` to `before`, and not after `until`.
    `first` itself need not fit the rule. Raises RecurrenceRuleError.
    """
    if rule.count is not None and first.year < EARLIEST_COUNTED:
        raise RecurrenceRuleError("The rule has a COUNT and begins before 1970.")
    since = max(since, first)
    starts = _readings(rule, first, first if rule.count is not None else since, before)
    starts = (reading for reading in starts if reading >= first)
    for reading in islice(starts, rule.count):
        if reading >= before or (until is not None and reading > until):
            return
        if reading >= since:
            yield reading


def _readings(
    rule: RecurrenceRule, first: datetime, since: datetime, before: datetime
) -> Iterator[datetime]:
    if rule.frequency == "HOURLY":
        yield from _hourly(rule, first, since, before)
        return
    positions = rule.numbers("BYSETPOS")
    times = _times_of_day(rule, first.time())
    for days in fitting_days(rule, first.date(), before.date(), since=since.date()):
        found = [datetime.combine(*pair) for pair in product(days, times)]
        yield from at_positions(found, positions) if positions else found


def _times_of_day(rule: RecurrenceRule, own: time) -> list[time]:
    hours = rule.numbers("BYHOUR") or {own.hour}
    minutes = rule.numbers("BYMINUTE") or {own.minute}
    seconds = {min(second, 59) for second in rule.numbers("BYSECOND")} or {own.second}
    return [time(*parts) for parts in product(sorted(hours), sorted(minutes), sorted(seconds))]


def _hourly(
    rule: RecurrenceRule, first: datetime, since: datetime, before: datetime
) -> Iterator[datetime]:
    """Yield every INTERVAL hours on the wall clock; the rule's days and hours are filters."""
    if "BYSETPOS" in rule.parts:
        raise RecurrenceRuleError("BYSETPOS is not allowed in an HOURLY rule.")
    for minute in rule.numbers("BYMINUTE"):
        first = first.replace(minute=minute)
    for second in rule.numbers("BYSECOND"):
        first = first.replace(second=min(second, 59))
    hours = rule.numbers("BYHOUR")
    day_filter = DayFilter(rule, first.date())
    step = timedelta(hours=rule.interval)
    reading = first + max(since - first, timedelta()) // step * step
    while reading < before:
        if (not hours or reading.hour in hours) and day_filter(reading.date()):
            yield reading
        reading += step


# --- Days -----------------------------------------------------------------------------------------
ONE_DAY = timedelta(days=1)


PERIODS_AT_ONCE = 30


def fitting_days(
    rule: RecurrenceRule, first: date, last: date, *, since: date = date.min
) -> Iterator[list[date]]:
    """Yield the days of each period (year, month, week or day) from `first` on, before BYSETPOS.

    Includes days of the first and last period outside `first` to `last`. Skips periods that end
    before `since` at no cost. Without BYSETPOS, yields the days of several periods at once.
    """
    matching = DayFilter(rule, first).select
    periods = _PERIODS[rule.frequency](rule, first, last, max(since, first))
    if rule.numbers("BYSETPOS"):
        yield from map(matching, periods)
        return
    while days := list(chain.from_iterable(islice(periods, PERIODS_AT_ONCE))):
        yield matching(days)


def at_positions(readings: Sequence[T], positions: Collection[int]) -> list[T]:
    """Return the items at the positions of BYSETPOS: from 1, or negative from the end."""
    return [
        day
        for place, day in enumerate(readings)
        if place + 1 in positions or place - len(readings) in positions
    ]


def _days_from(first: date, count: int) -> list[date]:
    return [first + ONE_DAY * place for place in range(count)]


def _days_one_by_one(
    rule: RecurrenceRule, first: date, last: date, since: date
) -> Iterator[list[date]]:
    start = _step_before(first.toordinal(), since.toordinal(), rule.interval)
    for day in range(start, last.toordinal() + 1, rule.interval):
        yield [date.fromordinal(day)]


def _days_of_weeks(
    rule: RecurrenceRule, first: date, last: date, since: date
) -> Iterator[list[date]]:
    monday = first.toordinal() - (first.weekday() - rule.week_start) % 7
    start = _step_before(monday, since.toordinal(), 7 * rule.interval)
    for day in range(start, last.toordinal() + 1, 7 * rule.interval):
        yield _days_from(date.fromordinal(day), 7)


def _days_of_months(
    rule: RecurrenceRule, first: date, last: date, since: date
) -> Iterator[list[date]]:
    start = _step_before(_month_number(first), _month_number(since), rule.interval)
    for number in range(start, _month_number(last) + 1, rule.interval):
        month = date(number // 12, number % 12 + 1, 1)
        yield _days_from(month, _days_in_month(month.year, month.month))


def _days_of_years(
    rule: RecurrenceRule, first: date, last: date, since: date
) -> Iterator[list[date]]:
    start = _step_before(first.year, since.year, rule.interval)
    for year in range(start, last.year + 1, rule.interval):
        yield _days_from(date(year, 1, 1), _days_in_year(year))


def _step_before(first: int, since: int, step: int) -> int:
    """Return the last of first, first + step, ... that is not after `since`."""
    return first + (since - first) // step * step


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


_PERIODS: Mapping[str, Callable[[RecurrenceRule, date, date, date], Iterator[list[date]]]] = {
    "DAILY": _days_one_by_one,
    "WEEKLY": _days_of_weeks,
    "MONTHLY": _days_of_months,
    "YEARLY": _days_of_years,
}


class DayFilter:
    """Match the rule's days, before BYSETPOS; omitted parts default to the values of `first`."""

    def __init__(self, rule: RecurrenceRule, first: date) -> None:
        self.months = rule.numbers("BYMONTH")
        self.month_days = rule.numbers("BYMONTHDAY")
        self.year_days = rule.numbers("BYYEARDAY")
        self.weeks = rule.numbers("BYWEEKNO")
        self.weekdays = rule.weekdays
        self.week_start = rule.week_start
        # Numbered weekdays count within the month, in YEARLY rules without BYMONTH in the year.
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
        self.has_numbers = any(number for number, _ in self.weekdays)

    def __call__(self, day: date) -> bool:
        return bool(self.select([day]))

    def select(self, days: Sequence[date]) -> list[date]:
        """Return the days that match, in their order. Calls no function of Python for each day but
        those with a numbered weekday: twenty rules of a request may look at 70,000 days.
        """
        found = list(days)
        if self.months:
            found = [day for day in found if day.month in self.months]
        if self.weekdays:
            found = [
                day
                for day in found
                if (0, day.weekday()) in self.weekdays
                or (self.has_numbers and self._has_numbered_weekday(day))
            ]
        if places := self.month_days:
            found = [
                day
                for day in found
                if day.day in places or day.day - _days_in_month(day.year, day.month) - 1 in places
            ]
        if places := self.year_days:
            found = [
                day
                for day in found
                if (place := day.toordinal() - _day_before_year(day.year)) in places
                or place - _days_in_year(day.year) - 1 in places
            ]
        if places := self.weeks:
            found = [
                day
                for day in found
                if (week := _week_number_and_last(day, self.week_start))[0] in places
                or week[0] - week[1] - 1 in places
            ]
        return found

    def _has_numbered_weekday(self, day: date) -> bool:
        weekday = day.weekday()
        place, length = day.day, _days_in_month(day.year, day.month)
        if self.counts_in_year:
            place = day.toordinal() - _day_before_year(day.year)
            length = _days_in_year(day.year)
        from_start, from_end = (place - 1) // 7 + 1, -((length - place) // 7 + 1)
        return (from_start, weekday) in self.weekdays or (from_end, weekday) in self.weekdays


@lru_cache(maxsize=4096)
def _days_in_month(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


@lru_cache(maxsize=512)
def _days_in_year(year: int) -> int:
    return 366 if calendar.isleap(year) else 365


@lru_cache(maxsize=512)
def _day_before_year(year: int) -> int:
    return date(year, 1, 1).toordinal() - 1


@lru_cache(maxsize=8192)  # many rules count through the same ten years
def _week_number_and_last(day: date, week_start: int) -> tuple[int, int]:
    """Return the day's week number and that of its year's last week (of four days or more)."""
    return _week_number(day, week_start), _week_number(
        date(_fourth_day(day, week_start).year, 12, 28), week_start
    )


def _week_number(day: date, week_start: int) -> int:
    fourth = _fourth_day(day, week_start)
    return (fourth.toordinal() - _day_before_year(fourth.year) - 1) // 7 + 1


def _fourth_day(day: date, week_start: int) -> date:
    """Return the fourth day of the day's week; its year is the week's year."""
    return day + ONE_DAY * (3 - (day.weekday() - week_start) % 7)
