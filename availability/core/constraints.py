"""Constraints (api.md section 7): parse JSON into rules, expand rules into open intervals."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

from availability.core.date_rules import (
    MAX_DURATION,
    DateRuleError,
    DayHours,
    HolidayCalendar,
    Recurrence,
    holiday_readings,
    make_holiday_calendar,
    make_recurrence,
    read_rrule,
    recurring_readings,
    replaced_day_readings,
    replacement_hours_readings,
)
from availability.core.intervals import (
    Intervals,
    Span,
    clip,
    intersect,
    join,
    normalise,
    subtract,
    unite,
)
from availability.core.zones import DAY, offset_segments
from common.ical.rrule import RecurrenceRuleError
from common.messages import Message, find_message
from common.time.durations import DurationError, duration_in_words, elapsed_seconds

MAX_RULES = 200
MAX_LABEL = 200  # characters of a rule's `name`
MAX_WINDOWS = 24  # of a day with its own hours
MAX_CATEGORIES = 10
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAYS = (0, 1, 2, 3, 4)
WEEKENDS = (5, 6)
EVERY_DAY = WEEKDAYS + WEEKENDS

_WEEK = 7 * DAY
_FIRST_MONDAY = -3 * DAY  # 1 January 1970 was a Thursday
_CACHED_WINDOWS = (
    5_000  # larger expansions are rare and would fill the cache: they are computed each time
)


class PeriodBound(NamedTuple):
    """One end of a period: epoch seconds if written with an `offset`, else a wall-clock reading."""

    seconds: int
    offset: int | None = None


class ConstraintRule(NamedTuple):
    """One constraint. Weekly kinds are day, hours and day_and_time; days count from 0 = Monday.

    Kinds of dates are period, recurring and holidays (with allow False, except period), and those
    that open time: open_period, open_recurring and replace_day (with allow True). start and end are
    minutes of the day (0 to 1440) for hours and day_and_time, PeriodBounds for period and
    open_period, else None. details: what the other kinds of dates have. name: the constraint's.
    label: its parameter `name`.
    """

    allow: bool
    kind: str
    days: tuple[int, ...]
    start: int | PeriodBound | None
    end: int | PeriodBound | None
    name: str
    label: str = ""
    details: "Recurrence | DayHours | HolidayCalendar | Schedule | None" = None


ConstraintRules = tuple[ConstraintRule, ...]


class Schedule(NamedTuple):
    """The rules of a resource's schedule, as part of the resource's list."""

    rules: ConstraintRules


SCHEDULE = "schedule"


def combine_with_schedule(own: ConstraintRules, schedule: ConstraintRules) -> ConstraintRules:
    """Return a resource's own rules together with those of its schedule, as one list.

    Own rules that allow or block narrow the schedule's time; those of `OPENING_KINDS` and
    replace_day change it.
    """
    under = ConstraintRule(True, SCHEDULE, (), None, None, SCHEDULE, details=Schedule(schedule))
    return (under, *own)


def split_schedule(rules: ConstraintRules) -> tuple[ConstraintRules | None, ConstraintRules]:
    """Return the rules of the list's schedule (None: it has none) and the list's own rules."""
    if rules and isinstance(rules[0].details, Schedule):
        return rules[0].details.rules, rules[1:]
    return None, rules


class Windows(NamedTuple):
    """Where bookings may start and end, by the rules of a project; None: anywhere.

    The time between need not be open: `without_allowing_rules`.
    """

    start: ConstraintRules | None = None
    end: ConstraintRules | None = None


WEEKLY_KINDS = ("day", "hours", "day_and_time")
# Kinds that open time which the weekly rules close.
OPENING_KINDS = ("open_period", "open_recurring")
# Kinds that change the time of the schedule under their list.
_CHANGING_KINDS = (*OPENING_KINDS, "replace_day")
# Kinds whose effect depends on the order in which one list applies them.
_ORDERED_KINDS = (*_CHANGING_KINDS, "holidays")


class ConstraintError(ValueError):
    """A list of constraints is invalid. errors: path such as "2.allow_hours.end" -> sentences.

    Paths are relative to the list; "" is the list itself.
    """

    def __init__(self, errors: dict[str, list[str]]):
        super().__init__(errors)
        self.errors = errors


class _Wrong(ValueError):
    """A value that can't be parsed. faults: path inside the value -> message for the client."""

    def __init__(self, message: str, path: str = "", faults: Mapping[str, str] | None = None):
        super().__init__(message)
        self.faults = faults or {path: message}


_NAMES = {
    f"{verb}_{noun}": (verb == "allow", kind, days)
    for verb in ("allow", "block")
    for noun, kind, days in (
        ("hours", "hours", ()),
        ("day", "day", ()),
        ("day_and_time", "day_and_time", ()),
        ("period", "period", ()),
        ("weekdays", "day", WEEKDAYS),
        ("weekends", "day", WEEKENDS),
    )
} | {
    "open_period": (True, "open_period", ()),
    "open_recurring": (True, "open_recurring", ()),
    "block_recurring": (False, "recurring", ()),
    "replace_day": (True, "replace_day", ()),
    "block_holidays": (False, "holidays", ()),
}
CONSTRAINT_NAMES = tuple(_NAMES)


def parse_constraints(raw: object) -> ConstraintRules:
    """Parse the API's list: [{"allow_hours": {"start": 9, "end": "17:30"}}, {"block_weekends": {}}]

    Parameters that a constraint does not have are ignored, as unknown body keys are. Raises
    ConstraintError with all errors.
    """
    if not isinstance(raw, list):
        raise ConstraintError({"": ["Expected a list of constraints."]})
    if len(raw) > MAX_RULES:
        raise ConstraintError({"": [Message("At most %(limit)s constraints.", limit=MAX_RULES)]})
    errors: dict[str, list[str]] = {}
    rules = [_parse_rule(item, str(index), errors) for index, item in enumerate(raw)]
    _refuse_repeated_days(rules, errors)
    if errors:
        raise ConstraintError(errors)
    return tuple(rule for rule in rules if rule)


def _refuse_repeated_days(
    rules: Sequence[ConstraintRule | None], errors: dict[str, list[str]]
) -> None:
    days = set()
    for index, rule in enumerate(rules):
        if rule and isinstance(rule.details, DayHours):
            if rule.details.day in days:
                errors[f"{index}.{rule.name}.date"] = [Message("Another rule replaces this day.")]
            days.add(rule.details.day)


def _parse_rule(item: object, path: str, errors: dict[str, list[str]]) -> ConstraintRule | None:
    if not isinstance(item, dict) or len(item) != 1:
        errors[path] = ["Expected an object with exactly one key, the constraint's name."]
        return None
    ((name, params),) = item.items()
    if name not in _NAMES:
        errors[path] = ["Unknown constraint."]
        return None
    if params == []:
        params = {}
    if not isinstance(params, dict):
        errors[f"{path}.{name}"] = ["Expected an object."]
        return None
    return _read_params(name, params, f"{path}.{name}", errors)


def _read_params(
    name: str, params: dict[str, object], path: str, errors: dict[str, list[str]]
) -> ConstraintRule | None:
    allow, kind, days = _NAMES[name]
    values: dict[str, Any] = {}
    readers = (*_PARAMS[kind, days], *_OPTIONAL.get(kind, ()), _LABEL)
    required = len(_PARAMS[kind, days])
    faults: dict[str, list[str]] = {}
    for position, (param, read) in enumerate(readers):
        try:
            if param in params:
                values[param] = read(params[param])
            elif position < required:
                raise _Wrong("This field is required.")
        except _Wrong as wrong:
            faults |= {f"{path}.{param}{inside}": [text] for inside, text in wrong.faults.items()}
    if faults:
        errors.update(faults)
        return None
    try:
        details = _MAKE_DETAILS[kind](values) if kind in _MAKE_DETAILS else None
    except DateRuleError as error:
        errors[f"{path}.{error.param}"] = [find_message(error)]
        return None
    has_bounds = details is None
    rule = ConstraintRule(
        allow,
        kind,
        values.get("day", days),
        values.get("start") if has_bounds else None,
        values.get("end") if has_bounds else None,
        name,
        values.get("name", ""),
        details,
    )
    if not _is_in_order(rule):
        errors[f"{path}.end"] = [_OUT_OF_ORDER[kind]]
        return None
    return rule


_OUT_OF_ORDER = {
    "hours": Message("Must differ from start."),
    "day_and_time": Message("Must differ from start."),
    "period": Message("Must be after start."),
    "open_period": Message("Must be after start."),
}


def _is_in_order(rule: ConstraintRule) -> bool:
    """Return whether `end` is valid for `start`; true if only one of them has an offset."""
    if not isinstance(rule.start, PeriodBound) or not isinstance(rule.end, PeriodBound):
        return rule.start is None or rule.start != rule.end
    mixed = (rule.start.offset is None) != (rule.end.offset is None)
    return mixed or rule.start.seconds < rule.end.seconds


def _read_day(value: object) -> tuple[int, ...]:
    if isinstance(value, str) and value.isascii() and value.capitalize() in DAY_NAMES:
        return (DAY_NAMES.index(value.capitalize()),)
    raise _Wrong(Message("Expected a weekday such as Monday."))


def _read_start_time(value: object) -> int:
    minutes = _read_end_time(value)
    if minutes == 1440:
        raise _Wrong(Message("Expected a time from 0 to 23:59."))
    return minutes


def _read_end_time(value: object) -> int:
    """Parse 9, 9.0, "9" or "09:30" into minutes of the day, 0 to 1440."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 24:
        return value * 60
    matched = isinstance(value, str) and re.fullmatch(r"([0-9]{1,2})(?::([0-5][0-9]))?", value)
    if matched:
        minutes = int(matched[1]) * 60 + int(matched[2] or 0)
        if minutes <= 1440:
            return minutes
    raise _Wrong(Message('Expected a time such as 9 or "09:30", from 0 to 24.'))


_BOUND = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def _read_bound(value: object) -> PeriodBound:
    """Parse a wall-clock time, a date (midnight) or an instant with offset, to whole seconds."""
    matched = isinstance(value, str) and _BOUND.fullmatch(value)
    try:
        if matched:
            return _make_bound(matched[1], matched[2] or "00:00:00", matched[3])
    except ValueError:
        pass
    raise _Wrong(
        "Expected YYYY-MM-DD HH:MM:SS, a date, or an instant with its offset, "
        "in the years 1970 to 2199."
    )


def _make_bound(day: str, time: str, offset: str | None) -> PeriodBound:
    """Build a PeriodBound. Raises ValueError for invalid times and years outside 1970 to 2199."""
    reading = datetime.fromisoformat(f"{day}T{time}+00:00")
    if not 1970 <= reading.year <= 2199:
        raise ValueError(day)
    seconds = int(reading.timestamp())
    if offset is None:
        return PeriodBound(seconds)
    ahead = datetime.fromisoformat(f"{day}T{time}{offset}").utcoffset()
    shift = ahead // timedelta(seconds=1)  # type: ignore[operator]  # there is an offset
    return PeriodBound(seconds - shift, shift)


_CONTROL_OR_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _read_label(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(Message("Must be a string."))
    if len(value) > MAX_LABEL:
        raise _Wrong(Message("Must have at most %(limit)s characters.", limit=MAX_LABEL))
    if _CONTROL_OR_BREAK.search(value):
        raise _Wrong(Message("May not contain control characters or line breaks."))
    return value


def _read_local_datetime(value: object) -> int:
    """Parse a wall-clock time or date (midnight) into a reading."""
    try:
        bound = _read_bound(value)
    except _Wrong:
        bound = PeriodBound(0, 0)
    if bound.offset is not None:
        raise _Wrong("Expected YYYY-MM-DD HH:MM:SS or a date, in the years 1970 to 2199.")
    return bound.seconds


def _read_date(value: object) -> int:
    """Parse a date into the reading of its midnight."""
    if not isinstance(value, str) or len(value) != len("2026-12-24"):
        raise _Wrong(_NO_DATE)
    try:
        return _read_local_datetime(value)
    except _Wrong:
        raise _Wrong(_NO_DATE) from None


_NO_DATE = Message("Expected a date such as 2026-12-24, in the years 1970 to 2199.")


def _read_duration(value: object) -> int:
    try:
        return elapsed_seconds(value, least=60, most=MAX_DURATION)  # type: ignore[arg-type]
    except DurationError as error:
        raise _Wrong(find_message(error)) from error


def _read_rrule(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(Message("Must be a string."))
    try:
        return read_rrule(value)
    except RecurrenceRuleError as error:
        raise _Wrong(find_message(error)) from error


def _read_windows(value: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list):
        raise _Wrong("Expected a list of windows.")
    if len(value) > MAX_WINDOWS:
        raise _Wrong(Message("At most %(limit)s windows.", limit=MAX_WINDOWS))
    windows: list[tuple[int, int]] = []
    faults: dict[str, str] = {}
    for index, item in enumerate(value):
        try:
            windows.append(_read_window(item))
        except _Wrong as wrong:
            faults |= {f".{index}{inside}": text for inside, text in wrong.faults.items()}
    if faults:
        raise _Wrong("Wrong windows.", faults=faults)
    return tuple(sorted(windows))


def _read_window(item: object) -> tuple[int, int]:
    if not isinstance(item, dict):
        raise _Wrong("Expected an object with start and end.")
    times, faults = [], {}
    for param, read in _TIMES:
        try:
            if param not in item:
                raise _Wrong("This field is required.")
            times.append(read(item[param]))
        except _Wrong as wrong:
            faults[f".{param}"] = str(wrong)
    if faults:
        raise _Wrong("Wrong times.", faults=faults)
    start, end = times
    if end <= start:
        raise _Wrong(Message("Must be after start."), ".end")
    return start, end


def _read_code(value: object) -> str:
    if isinstance(value, str) and len(value) <= 40:
        return value
    raise _Wrong("Expected a code.")


def _read_country(value: object) -> str:
    return _read_code(value).upper()


def _read_categories(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Wrong("Expected a list of categories.")
    if len(value) > MAX_CATEGORIES:
        raise _Wrong(f"At most {MAX_CATEGORIES} categories.")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise _Wrong(Message("Must be a string."), f".{index}")
    return tuple(value)


_TIMES = (("start", _read_start_time), ("end", _read_end_time))
_PERIOD = (("start", _read_bound), ("end", _read_bound))
_RECURRING = (("start", _read_local_datetime), ("duration", _read_duration), ("rrule", _read_rrule))
_PARAMS: dict[tuple[str, tuple[int, ...]], tuple[tuple[str, Callable[[object], Any]], ...]] = {
    ("day", ()): (("day", _read_day),),
    ("day", WEEKDAYS): (),
    ("day", WEEKENDS): (),
    ("hours", ()): _TIMES,
    ("day_and_time", ()): (("day", _read_day), *_TIMES),
    ("period", ()): _PERIOD,
    ("open_period", ()): _PERIOD,
    ("open_recurring", ()): _RECURRING,
    ("recurring", ()): _RECURRING,
    ("replace_day", ()): (("date", _read_date), ("windows", _read_windows)),
    ("holidays", ()): (("country", _read_country),),
}
_OPTIONAL = {"holidays": (("subdivision", _read_code), ("categories", _read_categories))}
_LABEL = ("name", _read_label)


def _make_recurrence(values: dict[str, Any]) -> Recurrence:
    return make_recurrence(values["start"], values["duration"], values["rrule"])


_MAKE_DETAILS: dict[str, Callable[[dict[str, Any]], Recurrence | DayHours | HolidayCalendar]] = {
    "open_recurring": _make_recurrence,
    "recurring": _make_recurrence,
    "replace_day": lambda values: DayHours(values["date"], values["windows"]),
    "holidays": lambda values: make_holiday_calendar(
        values["country"], values.get("subdivision", ""), values.get("categories", ())
    ),
}


def render_constraint(rule: ConstraintRule) -> dict[str, dict[str, Any]]:
    """Return the API's form: {"allow_day_and_time": {"day": "Monday", "start": 9, "end": 17}}."""
    if rule.details is not None and not isinstance(rule.details, Schedule):
        params = _render_details(rule.details)
    else:
        values = {
            "day": DAY_NAMES[rule.days[0]] if rule.days else None,
            "start": _render_bound(rule.start),
            "end": _render_bound(rule.end),
        }
        _, kind, days = _NAMES[rule.name]
        params = {param: values[param] for param, _ in _PARAMS[kind, days]}
    return {rule.name: params | {"name": rule.label} if rule.label else params}


def _render_details(details: Recurrence | DayHours | HolidayCalendar) -> dict[str, Any]:
    if isinstance(details, Recurrence):
        return {
            "start": render_period_bound(PeriodBound(details.start)),
            "duration": duration_in_words(details.duration),
            "rrule": details.rrule,
        }
    if isinstance(details, DayHours):
        windows = [
            {"start": _render_bound(start), "end": _render_bound(end)}
            for start, end in details.windows
        ]
        return {"date": render_day(details.day), "windows": windows}
    given = {
        "country": details.country,
        "subdivision": details.subdivision,
        "categories": list(details.categories),
    }
    return {param: value for param, value in given.items() if value}


def render_day(reading: int) -> str:
    """Return the date of a reading: 2026-12-24."""
    return datetime.fromtimestamp(reading, UTC).date().isoformat()


def _render_bound(bound: int | PeriodBound | None) -> int | str | None:
    if isinstance(bound, PeriodBound):
        return render_period_bound(bound)
    if bound is None or bound % 60 == 0:
        return bound and bound // 60
    return f"{bound // 60:02}:{bound % 60:02}"


def render_period_bound(bound: PeriodBound) -> str:
    """Return 2026-08-01 00:00:00 for a reading, 2026-08-01T00:00:00+02:00 for an instant."""
    moment = datetime.fromtimestamp(bound.seconds, UTC)
    if bound.offset is None:
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    return moment.astimezone(timezone(timedelta(seconds=bound.offset))).isoformat()


class ListPattern(NamedTuple):
    """The effect of one list with rules of `_ORDERED_KINDS`, which apply in a fixed order.

    The weekly time within `schedule` (None: without one), plus `recurring`, less `holidays`, on
    `days` their hours instead, cut by `allowed` (allow_period), plus `opened` (open_period). The
    list's other block rules come last: they are in the WeeklyPattern.
    """

    week: tuple[Span, ...]
    recurring: tuple[Recurrence, ...]
    holidays: tuple[HolidayCalendar, ...]
    days: tuple[DayHours, ...]
    allowed: ConstraintRules
    opened: ConstraintRules
    schedule: "WeeklyPattern | None"


class WeeklyPattern(NamedTuple):
    """The combined effect of several lists of rules, on any wall clock.

    week: open readings of a week, in seconds from Monday 00:00. allowed: the allow_period rules, a
    tuple for each list that has any. blocked, repeated: the block_period and block_recurring rules
    of all lists. ordered: the lists with rules of `_ORDERED_KINDS`, which `week` and `allowed` do
    not contain. windows: how many windows a week has at most, but for those of single dates, of
    which there are `dates` in all.
    """

    week: tuple[Span, ...]
    allowed: tuple[ConstraintRules, ...]
    blocked: ConstraintRules
    repeated: tuple[Recurrence, ...]
    ordered: tuple[ListPattern, ...]
    windows: int
    dates: int


def open_windows(
    lists: tuple[ConstraintRules, ...], zone: str, start: int, end: int
) -> tuple[Span, ...]:
    """Return the intervals within [start, end) that the rules leave open on the zone's wall clock.

    lists: the rules of resource, project and request; without rules everything is open. An instant
    is open if its wall-clock reading is. Windows are computed in readings, per stretch of constant
    offset, so gaps, repeated hours and skipped days need no special case.
    """
    plan = make_weekly_pattern(lists)
    expand = _expand_cached if is_small_enough_to_cache(lists, start, end) else _expand
    return expand(plan, zone, start, end)


def is_small_enough_to_cache(lists: tuple[ConstraintRules, ...], start: int, end: int) -> bool:
    """Return whether the expansion of the rules in the range is small enough to cache."""
    return count_windows(lists, start, end) <= _CACHED_WINDOWS


def count_windows(lists: tuple[ConstraintRules, ...], start: int, end: int) -> int:
    """Return how many windows the rules have in the range, at most: a rule that repeats has one a
    day.
    """
    pattern = make_weekly_pattern(lists)
    return pattern.windows * (end - start) // _WEEK + pattern.dates


@lru_cache(maxsize=4096)
def make_weekly_pattern(lists: tuple[ConstraintRules, ...]) -> WeeklyPattern:
    """Combine several lists of rules. Cached: the pattern does not depend on range or zone."""
    lists = tuple(part for rules in lists for part in _independent_lists(rules))
    plain = [rules for rules in lists if not _has_order(rules)]
    ordered = tuple(_make_list_pattern(rules) for rules in lists if _has_order(rules))
    week: Intervals = [(0, _WEEK)]
    for rules in plain:
        week = intersect(week, open_week(rules))
    blocks = _rules_by_effect(lists, allow=False)
    repeated = details_of(blocks, "recurring")
    daily = len(repeated) + sum(len(pattern.recurring) for pattern in ordered)
    return WeeklyPattern(
        tuple(week),
        tuple(filter(None, (rules_of(rules, "period", allow=True) for rules in plain))),
        rules_of(blocks, "period", allow=False),
        repeated,
        ordered,
        len(week) + sum(_count_windows(pattern) for pattern in ordered) + 7 * daily,
        sum(_count_dates(rules) for rules in lists),
    )


def _count_windows(pattern: ListPattern) -> int:
    of_schedule = pattern.schedule.windows if pattern.schedule else 0
    return len(pattern.week) + len(pattern.holidays) + of_schedule


def _count_dates(rules: ConstraintRules) -> int:
    schedule, own = split_schedule(rules)
    days = details_of(own, "replace_day")
    periods = [rule for rule in own if rule.kind in ("period", "open_period")]
    of_schedule = _count_dates(schedule) if schedule else 0
    return len(periods) + sum(1 + len(day.windows) for day in days) + of_schedule


def _independent_lists(rules: ConstraintRules) -> tuple[ConstraintRules, ...]:
    """Return the list's schedule and its own rules as two lists, if these only narrow the schedule.

    Otherwise return the list itself.
    """
    schedule, own = split_schedule(rules)
    if schedule is None or any(rule.kind in _CHANGING_KINDS for rule in own):
        return (rules,)
    return schedule, own


def _has_order(rules: ConstraintRules) -> bool:
    return any(rule.kind in _ORDERED_KINDS for rule in rules)


def _make_list_pattern(rules: ConstraintRules) -> ListPattern:
    schedule, _ = split_schedule(rules)
    return ListPattern(
        () if is_closed_but_for_openings(rules) else tuple(open_week(rules)),
        details_of(rules, "open_recurring"),
        details_of(rules, "holidays"),
        details_of(rules, "replace_day"),
        rules_of(rules, "period", allow=True),
        rules_of(rules, "open_period", allow=True),
        None if schedule is None else make_weekly_pattern((schedule,)),
    )


def is_closed_but_for_openings(rules: ConstraintRules) -> bool:
    """Return whether the list has rules that open time, but no allow rules and no schedule.

    Such a list closes all other time.
    """
    kinds = {rule.kind for rule in rules if rule.allow}
    return not kinds.isdisjoint(OPENING_KINDS) and kinds.isdisjoint(
        (*WEEKLY_KINDS, "period", SCHEDULE)
    )


_ALWAYS = ConstraintRule(True, "hours", (), 0, 24 * 60, "allow_hours")


@lru_cache(maxsize=4096)
def without_allowing_rules(rules: ConstraintRules) -> ConstraintRules:
    """Return the blocking rules of one list, with the rules that open what they block.

    All other time is open.
    """
    schedule, own = split_schedule(rules)
    kept = tuple(rule for rule in own if not rule.allow or rule.kind in OPENING_KINDS)
    if schedule is not None:
        return combine_with_schedule(kept, without_allowing_rules(schedule))
    return (_ALWAYS, *kept) if any(rule.allow for rule in kept) else kept


def open_week(rules: ConstraintRules) -> Intervals:
    """Return the readings of a week that the weekly rules of one list leave open."""
    week = allowed_week(rules)
    for rule in rules:
        if not rule.allow and rule.kind in WEEKLY_KINDS:
            week = subtract(week, blocked_week(rule))
    return week


def rules_of(rules: Iterable[ConstraintRule], kind: str, *, allow: bool) -> ConstraintRules:
    return tuple(rule for rule in rules if rule.kind == kind and rule.allow is allow)


def details_of(rules: Iterable[ConstraintRule], kind: str) -> tuple[Any, ...]:
    return tuple(rule.details for rule in rules if rule.kind == kind)


def _rules_by_effect(lists: Iterable[ConstraintRules], *, allow: bool) -> list[ConstraintRule]:
    return [rule for rules in lists for rule in rules if rule.allow is allow]


def allowed_week(rules: ConstraintRules) -> Intervals:
    """Return the readings of a week (seconds) that one list's day and time rules allow."""
    by_kind = allow_rules_by_kind(rules)
    days = allowed_days(by_kind.get("day", ()))
    kinds = [kind for kind in ("hours", "day_and_time") if kind in by_kind]
    if not kinds:
        return windows_of_week((day, 0, 1440) for day in days)
    week: Intervals = [(0, _WEEK)]
    for kind in kinds:
        week = intersect(week, windows_starting_on(days, by_kind[kind]))
    return week


def allow_rules_by_kind(rules: ConstraintRules) -> dict[str, ConstraintRules]:
    groups: dict[str, ConstraintRules] = {}
    for rule in rules:
        if rule.allow:
            groups[rule.kind] = (*groups.get(rule.kind, ()), rule)
    return groups


def allowed_days(rules: ConstraintRules) -> tuple[int, ...]:
    """Return the days that the day rules allow; every day if there are no rules."""
    return tuple(sorted({day for rule in rules for day in rule.days})) if rules else EVERY_DAY


def windows_starting_on(days: Iterable[int], rules: ConstraintRules) -> Intervals:
    """Return readings of a week in windows of hours or day_and_time rules that start on `days`."""
    chosen = set(days)
    return windows_of_week(
        (day, rule.start, rule.end)  # type: ignore[misc]  # both are minutes in these kinds
        for rule in rules
        for day in rule.days or EVERY_DAY
        if day in chosen
    )


def blocked_week(rule: ConstraintRule) -> Intervals:
    """Return the readings of a week that a block rule (day, hours or day_and_time) closes."""
    if rule.kind == "day":
        return windows_of_week((day, 0, 1440) for day in rule.days)
    return windows_starting_on(EVERY_DAY, (rule,))


def windows_of_week(windows: Iterable[tuple[int, int, int]]) -> Intervals:
    """Convert (day, start, end in minutes of that day) to seconds of the week.

    A window with start >= end ends on the next day; Monday follows Sunday.
    """
    spans = []
    for day, start, end in windows:
        length = (end - start if start < end else end - start + 1440) * 60
        begin = day * DAY + start * 60
        spans += [(begin, min(begin + length, _WEEK)), (0, begin + length - _WEEK)]
    return normalise(spans)


def _expand(plan: WeeklyPattern, zone: str, start: int, end: int) -> tuple[Span, ...]:
    windows = []
    for since, until, offset in offset_segments(zone, start, end):
        readings = _open_readings(plan, zone, since + offset, until + offset, offset)
        windows += [(lo - offset, hi - offset) for lo, hi in readings]
    return tuple(join(windows))


def _open_readings(plan: WeeklyPattern, zone: str, lo: int, hi: int, offset: int) -> Intervals:
    """Return the open readings in [lo, hi), for a clock `offset` seconds ahead of UTC."""
    readings = repeat_week(plan.week, lo, hi)
    for rules in plan.allowed:
        readings = intersect(readings, period_readings(rules, offset))
    for pattern in plan.ordered:
        readings = intersect(readings, _ordered_readings(pattern, zone, lo, hi, offset))
    if plan.blocked:
        readings = subtract(readings, period_readings(plan.blocked, offset))
    if plan.repeated:
        readings = subtract(readings, recurring_readings(plan.repeated, zone, lo, hi))
    return readings


_expand_cached = lru_cache(maxsize=64)(_expand)


def _ordered_readings(pattern: ListPattern, zone: str, lo: int, hi: int, offset: int) -> Intervals:
    """Return the readings in [lo, hi) that the list opens, before its last block rules."""
    readings = repeat_week(pattern.week, lo, hi)
    if pattern.schedule:
        under = _open_readings(pattern.schedule, zone, lo, hi, offset)
        readings = intersect(readings, under)
    readings = unite(readings, recurring_readings(pattern.recurring, zone, lo, hi))
    readings = subtract(readings, holiday_readings(pattern.holidays, lo, hi))
    readings = subtract(readings, replaced_day_readings(pattern.days))
    readings = unite(readings, replacement_hours_readings(pattern.days))
    if pattern.allowed:
        readings = intersect(readings, period_readings(pattern.allowed, offset))
    return intersect(unite(readings, period_readings(pattern.opened, offset)), [(lo, hi)])


def repeat_week(week: Sequence[Span], lo: int, hi: int) -> Intervals:
    """Return the readings in [lo, hi) within a week's windows (seconds from Monday 00:00)."""
    first = (lo - _FIRST_MONDAY) // _WEEK * _WEEK + _FIRST_MONDAY
    spans = [
        (monday + start, monday + end) for monday in range(first, hi, _WEEK) for start, end in week
    ]
    return clip(join(spans), lo, hi)


def period_readings(rules: Iterable[ConstraintRule], offset: int) -> Intervals:
    """Return the readings within any period, for a clock `offset` seconds ahead of UTC."""
    return normalise((_reading(rule.start, offset), _reading(rule.end, offset)) for rule in rules)


def _reading(bound: int | PeriodBound | None, offset: int) -> int:
    if not isinstance(bound, PeriodBound):
        raise TypeError("not a bound of a period")
    return bound.seconds if bound.offset is None else bound.seconds + offset
