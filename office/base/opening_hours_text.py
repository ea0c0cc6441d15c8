"""Weekly opening hours: seven texts such as `09:00-12:00, 13:00-17:00`, and the rules behind them.

The weekly rules together make the hours of a week; rules of dates are not part of them.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.core.constraints import (
    DAY_NAMES,
    OPENING_KINDS,
    WEEKLY_KINDS,
    ConstraintRules,
    is_closed_but_for_openings,
    make_weekly_pattern,
    parse_constraints,
    render_constraint,
)
from office.base.lazy_text import LazyText

DAY_MINUTES = 1440
MAX_SPANS = 10  # of a day
_TIME = r"(\d{1,2})(?:[:.](\d\d))?"
_SPAN = re.compile(rf"{_TIME}\s*(?:-|–|—|to)\s*{_TIME}", re.IGNORECASE)
CLOSED = "closed"
NOT_HOURS = _("Enter hours such as 9:00-12:00, 13:00-17:00, or closed.")

# (start, end) in minutes of a day
DaySpan = tuple[int, int]


class HoursError(ValueError):
    """Texts that are not hours. errors: day (0 = Monday) -> sentence."""

    def __init__(self, errors: dict[int, LazyText]) -> None:
        super().__init__(errors)
        self.errors = errors


def weekly_rules(rules: ConstraintRules) -> ConstraintRules:
    return tuple(rule for rule in rules if rule.kind in WEEKLY_KINDS)


def hours_of_rules(*lists: ConstraintRules) -> list[str]:
    """Return the open hours of each day by the weekly rules of all lists.

    Without weekly rules every day is open, or closed if a list has rules for extra hours.
    """
    if any(map(is_closed_but_for_openings, lists)):
        return [""] * len(DAY_NAMES)
    week = make_weekly_pattern(tuple(map(weekly_rules, lists))).week
    days = []
    for day in range(len(DAY_NAMES)):
        first = day * DAY_MINUTES
        spans = [(start // 60 - first, end // 60 - first) for start, end in week]
        inside = [(max(start, 0), min(end, DAY_MINUTES)) for start, end in spans]
        days.append(", ".join(_span_text(span) for span in inside if span[0] < span[1]))
    return days


def hours_words(days: Sequence[str]) -> str:
    """Return `Mon–Fri 09:00-17:00, Sat–Sun closed`; `always open`."""
    if set(days) == {"00:00-24:00"}:
        return gettext("always open")
    spans = []
    for text, group in groupby(enumerate(days), key=lambda day: day[1]):
        numbers = [number for number, _ in group]
        first, last = str(WEEKDAYS_ABBR[numbers[0]]), str(WEEKDAYS_ABBR[numbers[-1]])
        span = first if first == last else f"{first}–{last}"
        # Translators: "Mon–Fri 09:00-17:00" or "Sun closed".
        words = gettext("%(days)s %(hours)s") if text else gettext("%(days)s closed")
        spans.append(words % {"days": span, "hours": text})
    return ", ".join(spans)


def rules_of_hours(days: Sequence[str]) -> list[dict[str, Any]]:
    """Return the API's constraints for the hours of a week. Raises HoursError.

    Always open: no rule. Always closed: rules that close all days.
    """
    spans = _read_week(days)
    if not any(spans):
        return [{"block_weekdays": {}}, {"block_weekends": {}}]
    if all(of_day == [(0, DAY_MINUTES)] for of_day in spans):
        return []
    raw = [
        {"allow_day_and_time": {"day": DAY_NAMES[day], "start": clock(start), "end": clock(end)}}
        for day, of_day in enumerate(spans)
        for start, end in of_day
    ]
    return [render_constraint(rule) for rule in parse_constraints(raw)]


def normalise_hours_texts(days: Sequence[str]) -> list[str]:
    """Return each day's hours in one form: `09:00-12:00` for `9 to 12`. Raises HoursError."""
    return [", ".join(map(_span_text, spans)) for spans in _read_week(days)]


def _read_week(days: Sequence[str]) -> list[list[DaySpan]]:
    spans: list[list[DaySpan]] = []
    errors: dict[int, LazyText] = {}
    for day, text in enumerate(days):
        try:
            spans.append(read_spans(text))
        except ValueError:
            errors[day] = NOT_HOURS
    if errors:
        raise HoursError(errors)
    return spans


def with_always_open_rule(
    weekly: list[dict[str, Any]], others: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the weekly rules, with a rule that is always open if the other rules need one.

    weekly: [] for a week that is always open. Without a rule that allows time, rules for extra
    hours would close all other time.
    """
    is_open = not weekly and not any("allow_period" in rule for rule in others)
    if is_open and any(kind in rule for rule in others for kind in OPENING_KINDS):
        return [{"allow_hours": {"start": 0, "end": 24}}]
    return weekly


def merge_hours_and_dates(
    stored: ConstraintRules, weekly: list[dict[str, Any]] | None, dates: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the API's constraints of weekly hours and dates. weekly: None keeps the stored rules.

    Extra hours do not close a week that was always open.
    """
    was_open = weekly is not None or not is_closed_but_for_openings(stored)
    if weekly is None:
        weekly = [render_constraint(rule) for rule in weekly_rules(stored)]
    return [*(with_always_open_rule(weekly, dates) if was_open else weekly), *dates]


def read_spans(text: str) -> list[DaySpan]:
    """Parse the hours of one day, joined if they touch; `closed`, in English or the page's
    language: none. Raises ValueError.
    """
    if text.strip().casefold() in (CLOSED, gettext("closed").casefold()):
        return []
    parts = [part.strip() for part in re.split(r"[,;]|\band\b", text) if part.strip()]
    if len(parts) > MAX_SPANS:
        raise ValueError("too many spans")
    found: list[DaySpan] = []
    for start, end in sorted(_read_span(part) for part in parts):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _read_span(text: str) -> DaySpan:
    matched = _SPAN.fullmatch(text)
    if matched is None:
        raise ValueError(text)
    hour, minute, end_hour, end_minute = (int(part or 0) for part in matched.groups())
    start, end = hour * 60 + minute, end_hour * 60 + end_minute
    if max(minute, end_minute) > 59 or not start < end <= DAY_MINUTES:
        raise ValueError(text)
    return start, end


def _span_text(span: DaySpan) -> str:
    return "-".join(map(clock, span))


def clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
