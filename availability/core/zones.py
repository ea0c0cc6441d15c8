"""UTC offsets and wall clocks, exact at every transition.

A *reading* is what a wall clock shows, as seconds counted as if that clock were UTC: reading =
instant + offset. Zones are IANA names; an unknown one raises zoneinfo.ZoneInfoNotFoundError.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

DAY = 86_400
_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class NonexistentTime(ValueError):
    """A wall-clock time that the clock skips."""


def offset_segments(zone: str, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return (utc_start, utc_end, offset in s) per stretch of constant offset in [start, end)."""
    segments: list[tuple[int, int, int]] = []
    for since, offset in _offsets(zone, start, end):
        if segments:
            segments[-1] = (segments[-1][0], since, segments[-1][2])
        segments.append((since, end, offset))
    return segments


def _offsets(zone: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (since, offset) for the start of [start, end) and each change of the offset in it."""
    if start >= end:
        return
    offset = offset_at(zone, start)
    yield start, offset
    for year in range(_year(start), _year(end - 1) + 1):
        for at, after in _transitions(zone, year):
            if start < at < end:
                yield at, after


def _year(instant: int) -> int:
    return (_EPOCH + timedelta(seconds=instant)).year


@lru_cache(maxsize=4096)
def _transitions(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return (instant, new offset) of each change of the offset in a UTC year.

    Samples once a day: since 1970 no zone has changed its offset and changed it back within a day.
    """
    lo, last = (_seconds(datetime(y, 1, 1)) - 1 for y in (year, year + 1))
    found = []
    while lo < last:
        hi = min(lo + DAY, last)
        if offset_at(zone, hi) != offset_at(zone, lo):
            found.append((_change_between(zone, lo, hi), offset_at(zone, hi)))
        lo = hi
    return tuple(found)


def _change_between(zone: str, lo: int, hi: int) -> int:
    """Return the first instant in (lo, hi] whose offset differs from that at `lo`."""
    before = offset_at(zone, lo)
    while hi - lo > 1:
        middle = (lo + hi) // 2
        if offset_at(zone, middle) == before:
            lo = middle
        else:
            hi = middle
    return hi


def offset_at(zone: str, instant: int) -> int:
    """Return the zone's UTC offset at the instant, in seconds (positive: ahead of UTC)."""
    moment = datetime.fromtimestamp(instant, UTC).astimezone(ZoneInfo(zone))
    return int(moment.utcoffset().total_seconds())  # type: ignore[union-attr]  # ZoneInfo always knows


def _seconds(wall: datetime) -> int:
    """Return a naive datetime as a reading; a fraction of a second is dropped."""
    return (wall - _EPOCH) // timedelta(seconds=1)


def wall_to_instant(wall: datetime, zone: str, *, gap: Literal["raise", "end"] = "raise") -> int:
    """Return the instant (epoch seconds) at which the zone's clock shows `wall`, a naive datetime.

    If the clock shows it twice, the first instant. If it skips it, raises NonexistentTime, or with
    gap="end" returns the instant at which the clock jumps past it.
    """
    reading = _seconds(wall)
    for start, end, offset in offset_segments(zone, reading - 2 * DAY, reading + 2 * DAY):
        if start + offset <= reading < end + offset:
            return reading - offset
        if reading < start + offset:
            break
    if gap == "raise":
        raise NonexistentTime(f"{wall:%Y-%m-%d %H:%M:%S} does not exist in {zone}")
    return start


def local_day(instant: int, zone: str) -> date:
    return date.fromordinal((instant + offset_at(zone, instant)) // DAY + _EPOCH_DAY)


def local_day_pieces(start: int, end: int, zone: str) -> list[tuple[date, int, int]]:
    """Return (local date, start, end) of each stretch of [start, end) with one date and one offset.

    In order. A day on which the clock changes has two.
    """
    return [
        (
            date.fromordinal(midnight // DAY + _EPOCH_DAY),
            max(since, midnight - offset),
            min(until, midnight + DAY - offset),
        )
        for since, until, offset in offset_segments(zone, start, end)
        for midnight in range((since + offset) // DAY * DAY, until + offset, DAY)
    ]


def day_start(day: date, zone: str) -> int:
    """Return the first instant (epoch seconds) of a local day, or after it if the zone skips it."""
    return wall_to_instant(datetime(day.year, day.month, day.day), zone, gap="end")
