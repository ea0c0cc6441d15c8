"""The wall clocks on which the times of an iCalendar text are read (RFC 5545, 3.2.19 and 3.6.5).

A clock turns a reading (a naive datetime) into an instant (aware UTC) and back. A reading inside a
gap means the gap's end, one that comes twice the first.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, Protocol

from icalendar import Component
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from external_calendars.components import all_of, dates_of, first_of, text_of
from external_calendars.rules import BadRule, Rule, starts
from scheduling.api.instants import ZONES, wall_to_utc_or_gap_end, zone

# Of one zone that a text defines, over the few years that are looked at.
MOST_CHANGES = 1000
# A rule of a zone is looked at from so long before what is asked for, to know what held then.
YEARS_BEFORE = timedelta(days=800)

_ZONES = {name.casefold(): name for name in ZONES}
_WINDOWS = {name.casefold(): place for name, place in WINDOWS_TO_OLSON.items()}


class Clock(Protocol):
    def instant(self, wall: datetime) -> datetime:
        """When it shows this for the first time, or would have. Raises OverflowError."""

    def wall(self, instant: datetime) -> datetime:
        """What it shows then. Raises OverflowError."""


@dataclass(frozen=True)
class ZoneClock:
    """Of an IANA zone."""

    name: str

    def instant(self, wall: datetime) -> datetime:
        return wall_to_utc_or_gap_end(wall, self.name)

    def wall(self, instant: datetime) -> datetime:
        return instant.astimezone(zone(self.name)).replace(tzinfo=None, fold=0)


class Change(NamedTuple):
    """From `at` (naive UTC) on, the clock is `after` ahead of UTC; until then it was `before`."""

    at: datetime
    before: timedelta
    after: timedelta


@dataclass(frozen=True)
class DefinedClock:
    """Of a zone that the text itself defines."""

    changes: Sequence[Change]

    def instant(self, wall: datetime) -> datetime:
        offset, since = self.changes[0].before, datetime.min
        for change in self.changes:
            if wall < change.at + offset:
                break
            offset, since = change.after, change.at
        # A reading that comes before its own offset holds was skipped.
        return max(wall - offset, since).replace(tzinfo=UTC)

    def wall(self, instant: datetime) -> datetime:
        moment = instant.astimezone(UTC).replace(tzinfo=None)
        place = bisect_right([change.at for change in self.changes], moment)
        offset = self.changes[place - 1].after if place else self.changes[0].before
        return moment + offset


UTC_CLOCK = ZoneClock("UTC")


def known_zone(name: str) -> str | None:
    """The IANA zone of a TZID: its own name, Windows' name for it, or behind a vendor's prefix.

    >>> known_zone("/citadel.org/20190914_1/Europe/London")
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


class Clocks:
    """The clocks of one text, by TZID; `default` is that of floating times and unknown zones,
    `days` that of whole days.

    window: what is looked at, aware; zones that the text defines are right around it.
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
        name = known_zone(tzid)
        if name is not None:
            return ZoneClock(name)
        if tzid in self._zones:
            changes = read_changes(self._zones[tzid], self._window)
            return DefinedClock(changes) if changes else self.default
        return self.default


def read_changes(component: Component, window: tuple[datetime, datetime]) -> list[Change]:
    """The changes of a VTIMEZONE's clock that matter around the window; none: it says nothing."""
    since, before = (one.astimezone(UTC).replace(tzinfo=None) for one in window)
    found: set[Change] = set()
    for observance in component.subcomponents:
        ahead = first_of(observance, "TZOFFSETFROM"), first_of(observance, "TZOFFSETTO")
        if observance.name in ("STANDARD", "DAYLIGHT") and None not in ahead:
            offsets = [offset.td for offset in ahead]
            for wall in _onsets(observance, since, before, offsets[0]):
                found.add(Change(wall - offsets[0], *offsets))
                if len(found) > MOST_CHANGES:
                    raise BadRule("A time zone changes too often.")
    return sorted(found)


def _onsets(
    observance: Component, since: datetime, before: datetime, ahead: timedelta
) -> Iterator[datetime]:
    """When an observance begins, on the clock that holds until then."""
    dates = [_naive(one, ahead) for one in dates_of(observance, "DTSTART")]
    if not dates:
        return
    yield from dates
    yield from (_naive(one, ahead) for one in dates_of(observance, "RDATE"))
    for text in all_of(observance, "RRULE"):
        rule = Rule(text_of(text))
        until = rule.until
        if until is not None and rule.until_is_utc:
            until += ahead
        ends = min(since, until) if until is not None else since
        yield from starts(
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
