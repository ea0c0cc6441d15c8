"""Wall clocks of the times in an iCalendar text (RFC 5545, 3.2.19 and 3.6.5).

A clock converts a reading (a naive datetime) to an instant (aware UTC) and back. A reading inside a
gap becomes the gap's end, a repeated reading the first instant.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, Protocol

from icalendar import Component
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from common.ical.components import all_values, date_values, first_value, value_text
from common.ical.rrule import RecurrenceRule, RecurrenceRuleError, rule_starts
from common.time.instants import ZONES, wall_time, wall_to_utc_or_gap_end

# Limit of clock changes of one zone that a text defines, around the window.
MAX_CHANGES = 1000
# Zone rules are expanded from this long before the window, to know the offset at its start.
YEARS_BEFORE = timedelta(days=800)

_ZONES = {name.casefold(): name for name in ZONES}
_WINDOWS = {name.casefold(): place for name, place in WINDOWS_TO_OLSON.items()}


class Clock(Protocol):
    def instant(self, wall: datetime) -> datetime:
        """Return the first instant at which the clock shows `wall`. Raises OverflowError."""

    def wall(self, instant: datetime) -> datetime:
        """Return the clock's reading at the instant. Raises OverflowError."""


@dataclass(frozen=True)
class ZoneClock:
    name: str

    def instant(self, wall: datetime) -> datetime:
        return wall_to_utc_or_gap_end(wall, self.name)

    def wall(self, instant: datetime) -> datetime:
        return wall_time(instant, self.name)


class OffsetChange(NamedTuple):
    """From `at` (naive UTC) on, the clock is `after` ahead of UTC; until then it was `before`."""

    at: datetime
    before: timedelta
    after: timedelta


@dataclass(frozen=True)
class DefinedClock:
    changes: Sequence[OffsetChange]

    def instant(self, wall: datetime) -> datetime:
        offset, since = self.changes[0].before, datetime.min
        for change in self.changes:
            if wall < change.at + offset:
                break
            offset, since = change.after, change.at
        # A reading before the change to its own offset was skipped: return the gap's end.
        return max(wall - offset, since).replace(tzinfo=UTC)

    def wall(self, instant: datetime) -> datetime:
        moment = instant.astimezone(UTC).replace(tzinfo=None)
        place = bisect_right([change.at for change in self.changes], moment)
        offset = self.changes[place - 1].after if place else self.changes[0].before
        return moment + offset


UTC_CLOCK = ZoneClock("UTC")


def resolve_tzid(name: str) -> str | None:
    """Return the IANA zone of a TZID: an IANA or Windows name, or one behind a vendor's prefix.

    >>> resolve_tzid("/citadel.org/20190914_1/Europe/London")
    'Europe/London'
    """
    plain = name.strip().strip("/").casefold()
    if plain in _ZONES or plain in _WINDOWS:
        return _ZONES.get(plain) or _WINDOWS[plain]
    if name.strip().startswith("/"):
        while "/" in plain:
            plain = plain.partition("/")[2]
            if plain in _ZONES:
                return _ZONES[plain]
    return None


class ClocksByTzid:
    """The clocks of one text, by TZID.

    default: for floating times and unknown zones. days: for dates. window: aware; clocks of zones
    that the text defines are right around it.
    """

    def __init__(
        self,
        zones: Mapping[str, Component],
        *,
        default: Clock,
        days: Clock,
        window: tuple[datetime, datetime],
    ) -> None:
        self.default, self.days = default, days
        self._zones = zones
        self._window = window
        self._known: dict[str, Clock] = {}

    def of(self, tzid: str) -> Clock:
        if not tzid:
            return self.default
        if tzid not in self._known:
            self._known[tzid] = self._find(tzid)
        return self._known[tzid]

    def _find(self, tzid: str) -> Clock:
        name = resolve_tzid(tzid)
        if name is not None:
            return ZoneClock(name)
        if tzid in self._zones:
            changes = read_offset_changes(self._zones[tzid], self._window)
            return DefinedClock(changes) if changes else self.default
        return self.default


def read_offset_changes(
    component: Component, window: tuple[datetime, datetime]
) -> list[OffsetChange]:
    """Return a VTIMEZONE's clock changes around the window; [] if it defines none."""
    since, before = (bound.astimezone(UTC).replace(tzinfo=None) for bound in window)
    changes: set[OffsetChange] = set()
    for observance in component.subcomponents:
        ahead = first_value(observance, "TZOFFSETFROM"), first_value(observance, "TZOFFSETTO")
        if observance.name in ("STANDARD", "DAYLIGHT") and None not in ahead:
            offsets = [offset.td for offset in ahead]
            for wall in _onsets(observance, since, before, offsets[0]):
                changes.add(OffsetChange(wall - offsets[0], *offsets))
                if len(changes) > MAX_CHANGES:
                    raise RecurrenceRuleError("A time zone has too many clock changes.")
    return sorted(changes)


def _onsets(
    observance: Component, since: datetime, before: datetime, ahead: timedelta
) -> Iterator[datetime]:
    """Yield the starts of an observance, on the clock that applies until then."""
    dates = [_naive(each_date, ahead) for each_date in date_values(observance, "DTSTART")]
    if not dates:
        return
    yield from dates
    yield from (_naive(each_date, ahead) for each_date in date_values(observance, "RDATE"))
    for text in all_values(observance, "RRULE"):
        rule = RecurrenceRule(value_text(text))
        until = rule.until_as_wall_time(lambda instant: _naive(instant, ahead))
        ends = min(since, until) if until is not None else since
        yield from rule_starts(
            rule,
            dates[0],
            since=ends - YEARS_BEFORE,
            before=before + timedelta(days=366),
            until=until,
        )


def _naive(moment: date, ahead: timedelta) -> datetime:
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is not None:
        return (moment + ahead).replace(tzinfo=None)
    return moment
