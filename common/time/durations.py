"""Durations such as "3 days 2 weeks", and times relative to now (api.md section 1).

Pure: no Django, no clock.
"""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from common.messages import Message
from common.time.instants import (
    DATE,
    InstantError,
    check_year,
    local_date,
    local_midnight,
    parse_date,
    parse_instant,
    wall_time,
    wall_to_utc_or_gap_end,
)

DAY = 86_400
MAX_DAYS = 366 * 200

# unit word -> (months, days, seconds) of one
UNITS = {
    word: size
    for words, size in [
        ("sec secs second seconds", (0, 0, 1)),
        ("min mins minute minutes", (0, 0, 60)),
        ("hour hours", (0, 0, 3600)),
        ("day days", (0, 1, 0)),
        ("week weeks", (0, 7, 0)),
        ("month months", (1, 0, 0)),
    ]
    for word in words.split()
}
TERM = re.compile(r"\s*([+-]?)\s*([0-9]{1,9})\s*([a-z]+)\s*", re.ASCII)
MAX_TEXT = 200
ABSOLUTE = re.compile(r"\d{4}-", re.ASCII)


class DurationError(ValueError):
    """A text that is no duration, or one out of bounds; the message is for the client."""


class Duration(NamedTuple):
    """Months and days move the wall clock, seconds are elapsed time; each may be negative."""

    months: int
    days: int
    seconds: int


def parse_duration(text: str | int) -> Duration:
    """Parse a sum of numbers with units, in any case; a bare zero needs no unit.

    Raises DurationError for other texts and for more than 200 years.

    >>> parse_duration("1 month 2 days -90 mins")
    Duration(months=1, days=2, seconds=-5400)
    """
    if text == "0" or (text == 0 and type(text) is int):
        return Duration(0, 0, 0)
    terms = read_terms(text.lower() if isinstance(text, str) and len(text) <= MAX_TEXT else "")
    if sum(map(rough_days, terms)) > MAX_DAYS:
        raise DurationError("Must be less than 200 years.")
    return Duration(*(sum(column) for column in zip(*terms, strict=True)))


@lru_cache(maxsize=1024)
def read_terms(words: str) -> list[Duration]:
    """Parse term by term: one expression for the whole text could backtrack endlessly on blanks.

    Cached, because projects and clients send the same few durations in every request.
    """
    terms, end = [], 0
    while match := TERM.match(words, end):
        terms.append(term_size(*match.groups()))
        end = match.end()
    if not terms or end < len(words):
        raise DurationError("Must be a duration such as '30 minutes' or '3 days 2 weeks'.")
    return terms


def term_size(sign: str, digits: str, unit: str) -> Duration:
    if unit not in UNITS:
        raise DurationError(
            f"{unit:.20} is not a unit of time; use secs, mins, hours, days, weeks or months."
        )
    count = -int(digits) if sign == "-" else int(digits)
    return Duration(*(count * size for size in UNITS[unit]))


def rough_days(duration: Duration) -> float:
    """Return the absolute size of a term in days: terms of opposite signs must not cancel out."""
    return abs(duration.months) * 31 + abs(duration.days) + abs(duration.seconds) / DAY


def elapsed_seconds(text: str | int, *, least: int = 0, most: int = MAX_DAYS * DAY) -> int:
    """Return the seconds of a duration of elapsed time: a day has 86,400 s, months are refused.

    Raises DurationError, also outside `least` to `most` seconds.
    """
    months, days, seconds = parse_duration(text)
    if months:
        raise DurationError("Months are not allowed here.")
    total = days * DAY + seconds
    if not least <= total <= most:
        raise DurationError(
            f"Must be from {duration_in_words(least)} to {duration_in_words(most)}."
        )
    return total


def duration_in_words(seconds: int) -> str:
    """Describe seconds in the largest unit that divides them: 5400 -> "90 minutes"."""
    for unit, size in (("day", DAY), ("hour", 3600), ("minute", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}" + ("s" if seconds != size else "")
    return f"{seconds} second" + ("s" if seconds != 1 else "")


def is_relative(text: str) -> bool:
    """Return whether a `from` or `to` is relative to now: the text does not start like a date."""
    return not ABSOLUTE.match(text.strip())


def resolve_time(text: str, now: datetime, zone_name: str) -> datetime:
    """Resolve a `from` or `to` to an instant (aware UTC, whole seconds).

    "now", "tomorrow" (the zone's next midnight), a duration from now, an instant, or a date for its
    midnight. Days, weeks and months move the zone's wall clock (a time in a gap becomes the gap's
    end, the 31st of a short month its last day), then the seconds elapse. Raises DurationError or
    InstantError.
    """
    if not isinstance(text, str):
        raise DurationError(Message("Must be a string."))
    words = text.strip().lower()
    now = now.astimezone(UTC).replace(microsecond=0)
    if words == "now":
        return now
    if words == "tomorrow":
        return next_midnight(now, zone_name)
    if is_relative(words):
        return add_duration(now, parse_duration(words), zone_name)
    return parse_instant_or_date(text.strip(), zone_name)


def parse_instant_or_date(text: str, zone_name: str) -> datetime:
    """Return the instant, or the date's midnight. Raises InstantError.

    A midnight that the zone skips becomes the gap's end.
    """
    if DATE.fullmatch(text):
        return check_year(local_midnight(parse_date(text), zone_name))
    return parse_instant(text, zone_name)


def resolve_bound(text: str, now: datetime, zone_name: str) -> datetime:
    """Resolve a bound of a listing as `resolve_time` does. Raises InstantError."""
    try:
        return resolve_time(text, now, zone_name)
    except DurationError:
        raise InstantError(NO_BOUND) from None


NO_BOUND = (
    "Must be a date, a date and time such as 2026-11-20T10:30:00+01:00, `now`, or relative to now"
    " such as -2 days."
)


def next_midnight(now: datetime, zone_name: str) -> datetime:
    return local_midnight(local_date(now, zone_name) + timedelta(days=1), zone_name)


def add_duration(now: datetime, duration: Duration, zone_name: str) -> datetime:
    """Move `now` by a duration. Raises InstantError outside 1970 to 2199."""
    months, days, seconds = duration
    if months or days:
        wall = wall_time(now, zone_name)
        now = wall_to_utc_or_gap_end(move_days(add_months(wall, months), days), zone_name)
    return check_year(now + timedelta(seconds=seconds))


def add_months(wall: datetime, months: int) -> datetime:
    """Return the same day and time `months` later, or the last day of a shorter month."""
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    if not 1 <= year <= 9998:
        raise InstantError("Must be in the years 1970 to 2199.")
    last_day = monthrange(year, month + 1)[1]
    return wall.replace(year=year, month=month + 1, day=min(wall.day, last_day))


def move_days(wall: datetime, days: int) -> datetime:
    try:
        return check_wall_year(wall + timedelta(days=days))
    except OverflowError:
        raise InstantError("Must be in the years 1970 to 2199.") from None


def check_wall_year(wall: datetime) -> datetime:
    # A year of margin: the UTC year is checked at the end; this check only prevents overflows.
    if not 1969 <= wall.year <= 2200:
        raise InstantError("Must be in the years 1970 to 2199.")
    return wall
