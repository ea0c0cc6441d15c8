"""How many bookings may start within a time: the pacing of a project."""

from collections.abc import Iterable
from typing import NamedTuple

from availability.core.intervals import Intervals, find_overlaps, join


class Pace(NamedTuple):
    """At most `quantity` bookings start within any `seconds`, each unit counted."""

    quantity: int
    seconds: int


def closed_starts(starts: Iterable[int], pace: Pace, quantity: int, lo: int, hi: int) -> Intervals:
    """Return the instants in [lo, hi) at which no `quantity` bookings more may start.

    starts: of the project's bookings, one for each unit, from `lo - seconds` to `hi + seconds`.
    """
    left = pace.quantity - quantity
    if left < 0:
        return join([(lo, hi)])
    # The beginnings of all stretches of `seconds` that contain more than `left` starts.
    full = find_overlaps([(start - pace.seconds + 1, start + 1) for start in starts], left + 1)
    return join((first, last - 1 + pace.seconds) for first, last in full)
