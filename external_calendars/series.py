"""What recurs, laid out: rules, dates, exceptions and overrides on the series' own wall clock.

The library puts them together. It is given readings of one clock (naive) and no rule, but the
starts that rules.py found: so zones and bounds are ours, and the rest is RFC 5545 as it knows it.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any, NamedTuple

from icalendar import Component
from recurring_ical_events import EventAdapter, Occurrence, Series

from external_calendars.clocks import UTC_CLOCK, Clock, Clocks
from external_calendars.components import (
    Unreadable,
    all_of,
    first_of,
    is_whole_day,
    length_of,
    text_of,
    version_of,
    zone_of,
)
from external_calendars.rules import Rule, starts

MOST_OCCURRENCES = 5000
# Overrides that say "this and all that follow": each is asked about each occurrence.
MOST_TURNS = 100
# How far outside of the window an occurrence may begin, or be moved from, that reaches into it.
FARTHEST = timedelta(days=3660)
DAY = timedelta(days=1)
REPEATS = ("RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID")

Window = tuple[datetime, datetime]


class Stretch(NamedTuple):
    """When a component takes place once: instants, and their dates where it is of whole days."""

    component: Component
    start: datetime
    end: datetime
    days: tuple[date, date] | None


class Timing:
    """When one VEVENT takes place by its own words, before anything repeats it.

    start, end: as written, the end exclusive, never before the start. clock: whose reading they
    are. elapsed: its length, where it says so in hours and minutes that no clock change stretches.
    """

    def __init__(self, component: Component, clocks: Clocks) -> None:
        written = first_of(component, "DTSTART")
        self.component = component
        self.clock: Clock = _clock_of(written, written.dt, clocks)
        self.start = _plain(written.dt)
        self.elapsed: timedelta | None = None
        self.end = max(self._read_end(clocks), self.start)

    def _read_end(self, clocks: Clocks) -> date:
        written = first_of(self.component, "DTEND")
        if written is not None:
            return self._match(_on(self.clock, written, written.dt, clocks))
        length = first_of(self.component, "DURATION")
        if length is None:
            return self.start + DAY if self.is_whole_days else self.start
        span = length_of(length)
        if self.is_whole_days:
            return self.start + max(span, DAY)
        if span % DAY:
            self.elapsed = span
        return self.start + span

    def _match(self, end: date) -> date:
        """An end of the start's kind. Many write whole days that end on the day they begin."""
        if not self.is_whole_days:
            return end if isinstance(end, datetime) else datetime.combine(end, time())
        if isinstance(end, datetime):
            end = end.date() + (DAY if end.time() != time() else timedelta())
        return end + DAY if end == self.start else end

    @property
    def is_whole_days(self) -> bool:
        return is_whole_day(self.start)

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def at(self, start: date, end: date) -> Stretch:
        """That of an occurrence with these readings. Raises OverflowError."""
        if is_whole_day(start):
            days = (start, end)
            instants = [self.clock.instant(datetime.combine(day, time())) for day in days]
            return Stretch(self.component, instants[0], instants[1], days)
        begins = self.clock.instant(start)
        if self.elapsed is not None and end - start == self.length:
            return Stretch(self.component, begins, begins + self.elapsed, None)
        ends = self.clock.instant(end)
        # Both in one gap of the clock: it lasts as long as it would have.
        return Stretch(
            self.component, begins, ends if ends > begins else begins + (end - start), None
        )


def _plain(moment: date) -> date:
    return moment.replace(tzinfo=None) if isinstance(moment, datetime) else moment


def _clock_of(value: Any, moment: date, clocks: Clocks) -> Clock:
    if is_whole_day(moment):
        return clocks.days
    return clocks.of(zone_of(value)) if moment.tzinfo is None else UTC_CLOCK


def _on(clock: Clock, value: Any, moment: date, clocks: Clocks) -> date:
    """A date or time of a property as the clock shows it."""
    own = _clock_of(value, moment, clocks)
    if is_whole_day(moment) or own == clock:
        return _plain(moment)
    return clock.wall(own.instant(_plain(moment)))


def recurs(components: Sequence[Component]) -> bool:
    return len(components) > 1 or any(name in components[0] for name in REPEATS)


def lay_out(components: Sequence[Component], clocks: Clocks, window: Window) -> Iterator[Stretch]:
    """All that the components of one UID come to, in or near the window.

    Raises Unreadable for a rule with more than 5,000 starts there, and whatever the library raises.
    """
    first, *others = _masters(components)
    overrides = [one for one in components if "RECURRENCE-ID" in one and one is not first]
    yield from _lay_out([first, *overrides], clocks, window)
    for other in others:
        yield from _lay_out([other], clocks, window)


def _masters(components: Sequence[Component]) -> list[Component]:
    """What is no override, in its newest version; some give several events one UID. Where there is
    none, the first of all leads."""
    masters = [one for one in components if "RECURRENCE-ID" not in one]
    newest = max((version_of(one) for one in masters), default=0)
    return [one for one in masters if version_of(one) == newest] or [components[0]]


def _lay_out(components: Sequence[Component], clocks: Clocks, window: Window) -> Iterator[Stretch]:
    timings = [Timing(component, clocks) for component in components]
    if not recurs(components):
        yield timings[0].at(timings[0].start, timings[0].end)
        return
    leader = _Leader(timings[0], timings, clocks, window)
    series = _Series([_Adapter(timing, leader) for timing in timings])
    if len(series.this_and_future) > MOST_TURNS:
        raise Unreadable("It was changed from one point on too often.")
    yield from series.stretches(*leader.span)


class _Leader:
    """The component whose clock is the series', and what of time is to be looked at on it.

    span: readings, with a day to spare. reach: so far before and behind them an occurrence may
    have been that ends up within.
    """

    def __init__(
        self, timing: Timing, timings: Sequence[Timing], clocks: Clocks, window: Window
    ) -> None:
        self.timing, self.clocks, self.clock = timing, clocks, timing.clock
        since, before = (self.clock.wall(moment) for moment in window)
        self.span = since - DAY, before + DAY
        shifts = [abs(self.shift_of(one)) + one.length for one in timings]
        self.reach = min(max(shifts), FARTHEST) + DAY

    def reading(self, value: Any, moment: date) -> date:
        """A date or time of a property, as the series counts: of its kind, on its clock."""
        start = self.timing.start
        reading = _on(self.clock, value, moment, self.clocks)
        if is_whole_day(start) and isinstance(reading, datetime):
            return reading.date()
        if isinstance(start, datetime) and is_whole_day(reading):
            return datetime.combine(reading, start.time())
        return reading

    def shift_of(self, timing: Timing) -> timedelta:
        """How far an override moves what it overrides."""
        written = first_of(timing.component, "RECURRENCE-ID")
        if written is None:
            return timedelta()
        return _whole(self.start_of(timing)) - _whole(self.reading(written, written.dt))

    def start_of(self, timing: Timing) -> date:
        if timing.is_whole_days or timing.clock == self.clock:
            return timing.start
        return self.clock.wall(timing.clock.instant(timing.start))

    def starts(self) -> list[datetime]:
        """What the rules come to."""
        first = _whole(self.timing.start)
        since, before = self.span[0] - self.reach, self.span[1] + self.reach
        found: set[datetime] = set()
        for value in all_of(self.timing.component, "RRULE"):
            rule = Rule(text_of(value))
            until = rule.until
            if until is not None and rule.until_is_utc and not self.timing.is_whole_days:
                until = self.clock.wall(UTC_CLOCK.instant(until))
            few = starts(rule, first, since=since, before=before, until=until)
            found.update(islice(few, MOST_OCCURRENCES + 1))
        if len(found) > MOST_OCCURRENCES:
            raise Unreadable("It takes place too often.")
        return sorted(found)


def _whole(moment: date) -> datetime:
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time())


class _Adapter(EventAdapter):
    """What the library asks of a VEVENT, answered in readings of the series' clock."""

    def __init__(self, timing: Timing, leader: _Leader) -> None:
        super().__init__(timing.component)
        self.timing, self.leader = timing, leader

    @property
    def uid(self) -> str:
        return "one"

    @property
    def raw_start(self) -> date:
        return self.leader.start_of(self.timing)

    @property
    def raw_end(self) -> date:
        return self.raw_start + self.timing.length

    @property
    def recurrence_ids(self) -> tuple[datetime, ...]:
        written = first_of(self._component, "RECURRENCE-ID")
        return () if written is None else (_whole(self.leader.reading(written, written.dt)),)

    @property
    def move_recurrences_by(self) -> timedelta:
        return self.leader.shift_of(self.timing) if self.this_and_future else timedelta()

    @property
    def extend_query_span_by(self) -> tuple[timedelta, timedelta]:
        return self.leader.reach, self.leader.reach

    @property
    def rrules(self) -> set[str]:
        return set()

    @property
    def rdates(self) -> list[Any]:
        return [*self.leader.starts(), *self._dates("RDATE")]

    @property
    def exdates(self) -> list[date]:
        found = []
        for value in all_of(self._component, "EXDATE"):
            for one in value.dts:
                # A date takes out all of its day.
                is_day = is_whole_day(one.dt)
                found.append(one.dt if is_day else self.leader.reading(value, one.dt))
        return found

    def _dates(self, name: str) -> Iterator[Any]:
        for value in all_of(self._component, name):
            for one in value.dts:
                if not isinstance(one.dt, tuple):
                    yield self.leader.reading(value, one.dt)
                    continue
                begin, end = one.dt
                start = self.leader.reading(value, begin)
                length = end if isinstance(end, timedelta) else end - begin
                yield start, start + length


class _Occurrence(Occurrence):
    """`is_own`: the component's own time, and not one that a rule gave it."""

    def __init__(
        self, adapter: _Adapter, start: date | None = None, end: date | None = None
    ) -> None:
        super().__init__(adapter, start, end)
        self.adapter, self.is_own = adapter, start is None

    def stretch(self) -> Stretch:
        timing, leader = self.adapter.timing, self.adapter.leader.timing
        if self.is_own:
            return timing.at(timing.start, timing.end)
        # Counted on the clock of the series, told in the words of whichever component applies.
        found = leader.at(self.start, self.end)
        return found._replace(component=timing.component)


class _Series(Series):
    def occurrence(
        self, adapter: _Adapter, start: date | None = None, end: date | None = None
    ) -> _Occurrence:
        return _Occurrence(adapter, start, end)

    def stretches(self, since: datetime, before: datetime) -> Iterator[Stretch]:
        for occurrence in self.between(since, before):
            yield occurrence.stretch()
