"""The days of a Graph recurrence (patternedRecurrence).

https://learn.microsoft.com/graph/api/resources/recurrencepattern and .../recurrencerange
"""

import calendar
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from tests.external_calendars.fakes.server import Violation

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
INDEXES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
# Pattern and range type -> what they require besides `type`.
REQUIRED = {
    "daily": {"interval"},
    "weekly": {"interval", "daysOfWeek"},
    "absoluteMonthly": {"interval", "dayOfMonth"},
    "relativeMonthly": {"interval", "daysOfWeek"},
    "absoluteYearly": {"interval", "dayOfMonth", "month"},
    "relativeYearly": {"interval", "daysOfWeek", "month"},
    "endDate": {"startDate", "endDate"},
    "noEnd": {"startDate"},
    "numbered": {"startDate", "numberOfOccurrences"},
}


def check_recurrence(recurrence: dict[str, Any]) -> None:
    """Raise Violation where a property is missing that the pattern or the range requires."""
    for part in ("pattern", "range"):
        properties = recurrence.get(part) or {}
        present = {name for name, value in properties.items() if value}
        required = REQUIRED.get(properties.get("type", ""), {"type"})
        if missing := sorted(required - present):
            raise Violation(f"recurrence.{part} lacks {', '.join(missing)}.")


def recurrence_dates(recurrence: dict[str, Any], last: date) -> Iterator[date]:
    """Yield the days in order, up to `last`."""
    limits = recurrence["range"]
    begin = date.fromisoformat(limits["startDate"])
    if limits["type"] == "endDate":
        last = min(last, date.fromisoformat(limits["endDate"]))
    for number, day in enumerate(_matching_days(recurrence["pattern"], begin), 1):
        if day > last:
            return
        yield day
        if limits["type"] == "numbered" and number == limits["numberOfOccurrences"]:
            return


def _matching_days(pattern: dict[str, Any], begin: date) -> Iterator[date]:
    """Yield the pattern's days from `begin` on, without end."""
    if pattern["type"] == "daily":
        while True:
            yield begin
            begin += timedelta(pattern["interval"])
    elif pattern["type"] == "weekly":
        yield from _weekly_days(pattern, begin)
    else:
        yield from _monthly_days(pattern, begin)


def _weekly_days(pattern: dict[str, Any], begin: date) -> Iterator[date]:
    first = WEEKDAYS.index(pattern.get("firstDayOfWeek") or "sunday")
    week = begin - timedelta((begin.weekday() - first) % 7)
    offsets = sorted((WEEKDAYS.index(name) - first) % 7 for name in pattern["daysOfWeek"])
    while True:
        for offset in offsets:
            if (day := week + timedelta(offset)) >= begin:
                yield day
        week += timedelta(weeks=pattern["interval"])


def _monthly_days(pattern: dict[str, Any], begin: date) -> Iterator[date]:
    is_yearly = pattern["type"].endswith("Yearly")
    step = pattern["interval"] * (12 if is_yearly else 1)
    number = begin.year * 12 + (pattern["month"] if is_yearly else begin.month) - 1
    while True:
        if (day := _day_of_month(pattern, number // 12, number % 12 + 1)) >= begin:
            yield day
        number += step


def _day_of_month(pattern: dict[str, Any], year: int, month: int) -> date:
    length = calendar.monthrange(year, month)[1]
    if pattern["type"].startswith("absolute"):
        # Outlook takes the last day of shorter months.
        return date(year, month, min(pattern["dayOfMonth"], length))
    weekdays = {WEEKDAYS.index(name) for name in pattern["daysOfWeek"]}
    days = [date(year, month, number) for number in range(1, length + 1)]
    matching = [day for day in days if day.weekday() in weekdays]
    return matching[INDEXES[pattern.get("index") or "first"]]
