"""Search for visits: the steps of a booking, each with its time and resources."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from availability.core.slots import ResourceTimeline, SlotRequest, find_starts
from availability.core.visits import Placement, Visit, find_visits, placements_at, possible_starts
from availability.search.availability_query import AvailabilityQuery, SearchResource
from availability.search.preparation import (
    PreparedSearch,
    TimelineObstacles,
    fetch_obstacles,
    prepare_search,
    refuse_too_many_slots,
    slot_request_of,
    timeline_without_busy,
)
from availability.search.queries import TimeSpan, widen_span
from common.time.instants import format_instant, to_datetime


class SlotStep(NamedTuple):
    name: str
    start: int
    end: int
    resources: tuple[SearchResource, ...]


class VisitSlot(NamedTuple):
    """A slot of a visit. resources: those of all steps, each once."""

    start: int
    end: int
    resources: tuple[SearchResource, ...]
    steps: tuple[SlotStep, ...]


def search_visits(query: AvailabilityQuery) -> list[VisitSlot]:
    """Return the slots of the query's visit, sorted by start. Raises Invalid as `search_slots`."""
    if not query.resources:
        return []
    with refuse_too_many_slots():
        return find_visit_slots(query, prepare_search(query))


def find_visit_slots(query: AvailabilityQuery, prepared: PreparedSearch) -> list[VisitSlot]:
    if query.visit is None:
        raise ValueError("the query has no visit")
    timelines, slot_request, _ = prepared
    by_id = {timeline.key.id: timeline for timeline in timelines}
    resources = {timeline.key.id: timeline.key for timeline in timelines}
    return [
        _visit_slot(placement, resources)
        for placement in find_visits(by_id, slot_request, query.visit, fixed=query.fixed)
    ]


def _visit_slot(placement: Placement, resources: Mapping[uuid.UUID, SearchResource]) -> VisitSlot:
    steps = tuple(
        SlotStep(
            placed.name,
            placed.start,
            placed.end,
            tuple(resources[each.id] for each in placed.chosen),
        )
        for placed in placement
    )
    every = dict.fromkeys(chain.from_iterable(step.resources for step in steps))
    return VisitSlot(steps[0].start, steps[-1].end, tuple(every), steps)


def place_visit_at(
    query: AvailabilityQuery, start: int, end: int | None, *, counts_busy: bool = True
) -> Placement | None:
    """Return a visit from `start` to `end`; on the grid, one that a search offers. None if there is
    none.

    end: None for any. Minimum notice and booking window are not checked here. counts_busy: else
    only rules count.
    """
    if query.visit is None:
        raise ValueError("the query has no visit")
    latest = start + query.visit.longest if end is None else end
    timelines, slot_request = _prepare_visit(query, start, latest, counts_busy=counts_busy)
    return _find_placement(query, query.visit, timelines, slot_request, start, end)


class VisitSearch:
    """Places a visit at several times of a range; what blocks its resources is read once.

    The pace of the project does not count here, nor do minimum notice and booking window.
    """

    def __init__(self, query: AvailabilityQuery, whole: TimeSpan, *, counts_busy: bool) -> None:
        """Read what blocks the query's resources in the range. counts_busy: else only rules do."""
        self.query = replace(query, terms=replace(query.terms, pace=None))
        self._obstacles = (
            fetch_obstacles(self.query, query.resources, whole)
            if counts_busy
            else TimelineObstacles({}, {}, {})
        )

    def place(
        self, visit: Visit, span: TimeSpan, *, without: Collection[uuid.UUID] = ()
    ) -> Placement | None:
        """Return the visit from the start to the end of the span, without these resources; None if
        there is none.
        """
        resources = [each for each in self.query.resources if each.id not in without]
        if not resources:
            return None
        query = _query_of_time(replace(self.query, resources=resources, visit=visit), *span)
        whole = query.whole_span
        near = self._obstacles.near(widen_span(whole, query.terms.buffers.longest))
        timelines = {
            each.id: near.add_to(timeline_without_busy(query, each, whole), query)
            for each in resources
        }
        slot_request = slot_request_of(query, whole)
        return _find_placement(query, visit, timelines, slot_request, *span)


def _find_placement(
    query: AvailabilityQuery,
    visit: Visit,
    timelines: Mapping[uuid.UUID, ResourceTimeline],
    slot_request: SlotRequest,
    start: int,
    end: int | None,
) -> Placement | None:
    placements = placements_at(
        timelines,
        slot_request,
        visit,
        start,
        end=None if query.on_grid else end,
        fixed=query.fixed,
    )
    found = (each for each in placements if end in (None, each[-1].end))
    if query.on_grid:
        found = (each for each in found if _is_on_grid(each, query, timelines, slot_request))
    return next(found, None)


def find_closed_step(query: AvailabilityQuery, start: int, end: int) -> str | None:
    """Return the first step for which no choice of resources is open from `start` to `end`,
    whatever is busy; None if there is none.
    """
    timelines, slot_request = _prepare_visit(query, start, end, counts_busy=False)
    for step in query.visit.steps if query.visit else ():
        if not possible_starts(timelines, slot_request, step):
            return step.name
    return None


def _prepare_visit(
    query: AvailabilityQuery, start: int, end: int, *, counts_busy: bool
) -> tuple[dict[uuid.UUID, ResourceTimeline], SlotRequest]:
    """Prepare the search of one visit, by the rules for bookings but notice and window."""
    query = _query_of_time(query, start, end)
    if counts_busy:
        timelines, slot_request, _ = prepare_search(query)
    else:
        whole = query.whole_span
        timelines = [timeline_without_busy(query, each, whole) for each in query.resources]
        slot_request = slot_request_of(query, whole)
    return {timeline.key.id: timeline for timeline in timelines}, slot_request


def _query_of_time(query: AvailabilityQuery, start: int, end: int) -> AvailabilityQuery:
    terms = replace(
        query.terms,
        length=None,
        lengths=(),
        earliest=format_instant(to_datetime(start)),
        latest=format_instant(to_datetime(end)),
        include_past=True,
    )
    return replace(query, terms=terms, bounds=None, own=None)


def _is_on_grid(
    placement: Placement,
    query: AvailabilityQuery,
    timelines: Mapping[uuid.UUID, ResourceTimeline],
    slot_request: SlotRequest,
) -> bool:
    """Whether a resource of the first step has a slot that starts then."""
    first = placement[0]
    if query.terms.increment is None or query.visit is None:
        return True
    ids = next(step.requirements[0].ids for step in query.visit.steps if step.name == first.name)
    request = slot_request._replace(length=first.end - first.start)
    runs = (find_starts(timelines[each], request) for each in ids if each in timelines)
    return any(first.start in run for run in chain.from_iterable(runs))
