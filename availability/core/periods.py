"""Local days, ISO weeks and calendar months, in which a project limits its bookings."""

from datetime import date, timedelta
from typing import NamedTuple

from availability.core.intervals import Span
from availability.core.zones import day_start, local_day

UNITS = ("day", "week", "month")
MAX_DAYS = {"day": 1, "week": 7, "month": 31}
ONE_DAY = timedelta(days=1)


class Period(NamedTuple):
    """One of the UNITS, by its first local date. A week begins on Monday (ISO 8601)."""

    unit: str
    first: date


class PeriodLimit(NamedTuple):
    """A period of this unit with `most` bookings or more is closed."""

    unit: str
    most: int


def local_days(start: int, end: int, zone: str) -> list[date]:
    """Return the local dates that the half-open span of epoch seconds overlaps."""
    first, last = local_day(start, zone), local_day(end - 1, zone)
    return [first + ONE_DAY * count for count in range((last - first).days + 1)]


def local_periods(start: int, end: int, zone: str, unit: str) -> list[Period]:
    """Return the periods that the half-open span of epoch seconds overlaps, in order."""
    days = local_days(start, end, zone)
    return list(dict.fromkeys(Period(unit, _first_date(day, unit)) for day in days))


def period_span(period: Period, zone: str) -> Span:
    """Return the local period as a half-open span of epoch seconds."""
    after = _first_date(period.first + ONE_DAY * MAX_DAYS[period.unit], period.unit)
    return day_start(period.first, zone), day_start(after, zone)


def _first_date(day: date, unit: str) -> date:
    if unit == "week":
        return day - ONE_DAY * day.weekday()
    return day.replace(day=1) if unit == "month" else day
