"""Availability parameters (api.md section 6) of a project or a request.

`from` and `to` are stored as written ("2 days", "1 hour") and resolved here, for a moment and a
resource's zone, both for queries and for booking checks.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from availability.core.busy_items import NO_BUFFERS, Buffers
from availability.core.constraints import (
    ConstraintRule,
    ConstraintRules,
    Windows,
    parse_constraints,
)
from availability.core.pacing import Pace
from availability.core.periods import PeriodLimit
from availability.core.zones import offset_at
from common.api.merge_patch import merge_keys
from common.messages import Message
from common.time.durations import elapsed_seconds, is_relative, resolve_time
from common.time.instants import (
    InstantError,
    check_year,
    parse_instant,
    to_datetime,
    wall_time,
    wall_to_utc_or_gap_end,
)

FAIR = "roundrobin_fair"
MODES = ("roundrobin_random", "roundrobin_prioritized", FAIR, "mutual", "exclusive")
# Another name of a mode.
MODE_ALIASES = {"all_free": "exclusive"}
MAX_RANGE = timedelta(days=366)
HOUR = 3600


@dataclass(frozen=True, slots=True)
class SlotParameters:
    """Availability parameters. Lengths are seconds of elapsed time.

    length: None for whole free intervals. lengths: those to choose from, with `length` among them;
    empty: `length` alone. earliest, latest: the texts of `from` and `to`. ignores_buffers: neither
    these buffers count nor those of other bookings. limits: of the project's bookings on a
    resource. weights, calibrate_from (epoch seconds; None: the project's making): of the mode
    roundrobin_fair. constraints: the project's rules. windows: where bookings may start and end.
    pace: how many may start within a time. extra: the request's lists of rules (more
    than one only in the legacy API).
    """

    mode: str = "roundrobin_random"
    length: int | None = 3600
    lengths: tuple[int, ...] = ()
    earliest: str = "now"
    latest: str = "4 weeks"
    buffers: Buffers = NO_BUFFERS
    ignores_buffers: bool = False
    increment: int | None = None
    round_to_nearest_hour: bool = True
    ignore_all_day_events: bool = False
    include_past: bool = False
    limits: tuple[PeriodLimit, ...] = ()
    weights: tuple[tuple[uuid.UUID, int], ...] = ()
    calibrate_from: int | None = None
    constraints: tuple[ConstraintRule, ...] = ()
    windows: Windows | None = None
    pace: Pace | None = None
    extra: tuple[tuple[ConstraintRule, ...], ...] = ((),)

    def permits_length(self, length: int) -> bool:
        """Whether a booking may last `length` seconds."""
        return self.length in (None, length) or length in self.lengths

    @property
    def limited_period_units(self) -> list[str]:
        return [limit.unit for limit in self.limits]

    def span(self, now: datetime, zone: str) -> tuple[int, int]:
        """`from` and `to` as epoch seconds for a resource in `zone`, not rounded, as bookings are
        checked.

        Raises DurationError or InstantError for a text that can't be resolved.
        """
        start, end = _moment(self.earliest, now, zone), _moment(self.latest, now, zone)
        return int(start.timestamp()), int(end.timestamp())

    def rounded_range_start(self, start: int, end: int, zone: str) -> int:
        """The start of the range of offered slots.

        A relative `from` is rounded up to the wall clock's full hour, but not past `to`, so that
        rounding makes no range invalid.
        """
        if not self.round_to_nearest_hour or not is_relative(self.earliest):
            return start
        return max(start, min(round_up_to_hour(start, zone), end))


def is_too_long(start: int, end: int, zone: str) -> bool:
    """Whether a range is longer than 366 days both in elapsed time and on the wall clock.

    A project with `to` "366 days" stays valid when the clock is set back.
    """
    if end - start <= MAX_RANGE.total_seconds():
        return False
    first, last = (wall_time(to_datetime(instant), zone) for instant in (start, end))
    return last - first > MAX_RANGE


def _moment(text: str, now: datetime, zone: str) -> datetime:
    """Resolve `text` as `resolve_time` does; a wall time that the zone skips becomes the end of the
    gap.

    A project's `from` is stored as written, and the zone of some of its resources may skip that
    time.
    """
    try:
        return resolve_time(text, now, zone)
    except InstantError:
        if is_relative(text):
            raise
        wall = parse_instant(text.strip(), "UTC").replace(tzinfo=None)
        return check_year(wall_to_utc_or_gap_end(wall, zone))


def round_up_to_hour(instant: int, zone: str) -> int:
    """The first instant from `instant` on at which the zone's wall clock shows a full hour."""
    rounded = instant + -_past_hour(instant, zone) % HOUR
    # A clock change of less than an hour (Lord Howe) in between leaves a remainder: round again.
    return rounded + -_past_hour(rounded, zone) % HOUR


def _past_hour(instant: int, zone: str) -> int:
    """Seconds since the last full hour of the wall clock."""
    return (instant + offset_at(zone, instant)) % HOUR


# API key -> field of SlotParameters and the function that reads the JSON value.
def _seconds(value: Any) -> int:
    return elapsed_seconds(value, least=0, most=366 * 86_400)


def _seconds_or_none(value: Any) -> int | None:
    return None if value is None else _seconds(value)


def _lengths(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError("Must be a list.")
    return tuple(_seconds(length) for length in value)


def _mode(value: Any) -> str:
    value = MODE_ALIASES.get(value, value) if isinstance(value, str) else value
    if value not in MODES:
        raise ValueError(f"Must be one of {', '.join(MODES)}.")
    return value


def _weights(value: Any) -> tuple[tuple[uuid.UUID, int], ...]:
    if not isinstance(value, Mapping) or any(type(weight) is not int for weight in value.values()):
        raise ValueError("Must be an object of integers.")
    return tuple((uuid.UUID(key), weight) for key, weight in value.items())


def _instant(value: Any) -> int:
    return int(parse_instant(_text(value), "UTC").timestamp())


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(Message("Must be a string."))
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("Must be true or false.")
    return value


def _pace(value: Any) -> Pace | None:
    if not value:
        return None
    if not isinstance(value, Mapping) or type(value.get("quantity")) is not int:
        raise ValueError("Must be an object with a quantity.")
    return Pace(value["quantity"], _seconds(value.get("per")))


_FIELDS = {
    "mode": ("mode", _mode),
    "weights": ("weights", _weights),
    "calibrate_from": ("calibrate_from", _instant),
    "length": ("length", _seconds_or_none),
    "lengths": ("lengths", _lengths),
    "from": ("earliest", _text),
    "to": ("latest", _text),
    "timeslot_increments": ("increment", _seconds_or_none),
    "round_to_nearest_hour": ("round_to_nearest_hour", _boolean),
    "ignore_all_day_events": ("ignore_all_day_events", _boolean),
    "include_past": ("include_past", _boolean),
    "max_starts": ("pace", _pace),
}


def with_parameters(terms: SlotParameters, given: Mapping[str, Any]) -> SlotParameters:
    """Replace the parameters that `given` has as JSON values; unknown keys are ignored.

    `lengths` without `length`: the first one is the default. Raises ValueError for a value that no
    serializer accepts.
    """
    known = {key: _FIELDS[key] for key in given if key in _FIELDS}
    values: dict[str, Any] = {name: read(given[key]) for key, (name, read) in known.items()}
    if values.get("lengths") and "length" not in values:
        values["length"] = values["lengths"][0]
    if _BUFFER_KEYS & given.keys():
        values["buffers"] = read_buffers(given, terms.buffers)
    if _WINDOW_KEYS & given.keys():
        values["windows"] = _windows(given, terms.windows or Windows())
    return replace(terms, **values)


_WINDOW_KEYS = {"start_window", "end_window"}


def _windows(given: Mapping[str, Any], otherwise: Windows) -> Windows | None:
    start, end = otherwise
    if "start_window" in given:
        start = _rules_or_none(given["start_window"])
    if "end_window" in given:
        end = _rules_or_none(given["end_window"])
    return None if start is None and end is None else Windows(start, end)


def _rules_or_none(value: Any) -> ConstraintRules | None:
    """Read the rules of a window: as parsed by the serializer, or as stored."""
    return value if value is None or isinstance(value, tuple) else parse_constraints(value)


_BUFFER_KEYS = {"buffer", "buffer_before", "buffer_after"}


def read_buffers(given: Mapping[str, Any], otherwise: Buffers = NO_BUFFERS) -> Buffers:
    """Return the buffers of parameters as JSON values: `buffer` sets both. Raises ValueError."""
    if "buffer" in given:
        both = _seconds(given["buffer"])
        otherwise = Buffers(both, both)
    return Buffers(
        _seconds(given["buffer_before"]) if "buffer_before" in given else otherwise.before,
        _seconds(given["buffer_after"]) if "buffer_after" in given else otherwise.after,
    )


def merge_parameters(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a project's stored parameters after a change; null removes a key.

    Only `length` is stored as null: it means whole free intervals. A new `buffer` replaces both
    sides.
    """
    if given.get("buffer") is not None:
        kept = {key: value for key, value in kept.items() if key not in _BUFFER_KEYS}
    merged = merge_keys(kept, given)
    return {**merged, "length": given["length"]} if "length" in given else merged


def restrict_to(
    project: SlotParameters, requested: SlotParameters, *, given: frozenset[str]
) -> SlotParameters:
    """The parameters of a request with a widget key: the project's, narrowed by the request's.

    The requested length counts if the project permits it. The caller intersects the time ranges,
    since they depend on each resource's zone.
    """
    chooses = "length" in given and (project.length is None or requested.length in project.lengths)
    return replace(
        project,
        length=requested.length if chooses else project.length,
        buffers=Buffers(*map(max, project.buffers, requested.buffers)),
        ignore_all_day_events=project.ignore_all_day_events and requested.ignore_all_day_events,
        include_past=False,
        extra=requested.extra,
    )
