"""Prepare a search: fetch what blocks the resources, and build the timelines of the core."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from availability.core.busy_items import BusyItem, blocked_times
from availability.core.intervals import Intervals
from availability.core.matching import WHOLE, Stretch, range_with_stretches
from availability.core.pacing import closed_starts
from availability.core.periods import local_periods
from availability.core.slots import ResourceTimeline, SlotRequest, TooManySlots, TooManyStarts
from availability.search.availability_query import AvailabilityQuery, SearchResource
from availability.search.queries import (
    ClosedByUnit,
    Pairs,
    PeriodCounts,
    TimeSpan,
    closed_by_limits,
    fetch_blocked_times,
    fetch_booking_counts_per_period,
    fetch_busy,
    fetch_busy_events,
    fetch_starts,
    widen_span,
)
from common.errors import Invalid


class PreparedSearch(NamedTuple):
    """What the core needs. stretches: the timelines for requirements, by stretch."""

    timelines: list[ResourceTimeline]
    slot_request: SlotRequest
    stretches: Mapping[Stretch, Sequence[ResourceTimeline]]


def prepare_search(query: AvailabilityQuery) -> PreparedSearch:
    """Fetch what blocks the resources. At most three queries, however many resources there are."""
    return prepare_part(query, query.whole_span)


def prepare_part(query: AvailabilityQuery, part: TimeSpan) -> PreparedSearch:
    """Prepare the search of a first part of the range."""
    timelines = [timeline_without_busy(query, resource, part) for resource in query.resources]
    parts = ids_by_stretch(query)
    wide = TimeSpan(*range_with_stretches(*part, parts))
    obstacles = fetch_obstacles(query, query.resources, wide)
    timelines = [obstacles.add_to(timeline, query) for timeline in timelines]
    stretches: dict[Stretch, Sequence[ResourceTimeline]] = {WHOLE: timelines}
    for stretch in parts.keys() - {WHOLE}:
        stretches[stretch] = [
            obstacles.add_to(_timeline_of_part(each, wide), query, has_limits=False)
            for each in query.resources
            if each.id in parts[stretch]
        ]
    return PreparedSearch(timelines, slot_request_of(query, part), stretches)


def ids_by_stretch(query: AvailabilityQuery) -> dict[Stretch, set[uuid.UUID]]:
    found: dict[Stretch, set[uuid.UUID]] = {}
    for requirement in chain.from_iterable(query.alternatives):
        found.setdefault(requirement.stretch, set()).update(requirement.ids)
    return found


def _timeline_of_part(resource: SearchResource, whole: TimeSpan) -> ResourceTimeline:
    """The timeline for a part of a booking, which keeps the resource's own rules alone."""
    return ResourceTimeline(
        key=resource,
        zone=resource.zone,
        rules=(resource.rules,),
        busy=(),
        closed=resource.closed_in(whole),
    )


def timeline_without_busy(
    query: AvailabilityQuery, resource: SearchResource, whole: TimeSpan
) -> ResourceTimeline:
    closed = [
        *query.closed_by_request.get(resource.zone, ()),
        *_uncovered_parts(whole, query.spans[resource.zone]),
        *resource.closed_in(whole),
        *([whole] if query.unfitness_of(resource) else ()),
    ]
    return ResourceTimeline(
        key=resource,
        zone=resource.zone,
        rules=query.grid_rules(resource) if query.bounds else query.rule_lists(resource),
        busy=(),
        closed=sorted(closed),
        windows=query.terms.windows,
    )


def with_busy(
    timelines: Sequence[ResourceTimeline], query: AvailabilityQuery, whole: TimeSpan
) -> list[ResourceTimeline]:
    """Return the timelines with their busy time and the periods closed by a limit."""
    obstacles = fetch_obstacles(query, [timeline.key for timeline in timelines], whole)
    return [obstacles.add_to(timeline, query) for timeline in timelines]


class TimelineObstacles(NamedTuple):
    """By resource id: busy spans whose buffers are those of the query; where no booking may lie
    because of others; the periods closed by a limit.
    """

    busy: Mapping[uuid.UUID, Pairs]
    blocked: Mapping[uuid.UUID, Pairs]
    closed: Mapping[uuid.UUID, ClosedByUnit]

    def add_to(
        self, timeline: ResourceTimeline, query: AvailabilityQuery, *, has_limits: bool = True
    ) -> ResourceTimeline:
        resource = timeline.key
        limits = self.closed.get(resource.id, {}) if has_limits else {}
        return timeline._replace(
            busy=_with_external_busy(self.busy.get(resource.id, []), query, resource),
            closed=sorted(
                chain(timeline.closed, *limits.values(), self.blocked.get(resource.id, ()))
            ),
        )

    def near(self, span: TimeSpan) -> "TimelineObstacles":
        """Return those that overlap the span."""

        def overlapping(pairs: Pairs) -> Pairs:
            return [(start, end) for start, end in pairs if start < span.end and end > span.start]

        return TimelineObstacles(
            {key: overlapping(pairs) for key, pairs in self.busy.items()},
            {key: overlapping(pairs) for key, pairs in self.blocked.items()},
            {
                key: {unit: overlapping(pairs) for unit, pairs in by_unit.items()}
                for key, by_unit in self.closed.items()
            },
        )


def fetch_obstacles(
    query: AvailabilityQuery, resources: Sequence[SearchResource], whole: TimeSpan
) -> TimelineObstacles:
    """Fetch what blocks the resources in a range of any length."""
    busy, blocked = _fetch_busy(query, resources, whole)
    closed = closed_by_booking_limits(query, resources, whole)
    return TimelineObstacles(busy, blocked, closed)


def _fetch_busy(
    query: AvailabilityQuery, resources: Sequence[SearchResource], whole: TimeSpan
) -> tuple[dict[uuid.UUID, Pairs], dict[uuid.UUID, Pairs]]:
    """Return, by resource id, the busy spans whose buffers are those of the query, and where no
    booking may lie because of others. One query for each of the three kinds of resources.
    """
    terms, kept = query.terms, _busy_query_options(query)
    shared = [resource for resource in resources if resource.capacity > 1]
    single = [resource for resource in resources if resource.capacity == 1]
    counts_own = not terms.ignores_buffers
    buffered = [resource for resource in single if counts_own and resource.longest_buffer]
    plain = ids_of([one for one in single if not (counts_own and one.longest_buffer)])
    busy, blocked = {}, {}
    if plain or not (shared or buffered):
        busy = fetch_busy(plain, widen_span(whole, terms.buffers.longest), **kept)
    if buffered:
        longest = max(resource.longest_buffer for resource in buffered)
        blocked = fetch_blocked_times(
            ids_of(buffered), whole, terms.buffers, longest_buffer=longest, **kept
        )
    if shared:
        items = fetch_busy_items(replace(query, resources=shared, external_busy={}), whole)
        blocked |= {
            key: blocked_times(found, terms.buffers, query.quantity) for key, found in items.items()
        }
    return busy, blocked


def ids_of(resources: Sequence[SearchResource]) -> list[uuid.UUID]:
    return [resource.id for resource in resources]


def _busy_query_options(query: AvailabilityQuery) -> dict[str, Any]:
    """Return which rows count, for the functions of search_queries."""
    return {
        "now": query.now,
        "ignore_all_day": query.terms.ignore_all_day_events,
        "without": query.without,
    }


def slot_request_of(query: AvailabilityQuery, whole: TimeSpan) -> SlotRequest:
    terms = query.terms
    return SlotRequest(
        start=whole.start,
        end=whole.end,
        length=terms.length,
        buffer=terms.buffers.longest,
        increment=terms.increment,
        not_before=None if terms.include_past else int(query.now.timestamp()),
        closed_starts=tuple(closed_starts_of(query, whole)),
    )


def closed_starts_of(query: AvailabilityQuery, span: TimeSpan) -> Intervals:
    """Return where no booking of the project may start because of its pace; [] without one."""
    pace = query.terms.pace
    if pace is None:
        return []
    return closed_starts(starts_near(query, span), pace, query.quantity, span.start, span.end + 1)


def starts_near(query: AvailabilityQuery, span: TimeSpan) -> list[int]:
    """Return the starts of the project's bookings that count for the pace in the span."""
    if query.terms.pace is None or query.project_id is None:
        return []
    around = widen_span(span, query.terms.pace.seconds)
    around = around._replace(end=around.end + 1)
    return fetch_starts(query.project_id, around, now=query.now, without=query.without)


def _with_external_busy(busy: Pairs, query: AvailabilityQuery, resource: SearchResource) -> Pairs:
    spans = query.external_busy.get(resource.id)
    return sorted([*busy, *spans]) if spans else busy


def count_bookings_per_period(
    query: AvailabilityQuery, resources: Collection[SearchResource], span: TimeSpan
) -> PeriodCounts:
    """Count the project's bookings per resource and local period; {} without a limit."""
    if not query.terms.limits or query.project_id is None:
        return {}
    return fetch_booking_counts_per_period(
        {resource.id: resource.zone for resource in resources},
        span,
        query.terms.limited_period_units,
        project_id=query.project_id,
        now=query.now,
        without=query.without,
    )


def closed_by_booking_limits(
    query: AvailabilityQuery, resources: Collection[SearchResource], span: TimeSpan
) -> dict[uuid.UUID, ClosedByUnit]:
    counts = count_bookings_per_period(query, resources, span)
    return closed_by_counts(query, resources, span, counts)


def closed_by_counts(
    query: AvailabilityQuery,
    resources: Collection[SearchResource],
    span: TimeSpan,
    counts: PeriodCounts,
) -> dict[uuid.UUID, ClosedByUnit]:
    closed = {}
    for resource in resources:
        found = counts.get(resource.id, {})
        for unit, most in query.terms.limits:
            if query.quantity > most:  # even where nothing is booked
                periods = local_periods(*span, resource.zone, unit)
                found = {**dict.fromkeys(periods, 0), **found}
        if found:
            limits = query.terms.limits
            closed[resource.id] = closed_by_limits(found, resource.zone, limits, query.quantity)
    return closed


def _uncovered_parts(whole: TimeSpan, covered: TimeSpan) -> list[tuple[int, int]]:
    """Return the rest of `whole`, if any: the ranges of two zones differ by some hours."""
    edges = ((whole.start, covered.start), (covered.end, whole.end))
    return [(start, end) for start, end in edges if start < end]


def fetch_busy_items(query: AvailabilityQuery, span: TimeSpan) -> dict[uuid.UUID, list[BusyItem]]:
    """Return the busy items, with ids, in the span or so close that buffers reach it."""
    busy = fetch_busy_events(
        ids_of(query.resources),
        span,
        buffers=None if query.terms.ignores_buffers else query.terms.buffers,
        **_busy_query_options(query),
    )
    # Busy time from `external_busy` blocks as an event does, but has no id.
    for resource in query.resources:
        for start, end in query.external_busy.get(resource.id, ()):
            busy.setdefault(resource.id, []).append(BusyItem(start, end, "event", None))
    return busy


@contextmanager
def refuse_too_many_slots() -> Iterator[None]:
    """Raise Invalid for the errors of the core."""
    try:
        yield
    except TooManyStarts as error:
        text = "Too many starts for so many resources: request a shorter range."
        raise Invalid.at("to", text) from error
    except TooManySlots as error:
        raise Invalid.at("to", "More than 100,000 slots: request a shorter range.") from error
