"""Search for free time: fetch the rows, run the core."""

import random
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date

from availability.core.intervals import Intervals, complement
from availability.core.matching import find_matched_slots
from availability.core.parties import party_rank
from availability.core.slots import (
    MAX_SLOTS,
    FirstFreeSlots,
    Slot,
    TooManySlots,
    find_slots,
    find_starts,
    free_intervals,
)
from availability.core.zones import DAY, local_day_pieces
from availability.search.availability_query import AvailabilityQuery, SearchResource
from availability.search.preparation import (
    PreparedSearch,
    prepare_part,
    prepare_search,
    refuse_too_many_slots,
    slot_request_of,
    timeline_without_busy,
    with_busy,
)
from availability.search.queries import TimeSpan
from availability.search.visit_slots import find_visit_slots


def search_slots(query: AvailabilityQuery, *, mode: str | None = None) -> list[Slot]:
    """Return the slots sorted by start.

    Raises Invalid on `to` for more than 100,000 slots, in the modes mutual and exclusive for more
    than 100,000 pairs of slot and resource; in the other modes also if the resources together have
    more than three million starts.
    """
    if not query.resources:
        return []
    mode = mode or query.terms.mode
    with refuse_too_many_slots():
        if (
            query.visit
            or query.alternatives
            or mode in ("mutual", "exclusive")
            or len(query.resources) == 1
        ):
            return _find_slots(query, prepare_search(query), mode)
        return _search_first_free(query, shuffled=mode == "roundrobin_random")


def _find_slots(query: AvailabilityQuery, prepared: PreparedSearch, mode: str) -> list[Slot]:
    timelines, slot_request, stretches = prepared
    if query.visit:
        return [slot[:3] for slot in find_visit_slots(query, prepared)]
    if not query.alternatives:
        return find_slots(mode, timelines, slot_request)
    return find_matched_slots(
        stretches, slot_request, alternatives=query.alternatives, fixed=query.fixed
    )


def search_dates(query: AvailabilityQuery, zone: str) -> dict[date, list[SearchResource]]:
    """Return, by date in `zone`, every resource with a slot that starts on it, first slots first.

    In round robin too, where a slot has only one resource. Raises Invalid on `to` for more than
    100,000 pairs of date and resource, and if one resource has more than 100,000 slots; in the mode
    mutual and with requirements as `search_slots`.
    """
    if not query.resources:
        return {}
    days = local_day_pieces(*query.whole_span, zone)
    if query.alternatives or query.visit:
        return _resources_by_day(search_slots(query), days)
    if query.terms.mode == "mutual":
        starts = [start for start, _, _ in search_slots(query)]
        return {day: list(query.resources) for day in _first_of_each_day([starts], days)}
    timelines, slot_request, _ = prepare_search(query)
    first_starts: dict[date, list[tuple[int, int]]] = {}
    pairs_left = MAX_SLOTS
    with refuse_too_many_slots():
        for position, timeline in enumerate(timelines):
            firsts = _first_of_each_day(find_starts(timeline, slot_request), days)
            for day, start in firsts.items():
                first_starts.setdefault(day, []).append((start, position))
            pairs_left -= len(firsts)
            if pairs_left < 0:
                raise TooManySlots
    return {
        day: [timelines[position].key for _, position in sorted(first_starts[day])]
        for day in sorted(first_starts)
    }


DayPieces = Sequence[tuple[date, int, int]]  # of `local_day_pieces`


def _first_of_each_day(runs: Sequence[Sequence[int]], days: DayPieces) -> dict[date, int]:
    """Return the first start on each day that has one, in order. The runs of starts are in order.

    A day is looked up in its run: there may be a hundred starts a day.
    """
    starts_by_day: dict[date, int] = {}
    runs = [run for run in runs if run]
    lasts = [run[-1] for run in runs]
    for day, begin, end in days:
        place = bisect_left(lasts, begin)
        if place < len(runs):
            run = runs[place]
            first = run[bisect_left(run, begin)]
            if first < end:
                starts_by_day.setdefault(day, first)
    return starts_by_day


def _resources_by_day(slots: Sequence[Slot], days: DayPieces) -> dict[date, list[SearchResource]]:
    starts = [start for start, _, _ in slots]
    resources_by_day: dict[date, dict[SearchResource, None]] = {}
    for day, begin, end in days:
        for _, _, resources in slots[bisect_left(starts, begin) : bisect_left(starts, end)]:
            resources_by_day.setdefault(day, {}).update(dict.fromkeys(resources))
    return {day: list(resources) for day, resources in resources_by_day.items()}


FIRST_BATCH = 32


def _search_first_free(query: AvailabilityQuery, *, shuffled: bool) -> list[Slot]:
    """Return the slots, each with the first free resource.

    Reads busy time in growing batches of resources, and only of those that could add a slot: two
    queries for each batch, so at most six for 500 resources.
    """
    resources = list(query.resources)
    if shuffled:
        random.shuffle(resources)
    if query.party_size:
        resources.sort(key=lambda each: party_rank(each.party))
    whole = query.whole_span
    slots = FirstFreeSlots(slot_request_of(query, whole))
    first, size = 0, FIRST_BATCH if slots.has_fixed_starts else len(resources)
    while first < len(resources):
        batch = [
            timeline
            for resource in resources[first : first + size]
            if slots.can_add(timeline := timeline_without_busy(query, resource, whole))
        ]
        if batch:
            for timeline, blocked in zip(batch, with_busy(batch, query, whole), strict=True):
                if slots.can_add(timeline):
                    slots.add(blocked)
        first, size = first + size, 4 * size
    return slots.slots()


def search_first_slots(query: AvailabilityQuery, *, mode: str, count: int) -> list[Slot]:
    """Return the first `count` slots, or all if there are fewer.

    Searches a growing first part of the range, from a week on: the whole may have more slots than
    the limit, and busy time is read for the part alone.
    """
    if not query.resources:
        return []
    start, end = query.whole_span
    step = query.terms.increment or query.terms.length or 1
    known, part, is_too_long = 0, max(7 * DAY, 2 * count * step), False
    while True:
        until = min(start + part, end)
        if end - until < part and not is_too_long:
            until = end  # less is left than would be searched again
        try:
            slots = _find_slots(query, prepare_part(query, TimeSpan(start, until)), mode)
        except TooManySlots:
            part, is_too_long = (known + until - start) // 2, True
            continue
        if len(slots) >= count or until == end:
            return slots[:count]
        known, part = part, 4 * part


def search_unavailable(query: AvailabilityQuery) -> list[tuple[int, int, SearchResource]]:
    """Return the complement of the free time, per resource, sorted by start."""
    if not query.resources:
        return []
    prepared = prepare_search(query)
    spans = []
    for timeline in prepared.timelines:
        free = free_intervals(timeline, prepared.slot_request)
        unavailable = complement(free, *query.spans[timeline.zone])
        spans += [(start, end, timeline.key) for start, end in unavailable]
    return sorted(spans, key=lambda row: row[:2])


def free_intervals_of_resources(query: AvailabilityQuery) -> list[tuple[SearchResource, Intervals]]:
    """Return each resource with its free time in the range."""
    if not query.resources:
        return []
    timelines, slot_request, _ = prepare_search(query)
    return [(timeline.key, free_intervals(timeline, slot_request)) for timeline in timelines]


def free_seconds(query: AvailabilityQuery) -> int:
    """Return the free time of all resources together; each unit of a capacity counts."""
    return sum(
        (end - start) * resource.capacity
        for resource, intervals in free_intervals_of_resources(query)
        for start, end in intervals
    )
