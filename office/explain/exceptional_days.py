"""The days of a year on which rules of dates change the weekly hours."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from availability.core.constraints import (
    WEEKLY_KINDS,
    ConstraintRule,
    ConstraintRules,
    combine_with_schedule,
    is_closed_but_for_openings,
    open_windows,
    period_readings,
    split_schedule,
)
from availability.core.date_rules import (
    DayHours,
    HolidayCalendar,
    Recurrence,
    holidays_between,
    recurring_readings,
)
from availability.core.intervals import Span, subtract
from availability.core.zones import DAY, day_start, local_day, offset_at
from bookings.pages.formatting import short_date_words, time_words
from office.explain.data import times_text

DAYS = 366
MAX_LINES = 30
MINUTES_OF_DAY = 24 * 60

Hours = tuple[Span, ...]


class ExceptionalDay(NamedTuple):
    """kind: closed, extra (open for longer) or changed; hours: minutes of the day."""

    day: date
    kind: str
    words: str


def find_exceptional_days(rules: ConstraintRules, zone: str, first: date) -> dict[str, Any]:
    """Return {first, days: [{date, kind, text}], lines, more}: 366 days from `first` on.

    `lines` joins neighbouring days with the same words; `more` counts the lines left out.
    """
    last = first + timedelta(days=DAYS)
    start, end = day_start(first, zone), day_start(last, zone)
    usual = _hours_by_day(open_windows((_weekly_rules_only(rules),), zone, start, end), zone)
    if is_closed_but_for_openings(rules):
        usual = {}
    given = _hours_by_day(open_windows((rules,), zone, start, end), zone)
    notes = _notes_by_day(rules, zone, first, last)
    found = [
        _exceptional_day(day, usual.get(day, ()), given.get(day, ()), notes.get(day, ()))
        for day in sorted(usual.keys() | given.keys())
        if usual.get(day, ()) != given.get(day, ())
    ]
    lines = list(_lines(found, usual.keys() | given.keys()))
    return {
        "first": first.isoformat(),
        "days": [
            {"date": day.isoformat(), "kind": kind, "text": words} for day, kind, words in found
        ],
        "lines": lines[:MAX_LINES],
        "more": max(0, len(lines) - MAX_LINES),
    }


def _weekly_rules_only(rules: ConstraintRules) -> ConstraintRules:
    """Return the rules without those of dates, also of the schedule under them."""
    schedule, own = split_schedule(rules)
    weekly = tuple(rule for rule in own if rule.kind in WEEKLY_KINDS)
    return (
        weekly if schedule is None else combine_with_schedule(weekly, _weekly_rules_only(schedule))
    )


def _hours_by_day(windows: Sequence[Span], zone: str) -> dict[date, Hours]:
    """Cut the windows at the local midnights, into minutes of the local day."""
    days: dict[date, list[Span]] = {}
    for start, end in windows:
        while start < end:
            day = local_day(start, zone)
            next_day = day_start(day + timedelta(days=1), zone)
            stop = min(end, next_day)
            end_minute = MINUTES_OF_DAY if stop == next_day else _minute(stop, zone)
            span = (_minute(start, zone), end_minute)
            days.setdefault(day, []).append(span)
            start = stop
    return {day: tuple(spans) for day, spans in days.items()}


def _minute(instant: int, zone: str) -> int:
    return (instant + offset_at(zone, instant)) % DAY // 60


def _exceptional_day(day: date, usual: Hours, given: Hours, notes: Sequence[str]) -> ExceptionalDay:
    kind = "closed" if not given else "changed" if subtract(usual, given) else "extra"
    hours = ", ".join(times_text(_clock(start), _clock(end)) for start, end in given)
    names = "; ".join(dict.fromkeys(notes))
    return ExceptionalDay(day, kind, _open_words(hours, names) if given else _closed_words(names))


def _open_words(hours: str, names: str) -> str:
    """names: of rules and holidays."""
    if not names:
        # Translators: hours: such as "09:00 to 12:00, 14:00 to 17:00".
        return _("open %(hours)s") % {"hours": hours}
    # Translators: names: of rules or holidays, such as "Christmas Eve".
    return _("open %(hours)s (%(names)s)") % {"hours": hours, "names": names}


def _closed_words(names: str) -> str:
    if not names:
        # Translators: of a day.
        return _("closed")
    # Translators: names: of rules or holidays, such as "Christmas Day".
    return _("closed (%(names)s)") % {"names": names}


def _clock(minutes: int) -> str:
    if minutes == MINUTES_OF_DAY:
        return "24:00"
    return time_words(datetime.min + timedelta(minutes=minutes))


def _lines(days: Sequence[ExceptionalDay], known: set[date]) -> Iterator[str]:
    """Yield `Thu 24 Dec 2026 to Sun 3 Jan 2027: closed (Holidays)`.

    Days that are closed by the weekly hours do not end a line.
    """
    position = 0
    while position < len(days):
        first = last = days[position]
        for other in days[position + 1 :]:
            between = (last.day + timedelta(days=n) for n in range(1, (other.day - last.day).days))
            if (other.kind, other.words) != (first.kind, first.words) or known & set(between):
                break
            last = other
            position += 1
        position += 1
        given = {
            "first": short_date_words(first.day),
            "last": short_date_words(last.day),
            "hours": first.words,
        }
        if last is first:
            # Translators: hours: such as "closed" or "open 09:00 to 12:00".
            yield _("%(first)s: %(hours)s") % given
        else:
            # Translators: days: "Thu 24 Dec 2026 to Sun 3 Jan 2027: closed".
            yield _("%(first)s to %(last)s: %(hours)s") % given


# --- Names of rules and holidays ------------------------------------------------------------------
def _notes_by_day(
    rules: ConstraintRules, zone: str, first: date, last: date
) -> dict[date, list[str]]:
    """Return the names of the rules and holidays of each day."""
    lo, hi = _reading_of_date(first), _reading_of_date(last)
    schedule, own = split_schedule(rules)
    notes: dict[date, list[str]] = {}
    for rule in (*own, *(schedule or ())):
        if isinstance(rule.details, HolidayCalendar):
            for holiday in holidays_between(rule.details, lo, hi):
                notes.setdefault(_date_of_reading(holiday.day), []).append(holiday.name)
        elif rule.label:
            for start, end in _local_spans_of_rule(rule, zone, lo, hi):
                for reading in range(max(start, lo) // DAY * DAY, min(end, hi), DAY):
                    notes.setdefault(_date_of_reading(reading), []).append(rule.label)
    return notes


def _local_spans_of_rule(rule: ConstraintRule, zone: str, lo: int, hi: int) -> Sequence[Span]:
    if isinstance(rule.details, Recurrence):
        return recurring_readings((rule.details,), zone, lo, hi)
    if isinstance(rule.details, DayHours):
        return ((rule.details.day, rule.details.day + DAY),)
    if rule.kind in ("period", "open_period") and rule.name != "allow_period":
        return period_readings((rule,), offset_at(zone, lo))
    return ()


def _reading_of_date(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _date_of_reading(reading: int) -> date:
    return datetime.fromtimestamp(reading, UTC).date()
