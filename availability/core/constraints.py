"""Constraints (api.md section 7): parse JSON into rules, expand rules into open intervals."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

from availability.core.intervals import Intervals, Span, intersect, join, normalise, subtract
from availability.core.zones import DAY, offset_segments

MAX_RULES = 200
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
    """One end of a period: epoch seconds, written with `offset`; without, a wall-clock reading."""

    seconds: int
    offset: int | None = None


class ConstraintRule(NamedTuple):
    """One constraint. `kind` is day, hours, day_and_time or period; days count from 0 = Monday.

    start and end are minutes of the day (0 to 1440) for hours and day_and_time, PeriodBounds for
    period, else None.
    """

    allow: bool
    kind: str
    days: tuple[int, ...]
    start: int | PeriodBound | None
    end: int | PeriodBound | None
    name: str


ConstraintRules = tuple[ConstraintRule, ...]


class ConstraintError(ValueError):
    """A list of constraints is invalid. errors: path such as "2.allow_hours.end" -> sentences.

    Paths are relative to the list; "" is the list itself.
    """

    def __init__(self, errors: dict[str, list[str]]):
        super().__init__(errors)
        self.errors = errors


class _Wrong(ValueError):
    """A value that can't be parsed; the message is shown to the client."""


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
}


def parse_constraints(raw: object) -> ConstraintRules:
    """Parse the API's list: [{"allow_hours": {"start": 9, "end": "17:30"}}, {"block_weekends": {}}]

    Parameters that a constraint does not have are ignored, as unknown body keys are. Raises
    ConstraintError with all errors.
    """
    if not isinstance(raw, list):
        raise ConstraintError({"": ["Expected a list of constraints."]})
    if len(raw) > MAX_RULES:
        raise ConstraintError({"": [f"At most {MAX_RULES} constraints."]})
    errors: dict[str, list[str]] = {}
    rules = [_parse_rule(item, str(index), errors) for index, item in enumerate(raw)]
    if errors:
        raise ConstraintError(errors)
    return tuple(rule for rule in rules if rule)


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
    for param, read in _PARAMS[kind, days]:
        try:
            if param not in params:
                raise _Wrong("This field is required.")
            values[param] = read(params[param])
        except _Wrong as wrong:
            errors[f"{path}.{param}"] = [str(wrong)]
    if len(values) < len(_PARAMS[kind, days]):
        return None
    rule = ConstraintRule(
        allow, kind, values.get("day", days), values.get("start"), values.get("end"), name
    )
    if not _is_in_order(rule):
        errors[f"{path}.end"] = [_OUT_OF_ORDER[kind]]
        return None
    return rule


_OUT_OF_ORDER = {
    "hours": "Must differ from start.",
    "day_and_time": "Must differ from start.",
    "period": "Must be after start.",
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
    raise _Wrong("Expected a weekday such as Monday.")


def _read_start_time(value: object) -> int:
    minutes = _read_end_time(value)
    if minutes == 1440:
        raise _Wrong("Expected a time from 0 to 23:59.")
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
    raise _Wrong('Expected a time such as 9 or "09:30", from 0 to 24.')


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


_TIMES = (("start", _read_start_time), ("end", _read_end_time))
_PARAMS = {
    ("day", ()): (("day", _read_day),),
    ("day", WEEKDAYS): (),
    ("day", WEEKENDS): (),
    ("hours", ()): _TIMES,
    ("day_and_time", ()): (("day", _read_day), *_TIMES),
    ("period", ()): (("start", _read_bound), ("end", _read_bound)),
}


def render_constraint(rule: ConstraintRule) -> dict[str, dict[str, int | str | None]]:
    """Return the API's form: {"allow_day_and_time": {"day": "Monday", "start": 9, "end": 17}}."""
    values = {
        "day": DAY_NAMES[rule.days[0]] if rule.days else None,
        "start": _render_bound(rule.start),
        "end": _render_bound(rule.end),
    }
    _, kind, days = _NAMES[rule.name]
    return {rule.name: {param: values[param] for param, _ in _PARAMS[kind, days]}}


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


class WeeklyPattern(NamedTuple):
    """The combined effect of several lists of rules, on any wall clock.

    week: open readings of a week, in seconds from Monday 00:00. allowed: the allow_period rules, a
    tuple for each list that has any. blocked: the block_period rules of all lists.
    """

    week: tuple[Span, ...]
    allowed: tuple[ConstraintRules, ...]
    blocked: ConstraintRules


def open_windows(
    lists: tuple[ConstraintRules, ...], zone: str, start: int, end: int
) -> tuple[Span, ...]:
    """Return the intervals within [start, end) that the rules leave open on the zone's wall clock.

    lists: the rules of resource, project and request; without rules everything is open. An instant
    is open if its wall-clock reading is. Windows are computed in readings, per stretch of constant
    offset, so gaps, repeated hours and skipped days need no special case.
    """
    plan = make_weekly_pattern(lists)
    expand = _expand_cached if is_worth_keeping(lists, start, end) else _expand
    return expand(plan, zone, start, end)


def is_worth_keeping(lists: tuple[ConstraintRules, ...], start: int, end: int) -> bool:
    """Return whether the expansion of the rules in the range is small enough to cache."""
    return len(make_weekly_pattern(lists).week) * (end - start) <= _CACHED_WINDOWS * _WEEK


@lru_cache(maxsize=512)
def make_weekly_pattern(lists: tuple[ConstraintRules, ...]) -> WeeklyPattern:
    """Combine several lists of rules. Cached: the pattern does not depend on range or zone."""
    week: Intervals = [(0, _WEEK)]
    for rules in lists:
        week = intersect(week, allowed_week(rules))
    for rule in _rules_by_effect(lists, allow=False):
        week = subtract(week, blocked_week(rule)) if rule.kind != "period" else week
    periods = (
        tuple(rule for rule in rules if rule.allow and rule.kind == "period") for rules in lists
    )
    blocked = tuple(rule for rule in _rules_by_effect(lists, allow=False) if rule.kind == "period")
    return WeeklyPattern(tuple(week), tuple(filter(None, periods)), blocked)


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
        readings = repeat_week(plan.week, since + offset, until + offset)
        for rules in plan.allowed:
            readings = intersect(readings, period_readings(rules, offset))
        readings = subtract(readings, period_readings(plan.blocked, offset))
        windows += [(lo - offset, hi - offset) for lo, hi in readings]
    return tuple(join(windows))


_expand_cached = lru_cache(maxsize=64)(_expand)


def repeat_week(week: Sequence[Span], lo: int, hi: int) -> Intervals:
    """Return the readings in [lo, hi) within a week's windows (seconds from Monday 00:00)."""
    first = (lo - _FIRST_MONDAY) // _WEEK * _WEEK + _FIRST_MONDAY
    spans = [
        (monday + start, monday + end) for monday in range(first, hi, _WEEK) for start, end in week
    ]
    return intersect(join(spans), [(lo, hi)])


def period_readings(rules: ConstraintRules, offset: int) -> Intervals:
    """Return the readings within any period, for a clock `offset` seconds ahead of UTC."""
    return normalise((_reading(rule.start, offset), _reading(rule.end, offset)) for rule in rules)


def _reading(bound: int | PeriodBound | None, offset: int) -> int:
    if not isinstance(bound, PeriodBound):
        raise TypeError("not a bound of a period")
    return bound.seconds if bound.offset is None else bound.seconds + offset
