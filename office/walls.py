"""Wall clocks on pages: readings without an offset, such as a calendar's grid or an input shows.

Written and read back here alone, so that a day of 23 or 25 hours is right: what the clock skips
has no reading, and of what it shows twice the offset says which is meant.
"""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from availability.core.zones import day_start, offset_segments
from availability.reading import Span
from bookings.wording import is_ambiguous, known_zone, offset_words
from office.words import reading_words
from scheduling.api.errors import Invalid
from scheduling.api.instants import InstantError, parse_date, parse_instant, zone


class Wall(NamedTuple):
    """A stretch as wall clocks show it, `2026-11-23T09:00:00`."""

    start: str
    end: str


def show(instant: datetime, zone_name: str) -> str:
    """What the wall clock shows then."""
    return instant.astimezone(zone(zone_name)).strftime("%Y-%m-%dT%H:%M:%S")


def show_span(start: datetime, end: datetime, zone_name: str) -> Wall:
    """For a grid: where the clock is set back inside, the end may read no later than the start;
    then it is drawn in its true length."""
    first, last = show(start, zone_name), show(end, zone_name)
    if last <= first:
        last = (datetime.fromisoformat(first) + (end - start)).isoformat()
    return Wall(first, last)


def show_pieces(start: int, end: int, zone_name: str) -> list[Wall]:
    """A stretch (epoch seconds) cut where the clock is changed: each piece has its own length."""
    return [
        Wall(reading(since + offset), reading(until + offset))
        for since, until, offset in offset_segments(zone_name, start, end)
    ]


def skipped_pieces(start: int, end: int, zone_name: str) -> list[Wall]:
    """What no clock shows in the range (epoch seconds): the hour that spring skips."""
    segments = offset_segments(zone_name, start, end)
    return [
        Wall(reading(at + before), reading(at + after))
        for (_, at, before), (_, _, after) in pairwise(segments)
        if after > before
    ]


def reading(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def say_time(instant: datetime, zone_name: str) -> str:
    """`09:30`; with its distance from UTC where the clock shows that twice."""
    local = instant.astimezone(zone(zone_name))
    tail = f" {offset_words(local)}" if is_ambiguous(local) else ""
    return f"{local:%H:%M}{tail}"


def say_span(start: datetime, end: datetime, zone_name: str) -> str:
    """`Tue 24 Nov 2026, 10:00 to 10:30`; the later date where it ends on another."""
    place = zone(zone_name)
    same_day = start.astimezone(place).date() == end.astimezone(place).date()
    last = say_time(end, zone_name) if same_day else reading_words(end, zone_name)
    return f"{reading_words(start, zone_name)} to {last}"


def read_moment(
    path: str, text: object, zone_name: str, *, after: datetime | None = None
) -> datetime:
    """The instant of a reading, or of a text with its offset. Raises Invalid at `path`.

    Of a reading that comes twice the first, unless only the second lies after `after`.
    """
    try:
        instant = parse_instant(str(text or ""), zone_name)
    except InstantError as error:
        raise Invalid.at(path, str(error)) from error
    if after is not None and instant <= after and is_ambiguous(instant.astimezone(zone(zone_name))):
        second = instant.astimezone(zone(zone_name)).replace(fold=1).astimezone(UTC)
        return second if second > after else instant
    return instant


def read_day(path: str, text: str) -> date:
    """Raises Invalid at `path`."""
    try:
        return parse_date(text)
    except InstantError as error:
        raise Invalid.at(path, str(error)) from error


def read_zone(path: str, name: str) -> str:
    """Raises Invalid at `path`."""
    try:
        zone(name)
    except InstantError as error:
        raise Invalid.at(path, str(error)) from error
    return name


def days_span(first: date, until: date, zone_name: str) -> Span:
    """From the first instant of a local day to that of another."""
    return Span(day_start(first, zone_name), day_start(until, zone_name))


def monday_of(day: date) -> date:
    return day - timedelta(days=day.weekday())


def today_in(zone_name: str, now: datetime) -> date:
    """UTC's where a row holds no known zone: the page that asks says so."""
    return now.astimezone(zone(known_zone(zone_name))).date()
