"""On which terms time is offered: the parameters of api.md section 6, of a project or a request.

The texts are kept as they were written ("2 days", "1 hour"); what they mean depends on the moment
and the resource's zone and is worked out here, once, for query and check alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from availability.core.constraints import Rule
from scheduling.api.durations import elapsed_seconds, is_relative, resolve
from scheduling.api.instants import (
    InstantError,
    check_year,
    parse_instant,
    wall_to_utc_or_gap_end,
)

MODES = ("roundrobin_random", "roundrobin_prioritized", "mutual", "exclusive")
MAX_RANGE = timedelta(days=366)
HOUR = 3600


@dataclass(frozen=True, slots=True)
class Terms:
    """Availability parameters. Lengths in seconds of elapsed time; `earliest` and `latest` are
    the texts of `from` and `to`; `constraints` are those of the project, `extra` the request's
    lists (more than one only where an older form asks for it)."""

    mode: str = "roundrobin_random"
    length: int | None = 3600
    earliest: str = "now"
    latest: str = "4 weeks"
    buffer: int = 0
    increment: int | None = None
    round_to_nearest_hour: bool = True
    ignore_all_day_events: bool = False
    include_past: bool = False
    max_per_day: int | None = None
    constraints: tuple[Rule, ...] = ()
    extra: tuple[tuple[Rule, ...], ...] = ((),)

    def span(self, now: datetime, zone: str) -> tuple[int, int]:
        """`from` and `to` as epoch seconds, for a resource in `zone`: what a booking is held to.

        Raises DurationError or InstantError for a text that means no instant.
        """
        start, end = _moment(self.earliest, now, zone), _moment(self.latest, now, zone)
        return int(start.timestamp()), int(end.timestamp())

    def offered_from(self, start: int, end: int, zone: str) -> int:
        """Where in its span the offer begins: a relative `from` moves up to the full hour of the
        wall clock, but not past `to`: rounding makes no range invalid."""
        if not self.round_to_nearest_hour or not is_relative(self.earliest):
            return start
        return max(start, min(round_up_to_hour(start, zone), end))


def is_too_long(start: int, end: int, zone: str) -> bool:
    """Whether a range is longer than 366 days of elapsed time and also on the wall clock: a project
    with `to` "366 days" stays valid when the clock is set back."""
    if end - start <= MAX_RANGE.total_seconds():
        return False
    first, last = (_read_wall(instant, zone) for instant in (start, end))
    return last - first > MAX_RANGE


def _read_wall(instant: int, zone: str) -> datetime:
    return datetime.fromtimestamp(instant, ZoneInfo(zone)).replace(tzinfo=None)


def _moment(text: str, now: datetime, zone: str) -> datetime:
    """As `resolve`, but wall time that the zone skips means the gap's end.

    A project's `from` is kept as it was written; some of its resources may not know that time.
    """
    try:
        return resolve(text, now, zone)
    except InstantError:
        if is_relative(text):
            raise
        wall = parse_instant(text.strip(), "UTC").replace(tzinfo=None)
        return check_year(wall_to_utc_or_gap_end(wall, zone))


def round_up_to_hour(instant: int, zone: str) -> int:
    """The next instant (or this one) at which the zone's wall clock shows a full hour."""
    rounded = instant + -_past_hour(instant, zone) % HOUR
    # A clock change of less than an hour in between (Lord Howe) leaves a remainder: once more.
    return rounded + -_past_hour(rounded, zone) % HOUR


def _past_hour(instant: int, zone: str) -> int:
    """Seconds since the wall clock's last full hour."""
    wall = _read_wall(instant, zone)
    return wall.minute * 60 + wall.second


# The contract's key -> the field, and how its JSON value becomes the field's.
def _seconds(value: Any) -> int:
    return elapsed_seconds(value, least=0, most=366 * 86_400)


def _seconds_or_none(value: Any) -> int | None:
    return None if value is None else _seconds(value)


def _mode(value: Any) -> str:
    if value not in MODES:
        raise ValueError(f"Must be one of {', '.join(MODES)}.")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("Must be a string.")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("Must be true or false.")
    return value


_FIELDS = {
    "mode": ("mode", _mode),
    "length": ("length", _seconds_or_none),
    "from": ("earliest", _text),
    "to": ("latest", _text),
    "buffer": ("buffer", _seconds),
    "timeslot_increments": ("increment", _seconds_or_none),
    "round_to_nearest_hour": ("round_to_nearest_hour", _flag),
    "ignore_all_day_events": ("ignore_all_day_events", _flag),
    "include_past": ("include_past", _flag),
}


def with_values(terms: Terms, given: Mapping[str, Any]) -> Terms:
    """`terms` with the JSON values of `given` in place; unknown keys are left alone.

    Raises ValueError for a value that no serializer would have let in.
    """
    known = {key: _FIELDS[key] for key in given if key in _FIELDS}
    return replace(terms, **{name: read(given[key]) for key, (name, read) in known.items()})


def narrowed(project: Terms, asked: Terms, *, given: frozenset[str]) -> Terms:
    """What a widget key gets: the project's terms, narrowed by what it asked, never loosened.

    Its own length counts only where the project leaves the length open; the bounds in time are
    intersected by the caller, since they depend on each resource's zone.
    """
    return replace(
        project,
        length=asked.length if project.length is None and "length" in given else project.length,
        buffer=max(project.buffer, asked.buffer),
        ignore_all_day_events=project.ignore_all_day_events and asked.ignore_all_day_events,
        include_past=False,
        extra=asked.extra,
    )
