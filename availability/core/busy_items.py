"""Busy time of a resource, also of one that several bookings use at once (its capacity)."""

import uuid
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from availability.core.intervals import Intervals, Span, find_overlaps, normalise, subtract, unite


class Buffers(NamedTuple):
    """Seconds before and after a booking that stay free.

    The distance between two bookings is at least the larger of the earlier one's `after` and the
    later one's `before`.
    """

    before: int = 0
    after: int = 0

    @property
    def longest(self) -> int:
        return max(self)


NO_BUFFERS = Buffers()


def blocked_span(
    start: int, end: int, before: int | None, after: int | None, buffers: Buffers
) -> Span:
    """Return the span in which an item allows no booking with `buffers`.

    before, after: of the item; None: those of `buffers`.
    """
    before = buffers.before if before is None else before
    after = buffers.after if after is None else after
    return (
        start - (before if before > buffers.after else buffers.after),
        end + (after if after > buffers.before else buffers.before),
    )


class BusyItem(NamedTuple):
    """Busy time in epoch seconds; type: "event", "hold" or "capacity" (see `fully_booked_items`).

    capacity: how many such items the resource has room for at once; 1: the item blocks it alone.
    before, after: the buffers of the item's own booking; None: those of the booking to be checked.
    """

    start: int
    end: int
    type: str
    id: uuid.UUID | None
    capacity: int = 1
    before: int | None = None
    after: int | None = None

    @property
    def span(self) -> Span:
        return self.start, self.end

    def blocked_span(self, buffers: Buffers) -> Span:
        """Return the span in which the item allows no booking with these buffers."""
        return blocked_span(self.start, self.end, self.before, self.after, buffers)

    def resolved_buffers(self, buffers: Buffers) -> Buffers:
        """Return the item's own buffers, with `buffers` in place of missing ones."""
        return Buffers(
            buffers.before if self.before is None else self.before,
            buffers.after if self.after is None else self.after,
        )


def capacity_of(items: Iterable[BusyItem]) -> int:
    """Return the capacity of the items' resource; 1 if each item blocks it alone."""
    return min((item.capacity for item in items if item.capacity > 1), default=1)


def too_many(items: Sequence[BusyItem], quantity: int) -> int:
    """Return how many taken units of the items' resource leave fewer than `quantity` units."""
    return max(1, capacity_of(items) - quantity + 1)


def full_times(items: Iterable[BusyItem], quantity: int = 1) -> Intervals:
    """Return the times at which the items that take one unit each leave fewer than `quantity`."""
    units = [item for item in items if item.capacity > 1]
    return find_overlaps([item.span for item in units], too_many(units, quantity)) if units else []


def blocked_times(items: Sequence[BusyItem], buffers: Buffers, quantity: int = 1) -> Intervals:
    """Return the times that allow no booking of `quantity` units with these buffers.

    These are the times of items that block the resource alone, and the times at which fewer units
    are free, with the buffers of both sides. `quantity` is at most the capacity.
    """
    exclusive_spans = [item.blocked_span(buffers) for item in items if item.capacity == 1]
    return normalise([*exclusive_spans, *full_times_with_buffers(items, buffers, quantity)])


def full_times_with_buffers(
    items: Iterable[BusyItem], buffers: Buffers, quantity: int = 1
) -> Intervals:
    """Return the times that allow no booking of `quantity` units with these buffers because it
    would need another unit.

    Bookings of one unit keep their distance from each other.
    """
    units = [item for item in items if item.capacity > 1]
    if not units:
        return []
    most = too_many(units, quantity)
    if have_equal_buffers(units, buffers):
        # A booking from s to e keeps its unit until e + distance, so it must end `distance` before
        # a time at which all units are taken.
        distance = buffers.longest
        spans = [(item.start, item.end + distance) for item in units]
        full = find_overlaps(spans, most)
        return normalise((start - distance, end) for start, end in full)
    return _full_times_with_own_buffers(units, most, buffers)


def have_equal_buffers(items: Iterable[BusyItem], buffers: Buffers) -> bool:
    """Return whether all items have these buffers."""
    return all(item.resolved_buffers(buffers) == buffers for item in items)


# Items that one call compares in `_needs_units`, about a second; beyond, a time counts as full.
MAX_COMPARED = 2_000_000


def _full_times_with_own_buffers(
    units: Sequence[BusyItem], number: int, buffers: Buffers
) -> Intervals:
    """Return the times at which the items that are too close need `number` units.

    Single instants are enough: items that are too close to a booking and can't share units with
    each other block intervals that overlap two by two, and such intervals have an instant in
    common.
    """
    pairs = [(item, item.resolved_buffers(buffers)) for item in units]
    blocked = [item.blocked_span(buffers) for item in units]
    full = unite(
        find_overlaps([(item.start, item.end + own.after) for item, own in pairs], number),
        find_overlaps([(item.start - own.before, item.end) for item, own in pairs], number),
    )
    changes: dict[int, list[int]] = {}
    for place, span in enumerate(blocked):
        for edge in span:
            changes.setdefault(edge, []).append(place)
    doubtful = subtract(find_overlaps(blocked, number), full)
    begins, ends = {lo for lo, _ in doubtful}, {hi for _, hi in doubtful}
    needed: list[Span] = []
    near: set[int] = set()
    is_doubtful, compared = False, 0
    edges = changes.keys() | {edge for span in doubtful for edge in span}
    for since, until in pairwise(sorted(edges)):
        near.symmetric_difference_update(changes.get(since, ()))
        is_doubtful = since in begins or (is_doubtful and since not in ends)
        if is_doubtful:
            compared += len(near)
            nearby = [pairs[each] for each in near]
            if compared > MAX_COMPARED or _needs_units(nearby, number):
                needed.append((since, until))
    return unite(full, needed)


def _needs_units(items: Sequence[tuple[BusyItem, Buffers]], number: int) -> bool:
    """Return whether the items need `number` units or more, with buffers between a unit's items.

    In order of start, each item gets a unit whose last item ends early enough, and of these the one
    whose last item ends latest. The others have longer been free and suit later items at least as
    well.
    """
    running: list[tuple[int, int]] = []
    ended: list[int] = []  # ends of the last items of units whose `after` has passed, sorted
    for item, own in sorted(items, key=lambda pair: pair[0].start):
        while running and running[0][0] <= item.start:
            insort(ended, heappop(running)[1])
        place = bisect_right(ended, item.start - own.before)
        if place:
            ended.pop(place - 1)
        else:
            number -= 1
            if number == 0:
                return True
        heappush(running, (item.end + own.after, item.end))
    return False


def fully_booked_items(items: Sequence[BusyItem], quantity: int = 1) -> list[BusyItem]:
    """Return the items that block the resource alone, and an item of type "capacity" for each time
    at which fewer than `quantity` units are free.
    """
    full = [BusyItem(start, end, "capacity", None) for start, end in full_times(items, quantity)]
    return [*(item for item in items if item.capacity == 1), *full]
