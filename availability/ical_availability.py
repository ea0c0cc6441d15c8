"""Rules as iCalendar availability (RFC 7953 VAVAILABILITY), and back.

A list of rules becomes VAVAILABILITY components, of which the one with the smaller PRIORITY wins:

    9  the weekly time and open_recurring: AVAILABLE components
    7  replace_day: a component for the day, with its windows
    5  allow_period: components without AVAILABLE for the time outside of the periods
    3  open_period: a component that is AVAILABLE from its start to its end
    1  block_period: a component without AVAILABLE

block_holidays, block_recurring and the schedule of the resource have no equivalent.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from icalendar import Availability, Available, Calendar, Component, Timezone
from icalendar.prop import vRecur

from availability.core.constraints import (
    DAY_NAMES,
    OPENING_KINDS,
    ConstraintError,
    ConstraintRule,
    ConstraintRules,
    PeriodBound,
    details_of,
    is_closed_but_for_openings,
    open_week,
    parse_constraints,
    render_constraint,
    rules_of,
)
from availability.core.date_rules import DayHours, Recurrence
from availability.core.intervals import Span, normalise
from availability.core.zones import DAY, wall_to_instant
from common.ical.components import (
    UnreadableCalendar,
    all_values,
    date_values,
    duration_of,
    first_value,
    is_date,
    read_components,
    tzid_of,
    value_text,
)
from common.ical.rrule import read_at_most_daily_rule
from common.ical.timezones import resolve_tzid
from common.instants import wall_time

PRODUCT = "-//Scheduling and booking//Availability//EN"
CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WEEK = timedelta(days=7)
_FIRST_MONDAY = datetime(1970, 1, 5)
_EPOCH = datetime(1970, 1, 1)
WEEKLY, REPLACED, ALLOWED, OPENED, BLOCKED = 9, 7, 5, 3, 1
# Rules that PUT keeps, because the format can't contain them.
KEPT_KINDS = ("holidays", "recurring")


# --- Export ---------------------------------------------------------------------------------------
def availability_text(
    rules: ConstraintRules,
    zone: str,
    *,
    id: uuid.UUID,
    updated_at: datetime,
    schedule: str = "",
) -> str:
    """Return the rules as iCalendar, with CRLF. COMMENTs name what the format can't contain.

    schedule: the name of the resource's schedule, whose rules are not part of the text.
    """
    calendar = Calendar()
    calendar.add("PRODID", PRODUCT)
    calendar.add("VERSION", "2.0")
    if zone != "UTC":
        calendar.add_component(Timezone.from_tzid(zone))
    export = _Export(zone, id, updated_at)
    for component in export.components(rules, [*_omitted_rule_comments(rules, schedule)]):
        calendar.add_component(component)
    return calendar.to_ical().decode()


def _omitted_rule_comments(rules: ConstraintRules, schedule: str) -> Iterator[str]:
    if schedule:
        yield f"Not included: the schedule {schedule}"
    for rule in rules:
        if rule.kind in KEPT_KINDS and not rule.allow:
            ((name, values),) = render_constraint(rule).items()
            words = " ".join(f"{key}={value}" for key, value in values.items())
            yield f"Not included: {name} {words}"


class _Export:
    def __init__(self, zone: str, id: uuid.UUID, updated_at: datetime) -> None:
        self.zone, self.id, self.updated_at = zone, id, updated_at
        self.count = 0

    def components(self, rules: ConstraintRules, comments: list[str]) -> Iterator[Component]:
        base = self._availability(WEEKLY, None, None, "")
        for comment in comments:
            base.add("COMMENT", comment)
        for part in self._weekly(rules):
            base.add_component(part)
        yield base
        for rule in rules:
            if isinstance(rule.details, DayHours):
                yield self._day(rule, rule.details)
        allowed = rules_of(rules, "period", allow=True)
        for start, end in _gaps(allowed):
            yield self._availability(ALLOWED, start, end, "")
        for rule in rules_of(rules, "open_period", allow=True):
            opened = self._availability(OPENED, rule.start, rule.end, rule.label)
            opened.add_component(self._available(rule.start, rule.end))
            yield opened
        for rule in rules_of(rules, "period", allow=False):
            yield self._availability(BLOCKED, rule.start, rule.end, rule.label)

    def _weekly(self, rules: ConstraintRules) -> Iterator[Component]:
        if not is_closed_but_for_openings(rules):
            days_of: dict[tuple[int, int], list[int]] = {}
            for start, end in _cut_at_midnights(open_week(rules)):
                days_of.setdefault((start % DAY, end - start), []).append(start // DAY)
            for (start, lasts), days in days_of.items():
                first = _FIRST_MONDAY + timedelta(days=days[0], seconds=start)
                part = self._available(first, first + timedelta(seconds=lasts))
                part.add("RRULE", {"FREQ": "WEEKLY", "BYDAY": [CODES[day] for day in days]})
                yield part
        for recurrence in details_of(rules, "open_recurring"):
            first = _EPOCH + timedelta(seconds=recurrence.start)
            part = self._available(first, first + timedelta(seconds=recurrence.duration))
            part.add("RRULE", vRecur.from_ical(self._rrule(recurrence)))
            yield part

    def _rrule(self, recurrence: Recurrence) -> str:
        """Return the rule with UNTIL in UTC, as RFC 5545 asks of times with a zone."""
        rule = read_at_most_daily_rule(recurrence.rrule)
        if rule.until is None or rule.until_is_utc:
            return recurrence.rrule
        instant = wall_to_instant(rule.until, self.zone, gap="end")
        until = datetime.fromtimestamp(instant, UTC)
        parts = rule.parts | {"UNTIL": f"{until:%Y%m%dT%H%M%SZ}"}
        return ";".join(f"{name}={value}" for name, value in parts.items())

    def _day(self, rule: ConstraintRule, hours: DayHours) -> Component:
        midnight = _EPOCH + timedelta(seconds=hours.day)
        found = self._availability(REPLACED, midnight, midnight + timedelta(days=1), rule.label)
        for start, end in hours.windows:
            times = (midnight + timedelta(minutes=minute) for minute in (start, end))
            found.add_component(self._available(*times))
        return found

    def _availability(self, priority: int, start: Any, end: Any, summary: str) -> Component:
        found = self._component(Availability(), start, end)
        found.add("PRIORITY", priority)
        if summary:
            found.add("SUMMARY", summary)
        return found

    def _available(self, start: Any, end: Any) -> Component:
        return self._component(Available(), start, end)

    def _component(self, found: Component, start: Any, end: Any) -> Component:
        self.count += 1
        found.add("UID", f"{self.id}-{self.count}")
        found.add("DTSTAMP", self.updated_at.astimezone(UTC).replace(microsecond=0))
        for name, moment in (("DTSTART", start), ("DTEND", end)):
            if moment is not None:
                self._add_time(found, name, moment)
        return found

    def _add_time(self, found: Component, name: str, moment: datetime | PeriodBound) -> None:
        if isinstance(moment, PeriodBound):
            if moment.offset is not None:
                found.add(name, datetime.fromtimestamp(moment.seconds, UTC))
                return
            moment = _EPOCH + timedelta(seconds=moment.seconds)
        is_utc = self.zone == "UTC"
        zone = {} if is_utc else {"TZID": self.zone}
        found.add(name, moment.replace(tzinfo=UTC) if is_utc else moment, parameters=zone)


def _cut_at_midnights(week: Iterable[Span]) -> Iterator[Span]:
    """Cut what lasts longer than a day, except a whole week."""
    for start, end in week:
        while DAY < end - start < 7 * DAY:
            midnight = (start // DAY + 1) * DAY
            yield start, midnight
            start = midnight
        yield start, end


def _gaps(allowed: ConstraintRules) -> Iterator[tuple[PeriodBound | None, PeriodBound | None]]:
    """Yield the time outside of the periods; None: without end."""
    if not allowed:
        return
    periods = [(_checked_bound(rule.start), _checked_bound(rule.end)) for rule in allowed]
    # Bounds with an offset and without are compared by their number: this only orders them.
    bounds = {bound.seconds: bound for period in periods for bound in period}
    spans = normalise((start.seconds, end.seconds) for start, end in periods)
    yield None, bounds[spans[0][0]]
    for (_, end), (start, _) in pairwise(spans):
        yield bounds[end], bounds[start]
    yield bounds[spans[-1][1]], None


def _checked_bound(value: object) -> PeriodBound:
    if not isinstance(value, PeriodBound):
        raise TypeError("not a bound of a period")
    return value


# --- Import ---------------------------------------------------------------------------------------
class ParsedAvailability(NamedTuple):
    """constraints: of the API; not_read: sentences about what was left out."""

    constraints: list[dict[str, Any]]
    not_read: list[str]


class _Unreadable(ValueError):
    """A component has no equivalent among the rules."""


class _Block(NamedTuple):
    """A VAVAILABILITY. place: its number in the text; start, end: of the API, "" without one."""

    place: str
    component: Component
    start: str
    end: str
    parts: Sequence[Component]

    @property
    def rank(self) -> int:
        """The PRIORITY, of which the smallest wins; none or 0 is the largest (RFC 7953)."""
        found = first_value(self.component, "PRIORITY")
        return found if isinstance(found, int) and found > 0 else 10

    @property
    def is_base(self) -> bool:
        return bool(self.parts) and not (self.start and self.end)


def read_availability(text: str, zone: str, *, now: datetime) -> ParsedAvailability:
    """Return the rules of the text's VAVAILABILITYs. Raises UnreadableCalendar.

    Time that repeats each week and has begun by `now` becomes weekly hours.
    """
    calendars = read_components(text)
    found = [each for calendar in calendars for each in calendar.walk("VAVAILABILITY")]
    if not found:
        raise UnreadableCalendar("The text has no VAVAILABILITY.")
    return _Import(zone, wall_time(now, zone)).read(found)


class _Import:
    def __init__(self, zone: str, now: datetime) -> None:
        self.zone, self.now = zone, now
        self.rules: list[dict[str, Any]] = []
        self.not_read: list[str] = []

    def read(self, components: Sequence[Component]) -> ParsedAvailability:
        blocks = []
        for number, component in enumerate(components, 1):
            place = f"VAVAILABILITY {number}"
            try:
                times = self._bounds(component, needs_end=False)
            except _Unreadable as error:
                self.not_read.append(f"{place}: {error}")
                continue
            parts = component.walk("AVAILABLE")
            blocks.append(_Block(place, component, *times, parts))
        empty = [block for block in blocks if not (block.parts or block.start or block.end)]
        bases = [block for block in blocks if block.is_base or block in empty]
        base = bases[0] if bases else None
        weekly = self._read_base(base) if base else []
        for block in bases[1:]:
            self.not_read.append(f"{block.place}: only one can have no start or end.")
        self._read_exceptions([block for block in blocks if block not in bases], base)
        if base is None or (not weekly and not self._opens()):
            weekly = self._whole_week(is_open=base is None)
        return ParsedAvailability([*weekly, *self.rules], self.not_read)

    def _opens(self) -> bool:
        return any(kind in rule for rule in self.rules for kind in OPENING_KINDS)

    def _whole_week(self, *, is_open: bool) -> list[dict[str, Any]]:
        if not is_open:
            return [{"block_weekdays": {}}, {"block_weekends": {}}]
        return [{"allow_hours": {"start": 0, "end": 24}}] if self._opens() else []

    # --- Weekly time ---
    def _read_base(self, base: _Block) -> list[dict[str, Any]]:
        if base.start or base.end:
            self.not_read.append(f"{base.place}: its start or end; it applies at any time.")
        weekly: list[dict[str, Any]] = []
        for number, part in enumerate(base.parts, 1):
            place = f"{base.place}, AVAILABLE {number}"
            try:
                start, end = self._read_wall_times(part)
                if first_value(part, "RECURRENCE-ID") is not None:
                    raise _Unreadable("RECURRENCE-ID can't be expressed.")
                found = self._repeated(part, start, end)
                for rule in found:
                    (name,) = rule
                    self._check(rule)
                    (weekly if name.startswith("allow") else self.rules).append(rule)
                for added in date_values(part, "RDATE"):
                    self._add_rule("open_period", added, end - start)
                for left_out in date_values(part, "EXDATE"):
                    self._add_rule("block_period", left_out, end - start)
            except _Unreadable as error:
                self.not_read.append(f"{place}: {error}")
        return _without_duplicates(weekly)

    def _repeated(self, part: Component, start: datetime, end: datetime) -> list[dict[str, Any]]:
        rrules = all_values(part, "RRULE")
        if len(rrules) > 1:
            raise _Unreadable("only one RRULE can be read.")
        if not rrules:
            return [{"open_period": {"start": str(start), "end": str(end)}}]
        rrule = value_text(rrules[0]).upper()
        parts = dict(word.partition("=")[::2] for word in rrule.split(";"))
        days = _weekly_days(parts, start)
        days = days if start <= self.now else []
        if days and end - start == WEEK:
            return [{"allow_hours": {"start": 0, "end": 24}}]
        if days and _fits_into_a_day(start, end):
            hours = {
                "start": f"{start:%H:%M}",
                "end": "24:00" if _is_midnight(end) else f"{end:%H:%M}",
            }
            return [{"allow_day_and_time": {"day": DAY_NAMES[day], **hours}} for day in days]
        seconds = int((end - start).total_seconds())
        lasts = f"{seconds // 60} minutes" if seconds % 60 == 0 else f"{seconds} seconds"
        return [{"open_recurring": {"start": str(start), "duration": lasts, "rrule": rrule}}]

    def _add_rule(self, name: str, start: date, length: timedelta) -> None:
        if not isinstance(start, datetime):
            start = datetime.combine(start, datetime.min.time())
        if start.tzinfo is not None:
            start = start.astimezone(UTC)
        rule = {name: {"start": _api_time(start), "end": _api_time(start + length)}}
        self._check(rule)
        self.rules.append(rule)

    # --- Exceptions ---
    def _read_exceptions(self, blocks: Sequence[_Block], base: _Block | None) -> None:
        allowed = {"start": "1970-01-01 00:00:00", "end": "2199-12-31 00:00:00"}
        is_cut = False
        days = set()
        for block in blocks:
            try:
                if base and block.rank > base.rank:
                    raise _Unreadable(f"its PRIORITY is lower than that of {base.place}.")
                if not (block.start and block.end):
                    allowed |= {"start": block.end} if block.end else {"end": block.start}
                    is_cut = True
                    continue
                rule = self._exception(block)
                (name,) = rule
                if name == "replace_day" and rule[name]["date"] in days:
                    raise _Unreadable("another component replaces this day.")
                days.add(rule[name].get("date"))
                summary = " ".join(str(first_value(block.component, "SUMMARY") or "").split())
                if summary:
                    rule[name]["name"] = summary[:200]
                self._check(rule)
                self.rules.append(rule)
            except _Unreadable as error:
                self.not_read.append(f"{block.place}: {error}")
        if not is_cut:
            return
        try:
            self._check({"allow_period": allowed})
            self.rules.append({"allow_period": allowed})
        except _Unreadable as error:
            self.not_read.append(f"The first start and the last end: {error}")

    def _exception(self, block: _Block) -> dict[str, Any]:
        bounds = {"start": block.start, "end": block.end}
        if not block.parts:
            return {"block_period": bounds}
        spans = []
        for part in block.parts:
            if any(first_value(part, name) is not None for name in ("RRULE", "RDATE", "EXDATE")):
                raise _Unreadable("it has a start, an end and repeated time.")
            spans.append(self._bounds(part, needs_end=True))
        if spans == [(block.start, block.end)]:
            return {"open_period": bounds}
        windows = [_window(span, block) for span in spans]
        return {"replace_day": {"date": block.start[:10], "windows": windows}}

    # --- Times ---
    def _bounds(self, component: Component, *, needs_end: bool) -> tuple[str, str]:
        """Return start and end as the API has them, "" without one."""
        start = self._time(component, "DTSTART")
        end = self._time(component, "DTEND")
        duration = first_value(component, "DURATION")
        if start is not None and end is None and duration is not None:
            end = start + duration_of(duration)
        if needs_end and (start is None or end is None):
            raise _Unreadable("it has no start or no end.")
        return _api_time(start) if start else "", _api_time(end) if end else ""

    def _read_wall_times(self, part: Component) -> tuple[datetime, datetime]:
        start, end = (
            text and datetime.fromisoformat(text) for text in self._bounds(part, needs_end=True)
        )
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            raise _Unreadable("it has no start or no end.")
        if start.tzinfo or end.tzinfo:
            raise _Unreadable(f"repeated time must be in {self.zone}.")
        if end <= start:
            raise _Unreadable("its end is not after its start.")
        return start, end

    def _time(self, component: Component, name: str) -> datetime | None:
        """Return the time as a reading of the resource's clock, or as an instant in UTC."""
        value = first_value(component, name)
        if value is None:
            return None
        moment = value.dt
        if is_date(moment):
            return datetime.combine(moment, datetime.min.time())
        if moment.tzinfo is not None:
            return moment.replace(tzinfo=None) if self.zone == "UTC" else moment.astimezone(UTC)
        named = tzid_of(value)
        if named and (resolve_tzid(named) or named) != self.zone:
            raise _Unreadable(f"the time zone {named:.60} is not {self.zone}.")
        return moment

    def _check(self, rule: dict[str, Any]) -> None:
        try:
            parse_constraints([rule])
        except ConstraintError as error:
            raise _Unreadable(
                " ".join(text for found in error.errors.values() for text in found)
            ) from error


def _weekly_days(parts: dict[str, str], start: datetime) -> list[int]:
    """Return the weekdays of a rule that repeats each week or day without end; else none."""
    if set(parts) - {"FREQ", "BYDAY", "INTERVAL", "WKST"} or parts.get("INTERVAL", "1") != "1":
        return []
    if parts.get("FREQ") == "DAILY" and "BYDAY" not in parts:
        return list(range(7))
    if parts.get("FREQ") != "WEEKLY":
        return []
    codes = parts.get("BYDAY", CODES[start.weekday()]).split(",")
    return [CODES.index(code) for code in codes] if set(codes) <= set(CODES) else []


def _fits_into_a_day(start: datetime, end: datetime) -> bool:
    is_minutes = not (start.second or end.second or start.microsecond or end.microsecond)
    lasts = end - start
    return is_minutes and (
        lasts < timedelta(days=1) or (lasts == timedelta(days=1) and _is_midnight(start))
    )


def _is_midnight(moment: datetime) -> bool:
    return moment.time() == datetime.min.time()


def _window(span: tuple[str, str], block: _Block) -> dict[str, str]:
    midnight = block.start.endswith(" 00:00:00") and datetime.fromisoformat(block.start)
    if not midnight or block.end != str(midnight + timedelta(days=1)):
        raise _Unreadable("only a whole day can have hours of its own.")
    start, end = span
    is_inside = (
        block.start <= start < end <= block.end and start.endswith(":00") and end.endswith(":00")
    )
    if not is_inside:
        raise _Unreadable("its hours must be whole minutes of the day.")
    return {"start": start[11:16], "end": "24:00" if end == block.end else end[11:16]}


def _api_time(moment: datetime) -> str:
    """Return a reading as 2026-12-24 00:00:00, an instant with its offset."""
    moment = moment.replace(microsecond=0)
    return moment.isoformat() if moment.tzinfo else str(moment)


def _without_duplicates(rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules without duplicates. A rule that opens the whole week replaces all others."""
    found = [rule for index, rule in enumerate(rules) if rule not in rules[:index]]
    whole = [rule for rule in found if "allow_hours" in rule]
    return whole or found
