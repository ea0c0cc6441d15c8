"""Expand recurring events: rules, dates, exceptions and overrides (RFC 5545, section 3.8.5).

All times of a series are compared as readings of the wall clock of its master: naive datetimes,
midnight for all-day events. Only the window and its surroundings are expanded.
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
# How far outside of the window an occurrence may begin, or be moved from, that reaches into it.
MAX_YEARS_AHEAD = timedelta(days=3660)
DAY = timedelta(days=1)
REPEATS = ("RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID")

Window = tuple[datetime, datetime]


class OccurrenceSpan(NamedTuple):
    """One occurrence of a component: instants, and dates if it is all-day."""

    component: Component
    start: datetime
    end: datetime
    days: tuple[date, date] | None


class EventTiming:
    """The time of one VEVENT, before any recurrence.

    start, end: as written, the end exclusive, never before the start. clock: the clock of these
    readings. elapsed: the length, if given in hours and minutes, which clock changes do not
    stretch.
    """

    def __init__(self, component: Component, clocks: ClocksByTzid) -> None:
        written = first_value(component, "DTSTART")
        self.component = component
        self.clock: Clock = _clock_of(written, written.dt, clocks)
        self.start = _plain(written.dt)
        self.elapsed: timedelta | None = None
        self.end = max(self._read_end(clocks), self.start)

    def _read_end(self, clocks: ClocksByTzid) -> date:
        written = first_value(self.component, "DTEND")
        if written is not None:
            return self._match(_on(self.clock, written, written.dt, clocks))
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
        """The end in the kind of the start. Many calendars write all-day events that end on their
        first day.
        """
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
        """That of an occurrence with these readings. Raises OverflowError."""
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            days = (start, end)
            instants = [self.clock.instant(datetime.combine(day, time())) for day in days]
            return OccurrenceSpan(self.component, instants[0], instants[1], days)
        begins = self.clock.instant(start)
        if self.elapsed is not None and end - start == self.length:
            return OccurrenceSpan(self.component, begins, begins + self.elapsed, None)
        ends = self.clock.instant(end)
        # Both in one gap of the clock: it lasts as long as it would have.
        return OccurrenceSpan(
            self.component, begins, ends if ends > begins else begins + (end - start), None
        )


def _plain(moment: date) -> date:
    return moment.replace(tzinfo=None) if isinstance(moment, datetime) else moment


def _clock_of(value: Any, moment: date, clocks: ClocksByTzid) -> Clock:
    if not isinstance(moment, datetime):
        return clocks.days
    return clocks.of(tzid_of(value)) if moment.tzinfo is None else UTC_CLOCK


def _on(clock: Clock, value: Any, moment: date, clocks: ClocksByTzid) -> date:
    """A date or time of a property as the clock shows it."""
    own, plain = _clock_of(value, moment, clocks), _plain(moment)
    if not isinstance(plain, datetime) or own == clock:
        return plain
    return clock.wall(own.instant(plain))


def has_recurrence(components: Sequence[Component]) -> bool:
    return len(components) > 1 or any(name in components[0] for name in REPEATS)


def expand_series(
    components: Sequence[Component], clocks: ClocksByTzid, window: Window
) -> Iterator[OccurrenceSpan]:
    """The occurrences of the components of one UID, in or near the window.

    Raises UnreadableCalendar for rules with more than 5,000 starts there, RecurrenceRuleError,
    OverflowError.
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
    """The newest version of the components that are not overrides; several events may share a UID.

    Without any, the first component.
    """
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
    """A master with its overrides; where the text has overrides only, the first lends its clock.

    span: what is looked at, with a day to spare. reach: so far before and behind it an occurrence
    may begin, or be moved from, that ends up within. overrides: by the start that each replaces.
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
            # Of several versions of one override the newest counts.
            if known is None or sequence_of(known.component) < sequence_of(timing.component):
                self.overrides[replaced] = timing

    def occurrences(self) -> Iterator[OccurrenceSpan]:
        """All that end up in the span, in no order. Raises as `expand_series`."""
        starts, excluded = self._starts(), self._exdates()
        # What says THISANDFUTURE holds for the starts behind its own, up to the next that does.
        turns = sorted(at for at, timing in self.overrides.items() if _is_turn(timing))
        for start, own_length in starts.items():
            if start in self.overrides or {start, start.date()} & excluded:
                continue
            place = bisect_left(turns, start)
            timing = self.overrides[turns[place - 1]] if place else self.master
            begin = start + self._shift_of(timing)
            end = begin + (timing.length if own_length is None else own_length)
            if self._is_near(begin, end):
                # Counted on the clock of the series, told in the words of what applies.
                found = self.master.at(self._of_own_kind(begin), self._of_own_kind(end))
                yield found._replace(component=timing.component)
        for replaced, timing in self.overrides.items():
            begin = _midnight(self._start_of(timing))
            if (
                self._is_near(begin, begin + timing.length)
                and not {replaced, replaced.date()} & excluded
                and not self._is_obsolete(timing, replaced in starts)
            ):
                yield timing.at(timing.start, timing.end)

    def _is_near(self, begin: datetime, end: datetime) -> bool:
        return begin < self.span[1] and end > self.span[0]

    def _is_obsolete(self, timing: EventTiming, has_start: bool) -> bool:
        """A copy of an older master: it repeats as that did, and replaces nothing of this one."""
        repeats = any(name in timing.component for name in ("RRULE", "RDATE", "EXDATE"))
        is_older = sequence_of(timing.component) < sequence_of(self.master.component)
        return repeats and is_older and not has_start

    def _starts(self) -> dict[datetime, timedelta | None]:
        """By each start of DTSTART, rules and RDATEs in reach its length, if it has one of its
        own."""
        if self._replaced_by(self.master) is not None:
            return {}
        since, before = self.span[0] - self.reach, self.span[1] + self.reach
        found = dict.fromkeys([_midnight(self.master.start), *self._rule_starts(since, before)])
        for value in all_values(self.master.component, "RDATE"):
            for moment in value.dts:
                begin, length = moment.dt if isinstance(moment.dt, tuple) else (moment.dt, None)
                if length is not None and not isinstance(length, timedelta):
                    length -= begin
                found[self._reading(value, begin)] = length
        return {start: length for start, length in found.items() if since <= start <= before}

    def _rule_starts(self, since: datetime, before: datetime) -> set[datetime]:
        first = _midnight(self.master.start)
        found: set[datetime] = set()
        for value in all_values(self.master.component, "RRULE"):
            rule = RecurrenceRule(value_text(value))
            until = rule.until if self.master.is_whole_days else rule.last_start(self.clock.wall)
            few = rule_starts(rule, first, since=since, before=before, until=until)
            found.update(islice(few, MAX_OCCURRENCES + 1))
        if len(found) > MAX_OCCURRENCES:
            raise UnreadableCalendar("The event has too many occurrences.")
        return found

    def _exdates(self) -> set[date]:
        """The starts that are taken out; a date takes out all of its day."""
        return {
            moment.dt if is_date(moment.dt) else self._reading(value, moment.dt)
            for value in all_values(self.master.component, "EXDATE")
            for moment in value.dts
        }

    def _replaced_by(self, timing: EventTiming) -> datetime | None:
        """The start that an override replaces; None for the master."""
        written = first_value(timing.component, "RECURRENCE-ID")
        return None if written is None else self._reading(written, written.dt)

    def _shift_of(self, timing: EventTiming) -> timedelta:
        """How far an override moves what it replaces."""
        replaced = self._replaced_by(timing)
        if replaced is None:
            return timedelta()
        return _midnight(self._start_of(timing)) - replaced

    def _start_of(self, timing: EventTiming) -> date:
        if not isinstance(timing.start, datetime) or timing.clock == self.clock:
            return timing.start
        return self.clock.wall(timing.clock.instant(timing.start))

    def _reading(self, value: Any, moment: date) -> datetime:
        """A date or time of a property on the clock of the series; a date among times is the one
        of that day."""
        reading = _on(self.clock, value, moment, self.clocks)
        if isinstance(reading, datetime):
            return _midnight(self._of_own_kind(reading))
        own = self.master.start
        return datetime.combine(reading, own.time() if isinstance(own, datetime) else time())

    def _of_own_kind(self, moment: datetime) -> date:
        return moment.date() if self.master.is_whole_days else moment


def _is_turn(timing: EventTiming) -> bool:
    return first_value(timing.component, "RECURRENCE-ID").params.get("RANGE") == "THISANDFUTURE"


def _midnight(moment: date) -> datetime:
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time())
