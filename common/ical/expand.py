"""Expand recurring events: rules, dates, exceptions and overrides (RFC 5545, section 3.8.5).

A series compares its times as readings of the master's wall clock: naive datetimes, midnight for
all-day events. Only the window and its surroundings are expanded.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any, NamedTuple

from icalendar import Component

from common.ical.components import (
    UnreadableCalendar,
    all_values,
    duration_of,
    first_value,
    is_date,
    sequence_of,
    tzid_of,
    value_text,
)
from common.ical.rrule import RecurrenceRule, rule_starts
from common.ical.timezones import UTC_CLOCK, Clock, ClocksByTzid

MAX_OCCURRENCES = 5000
# Limit of the search outside the window for occurrences that last, or are moved, into it.
MAX_YEARS_AHEAD = timedelta(days=3660)
DAY = timedelta(days=1)
REPEATS = ("RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID")

Window = tuple[datetime, datetime]


class OccurrenceSpan(NamedTuple):
    """One occurrence of a component, in aware UTC. days: its dates (end exclusive) if all-day."""

    component: Component
    start: datetime
    end: datetime
    days: tuple[date, date] | None


class EventTiming:
    """The time of one VEVENT without its recurrence.

    start, end: dates or naive datetimes on `clock`; the end is exclusive and not before the start.
    elapsed: the length if a DURATION has hours or minutes, which clock changes do not stretch.
    """

    def __init__(self, component: Component, clocks: ClocksByTzid) -> None:
        written = first_value(component, "DTSTART")
        self.component = component
        self.clock: Clock = _clock_of(written, written.dt, clocks)
        self.start = _without_zone(written.dt)
        self.elapsed: timedelta | None = None
        self.end = max(self._read_end(clocks), self.start)

    def _read_end(self, clocks: ClocksByTzid) -> date:
        written = first_value(self.component, "DTEND")
        if written is not None:
            return self._match(_in_clock(self.clock, written, written.dt, clocks))
        length = first_value(self.component, "DURATION")
        if length is None:
            return self.start + DAY if self.is_whole_days else self.start
        span = duration_of(length)
        if self.is_whole_days:
            return self.start + max(span, DAY)
        if span % DAY:
            self.elapsed = span
        return self.start + span

    def _match(self, end: date) -> date:
        """Convert `end` to the start's type; some calendars end all-day events on the first day."""
        if not self.is_whole_days:
            return end if isinstance(end, datetime) else datetime.combine(end, time())
        if isinstance(end, datetime):
            end = end.date() + (DAY if end.time() != time() else timedelta())
        return end + DAY if end == self.start else end

    @property
    def is_whole_days(self) -> bool:
        return is_date(self.start)

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def at(self, start: date, end: date) -> OccurrenceSpan:
        """Return the occurrence between two readings of the clock. Raises OverflowError."""
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            days = (start, end)
            instants = [self.clock.instant(datetime.combine(day, time())) for day in days]
            return OccurrenceSpan(self.component, instants[0], instants[1], days)
        begins = self.clock.instant(start)
        if self.elapsed is not None and end - start == self.length:
            return OccurrenceSpan(self.component, begins, begins + self.elapsed, None)
        ends = self.clock.instant(end)
        # Both readings are in one gap of the clock: keep the length between the readings.
        return OccurrenceSpan(
            self.component, begins, ends if ends > begins else begins + (end - start), None
        )


def _without_zone(moment: date) -> date:
    return moment.replace(tzinfo=None) if isinstance(moment, datetime) else moment


def _clock_of(value: Any, moment: date, clocks: ClocksByTzid) -> Clock:
    if not isinstance(moment, datetime):
        return clocks.days
    return clocks.of(tzid_of(value)) if moment.tzinfo is None else UTC_CLOCK


def _in_clock(clock: Clock, value: Any, moment: date, clocks: ClocksByTzid) -> date:
    """Convert a property's date or time to a reading of `clock`."""
    own, plain = _clock_of(value, moment, clocks), _without_zone(moment)
    if not isinstance(plain, datetime) or own == clock:
        return plain
    return clock.wall(own.instant(plain))


def has_recurrence(components: Sequence[Component]) -> bool:
    return len(components) > 1 or any(name in components[0] for name in REPEATS)


def expand_series(
    components: Sequence[Component], clocks: ClocksByTzid, window: Window
) -> Iterator[OccurrenceSpan]:
    """Yield the occurrences of the components of one UID in or near the window.

    Raises UnreadableCalendar for more than 5,000 starts there, RecurrenceRuleError, OverflowError.
    """
    first, *others = _masters(components)
    overrides = [
        component
        for component in components
        if "RECURRENCE-ID" in component and component is not first
    ]
    yield from _expand_series([first, *overrides], clocks, window)
    for other in others:
        yield from _expand_series([other], clocks, window)


def _masters(components: Sequence[Component]) -> list[Component]:
    """Return the newest masters (events may share a UID); without any, the first component."""
    masters = [component for component in components if "RECURRENCE-ID" not in component]
    newest = max((sequence_of(master) for master in masters), default=0)
    return [master for master in masters if sequence_of(master) == newest] or [components[0]]


def _expand_series(
    components: Sequence[Component], clocks: ClocksByTzid, window: Window
) -> Iterator[OccurrenceSpan]:
    timings = [EventTiming(component, clocks) for component in components]
    if has_recurrence(components):
        yield from _Series(timings, clocks, window).occurrences()
    else:
        yield timings[0].at(timings[0].start, timings[0].end)


class _Series:
    """A master and its overrides; without a master, the first override determines the clock.

    span: the window plus a day on both sides. reach: how far outside the span a start can lie if
    its occurrence lasts, or is moved, into the span. overrides: keyed by the start that each
    replaces.
    """

    def __init__(
        self, timings: Sequence[EventTiming], clocks: ClocksByTzid, window: Window
    ) -> None:
        self.master, self.clocks, self.clock = timings[0], clocks, timings[0].clock
        since, before = (self.clock.wall(moment) for moment in window)
        self.span = since - DAY, before + DAY
        shifts = [abs(self._shift_of(timing)) + timing.length for timing in timings]
        self.reach = min(max(shifts), MAX_YEARS_AHEAD) + DAY
        self.overrides: dict[datetime, EventTiming] = {}
        for timing in timings:
            replaced = self._replaced_by(timing)
            if replaced is None:
                continue
            known = self.overrides.get(replaced)
            # The newest of several versions of an override applies.
            if known is None or sequence_of(known.component) < sequence_of(timing.component):
                self.overrides[replaced] = timing

    def occurrences(self) -> Iterator[OccurrenceSpan]:
        """Yield the occurrences that overlap the span, unordered. Raises as `expand_series`."""
        starts, excluded = self._starts(), self._exdates()
        # A THISANDFUTURE override also applies to later starts, up to the next such override.
        turns = sorted(at for at, timing in self.overrides.items() if _is_this_and_future(timing))
        for start, own_length in starts.items():
            if start in self.overrides or {start, start.date()} & excluded:
                continue
            place = bisect_left(turns, start)
            timing = self.overrides[turns[place - 1]] if place else self.master
            begin = start + self._shift_of(timing)
            end = begin + (timing.length if own_length is None else own_length)
            if self._is_near(begin, end):
                # Times on the clock of the series; texts from the component that applies.
                found = self.master.at(self._as_kind_of_start(begin), self._as_kind_of_start(end))
                yield found._replace(component=timing.component)
        for replaced, timing in self.overrides.items():
            begin = _as_datetime(self._start_on_series_clock(timing))
            if (
                self._is_near(begin, begin + timing.length)
                and not {replaced, replaced.date()} & excluded
                and not self._is_obsolete(timing, replaced in starts)
            ):
                yield timing.at(timing.start, timing.end)

    def _is_near(self, begin: datetime, end: datetime) -> bool:
        return begin < self.span[1] and end > self.span[0]

    def _is_obsolete(self, timing: EventTiming, has_start: bool) -> bool:
        """Return whether the override copies an older master and replaces no start of this one."""
        repeats = any(name in timing.component for name in ("RRULE", "RDATE", "EXDATE"))
        is_older = sequence_of(timing.component) < sequence_of(self.master.component)
        return repeats and is_older and not has_start

    def _starts(self) -> dict[datetime, timedelta | None]:
        """Return start -> own length (None: the master's) from DTSTART, RRULE and RDATE."""
        if self._replaced_by(self.master) is not None:
            return {}
        since, before = self.span[0] - self.reach, self.span[1] + self.reach
        starts = dict.fromkeys([_as_datetime(self.master.start), *self._rule_starts(since, before)])
        for value in all_values(self.master.component, "RDATE"):
            for moment in value.dts:
                begin, length = moment.dt if isinstance(moment.dt, tuple) else (moment.dt, None)
                if length is not None and not isinstance(length, timedelta):
                    length -= begin
                starts[self._reading(value, begin)] = length
        return {start: length for start, length in starts.items() if since <= start <= before}

    def _rule_starts(self, since: datetime, before: datetime) -> set[datetime]:
        first = _as_datetime(self.master.start)
        starts: set[datetime] = set()
        for value in all_values(self.master.component, "RRULE"):
            rule = RecurrenceRule(value_text(value))
            until = (
                rule.until
                if self.master.is_whole_days
                else rule.until_as_wall_time(self.clock.wall)
            )
            few = rule_starts(rule, first, since=since, before=before, until=until)
            starts.update(islice(few, MAX_OCCURRENCES + 1))
        if len(starts) > MAX_OCCURRENCES:
            raise UnreadableCalendar("The event has too many occurrences.")
        return starts

    def _exdates(self) -> set[date]:
        """Return the excluded starts; a date excludes all starts on that day."""
        return {
            moment.dt if is_date(moment.dt) else self._reading(value, moment.dt)
            for value in all_values(self.master.component, "EXDATE")
            for moment in value.dts
        }

    def _replaced_by(self, timing: EventTiming) -> datetime | None:
        """Return the start that an override replaces; None for the master."""
        written = first_value(timing.component, "RECURRENCE-ID")
        return None if written is None else self._reading(written, written.dt)

    def _shift_of(self, timing: EventTiming) -> timedelta:
        """Return how far an override moves the start that it replaces."""
        replaced = self._replaced_by(timing)
        if replaced is None:
            return timedelta()
        return _as_datetime(self._start_on_series_clock(timing)) - replaced

    def _start_on_series_clock(self, timing: EventTiming) -> date:
        if not isinstance(timing.start, datetime) or timing.clock == self.clock:
            return timing.start
        return self.clock.wall(timing.clock.instant(timing.start))

    def _reading(self, value: Any, moment: date) -> datetime:
        """Return a property's value on the series' clock; a date gets the master's time of day."""
        reading = _in_clock(self.clock, value, moment, self.clocks)
        if isinstance(reading, datetime):
            return _as_datetime(self._as_kind_of_start(reading))
        own = self.master.start
        return datetime.combine(reading, own.time() if isinstance(own, datetime) else time())

    def _as_kind_of_start(self, moment: datetime) -> date:
        return moment.date() if self.master.is_whole_days else moment


def _is_this_and_future(timing: EventTiming) -> bool:
    return first_value(timing.component, "RECURRENCE-ID").params.get("RANGE") == "THISANDFUTURE"


def _as_datetime(moment: date) -> datetime:
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time())
