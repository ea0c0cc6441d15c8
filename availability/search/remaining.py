"""How many units of a slot's resources can still be booked."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import itemgetter

from availability.core.busy_items import blocked_times
from availability.core.intervals import Intervals, clip
from availability.core.pacing import closed_starts
from availability.core.slots import Slot, SlotRequest, free_intervals
from availability.search.availability_query import MAX_UNITS, AvailabilityQuery, SearchResource
from availability.search.preparation import (
    closed_by_counts,
    count_bookings_per_period,
    fetch_busy_items,
    starts_near,
    timeline_without_busy,
)
from availability.search.queries import TimeSpan


def find_remaining(query: AvailabilityQuery, slots: Sequence[Slot]) -> list[int]:
    """Return, for each slot, the largest quantity that a booking can take of one of its resources.

    At most two queries.
    """
    if query.takes_several_resources or not slots:
        return [1] * len(slots)
    resources = list(dict.fromkeys(resource for _, _, each in slots for resource in each))
    remaining = _RemainingUnits(replace(query, resources=resources))
    return [
        max(remaining.largest(resource, TimeSpan(start, end)) for resource in found)
        for start, end, found in slots
    ]


class _RemainingUnits:
    """How many units of resources are free; the free time for each quantity is computed once."""

    def __init__(self, query: AvailabilityQuery) -> None:
        self._query = query
        self._busy = fetch_busy_items(query, query.whole_span)
        self._counts = count_bookings_per_period(query, query.resources, query.whole_span)
        self._starts = starts_near(query, query.whole_span)
        self._free = lru_cache(maxsize=None)(self._free_time)

    def largest(self, resource: SearchResource, span: TimeSpan) -> int:
        """Return the largest quantity for which the resource is free throughout the span."""
        quantities = range(1, min(resource.capacity, MAX_UNITS) + 1)
        return bisect_left(quantities, True, key=lambda n: not self._is_free(resource, span, n))

    def _is_free(self, resource: SearchResource, span: TimeSpan, quantity: int) -> bool:
        free = self._free(resource, quantity)
        place = bisect_right(free, span.start, key=itemgetter(0)) - 1
        if place < 0 or free[place][1] < span.end:
            return False
        pace, instant = self._query.terms.pace, (span.start, span.start + 1)
        return pace is None or not clip(
            closed_starts(self._starts, pace, quantity, *instant), *instant
        )

    def _free_time(self, resource: SearchResource, quantity: int) -> Intervals:
        query = replace(self._query, quantity=quantity)
        whole = query.whole_span
        counts = {resource.id: self._counts.get(resource.id, {})}
        limits = closed_by_counts(query, [resource], whole, counts).get(resource.id, {})
        busy = blocked_times(self._busy.get(resource.id, []), query.terms.buffers, quantity)
        timeline = timeline_without_busy(query, resource, whole)
        closed = sorted(chain(timeline.closed, *limits.values(), busy))
        request = SlotRequest(*whole, length=None)
        return free_intervals(timeline._replace(closed=closed), request)
