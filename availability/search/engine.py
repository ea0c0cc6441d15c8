"""Search for free time: fetch the rows, run the core. Slot queries and booking checks share it."""

import json
import random
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from apps_config.models import App
from availability.core.busy_items import BusyItem, blocked_times
from availability.core.constraints import (
    ConstraintRule,
    ConstraintRules,
    Windows,
    combine_with_schedule,
    open_windows,
    parse_constraints,
    without_allowing_rules,
)
from availability.core.explain import MAX_REASONS, Cause, Reason, Segment, explain, never_open
from availability.core.fairness import Turn
from availability.core.intervals import Intervals, Span, clip, complement, find_overlaps
from availability.core.matching import (
    NOTHING_FIXED,
    WHOLE,
    Alternatives,
    FixedChoice,
    Stretch,
    find_matched_slots,
    range_with_stretches,
)
from availability.core.pacing import Pace, closed_starts
from availability.core.parties import party_rank
from availability.core.periods import local_periods
from availability.core.slots import (
    MAX_SLOTS,
    FirstFreeSlots,
    ResourceTimeline,
    Slot,
    SlotRequest,
    TooManySlots,
    TooManyStarts,
    ZoneRules,
    find_slots,
    find_starts,
    free_intervals,
    permitted_ends,
    permitted_instants,
    starts_on_grid,
    starts_rules,
)
from availability.core.visits import Placement, Visit, find_visits, place_visit, possible_starts
from availability.core.zones import DAY, local_day_pieces
from availability.models import Project
from availability.search.parameters import SlotParameters, is_too_long
from availability.search.queries import (
    ClosedByUnit,
    Pairs,
    PeriodCounts,
    ResourceRow,
    StaleCalendar,
    TimeSpan,
    closed_by_limits,
    fetch_blocked_times,
    fetch_booking_counts_per_period,
    fetch_busy,
    fetch_busy_events,
    fetch_project_resources,
    fetch_resources,
    fetch_starts,
    has_more_busy_events,
    widen_span,
)
from availability.search.requirements import order_by_party
from common.errors import Invalid
from common.messages import Message, find_message
from common.time.durations import DurationError
from common.time.instants import InstantError, format_instant, to_datetime

MAX_UNITS = 100  # of a resource in one booking: each is a row


@dataclass(frozen=True, slots=True, eq=False)
class SearchResource:
    """A resource as the search needs it. Compares by identity, so that hashing is cheap.

    stale_calendars: its stale connected calendars. is_closed: these leave the resource no free time
    (`App.stale_calendars` is BLOCK). capacity: so many bookings may overlap. longest_buffer: no
    booking of it was made with a longer one. party: how many people it suits, at least and at most.
    """

    id: uuid.UUID
    name: str
    zone: str
    rules: tuple[ConstraintRule, ...]
    stale_calendars: tuple[StaleCalendar, ...] = ()
    is_closed: bool = False
    capacity: int = 1
    longest_buffer: int = 0
    party: tuple[int, int] | None = None

    def without_rules(self) -> "SearchResource":
        """Return a copy without rules: only busy time blocks it."""
        return replace(self, rules=(), is_closed=False)

    def closed_in(self, span: TimeSpan) -> list[tuple[int, int]]:
        return [span] if self.is_closed else []


@lru_cache(maxsize=4096)
def parse_stored_constraints(text: str) -> tuple[ConstraintRule, ...]:
    """Parse the JSON of stored constraints; cached."""
    return parse_constraints(json.loads(text))


@lru_cache(maxsize=4096)
def resource_rules(constraints: str, schedule: str | None) -> tuple[ConstraintRule, ...]:
    """Return a resource's rules, over those of its schedule (both JSON); cached."""
    own = parse_stored_constraints(constraints)
    if schedule is None:
        return own
    return combine_with_schedule(own, parse_stored_constraints(schedule))


def load_resources(app: App, ids: Sequence[uuid.UUID], *, now: datetime) -> list[SearchResource]:
    """Return the app's resources in the order of `ids`; unknown ids are left out."""
    return [_bookable(row, app) for row in fetch_resources(app.id, ids, now=now)]


def load_project_resources(app: App, project: Project, *, now: datetime) -> list[SearchResource]:
    """Return the resources of the app's project, in the project's order."""
    return [_bookable(row, app) for row in fetch_project_resources(app.id, project.id, now=now)]


def _bookable(row: ResourceRow, app: App) -> SearchResource:
    return SearchResource(
        row.id,
        row.name,
        row.zone,
        resource_rules(row.constraints, row.schedule),
        row.stale_calendars,
        bool(row.stale_calendars) and app.stale_calendars == App.BLOCK,
        row.capacity,
        row.longest_buffer,
        None if row.party_min is None or row.party_max is None else (row.party_min, row.party_max),
    )


def project_rules(project: Project) -> tuple[ConstraintRule, ...]:
    """Return the project's own constraints."""
    return parse_stored_constraints(json.dumps(project.availability_constraints))


ExternalBusy = Mapping[
    uuid.UUID, Sequence[TimeSpan]
]  # busy time from external calendars, by resource id


@dataclass(frozen=True)
class AvailabilityQuery:
    """The parameters of a search for free time.

    own: the project's parameters, whose `from` and `to` (minimum notice and booking window) a
    booking must keep. bounds: parameters whose range the request may only narrow (the project's,
    for a widget key); the request's rules then do not move the grid of starts. on_grid: a booking
    must start on the grid (a public caller's). without: ids of events and holds to ignore, such as
    those of a booking being moved. external_busy: busy time that has no rows in the database.
    turns: of the mode roundrobin_fair. alternatives: a slot needs a choice of the resources of one
    of them; `fixed` are among them. visit: a slot has its steps, whose lengths replace `length`.
    quantity: the units of a resource that a booking takes. party_size: the people who come, whom
    its resources have to suit.
    """

    resources: Sequence[SearchResource]
    terms: SlotParameters
    now: datetime
    project_id: uuid.UUID | None = None
    own: SlotParameters | None = None
    bounds: SlotParameters | None = None
    on_grid: bool = False
    without: Collection[uuid.UUID] = ()
    external_busy: ExternalBusy = field(default_factory=dict)
    turns: Mapping[uuid.UUID, Turn] = field(default_factory=dict)
    alternatives: Alternatives = ()
    visit: Visit | None = None
    fixed: FixedChoice = NOTHING_FIXED
    quantity: int = 1
    party_size: int | None = None

    @cached_property
    def spans(self) -> Mapping[str, TimeSpan]:
        """The range by zone of the resources. Raises Invalid on `from` or `to`."""
        return {zone: self._span(zone) for zone in self._zones}

    def _span(self, zone: str) -> TimeSpan:
        start, end = self._read_span(self.terms, zone)
        if self.bounds:
            return self._intersect_with_bounds(TimeSpan(start, end), self.bounds, zone)
        if end <= start:
            raise Invalid.at("to", "Must be after `from`.")
        if is_too_long(start, end, zone):
            raise Invalid.at("to", "Must be at most 366 days after `from`.")
        return TimeSpan(self.terms.rounded_range_start(start, end, zone), end)

    def _intersect_with_bounds(
        self, asked: TimeSpan, bounds: SlotParameters, zone: str
    ) -> TimeSpan:
        """Return the intersection of the requested range and that of `bounds`; it may be empty."""
        least, most = self._read_span(bounds, zone)
        least = bounds.rounded_range_start(least, most, zone)
        start = min(max(self.terms.rounded_range_start(*asked, zone), least), most)
        return TimeSpan(start, max(start, min(asked.end, most)))

    @cached_property
    def closed_by_request(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """By zone, what the rules of a request with `bounds` close; {} if there are none.

        As rules of each resource they would move the grid of starts, and the slots could not be
        booked. Expanded once for all resources of a zone.
        """
        whole = self.whole_span
        if not self.bounds or not any(self.terms.extra) or whole.start == whole.end:
            return {}
        return {
            zone: complement(open_windows(self.terms.extra, zone, *whole), *whole)
            for zone in self.spans
        }

    @property
    def whole_span(self) -> TimeSpan:
        """The range of all zones together. Raises Invalid as `spans`, ValueError without
        resources.
        """
        spans = self.spans.values()
        return TimeSpan(min(span.start for span in spans), max(span.end for span in spans))

    @cached_property
    def bookable_spans(self) -> Mapping[str, TimeSpan]:
        """The project's bookable range by zone, not rounded; {} without a project.

        From the minimum notice (0: none) to the end of the booking window. Raises Invalid on
        `from`.
        """
        if self.own is None:
            return {}
        spans = {zone: self._read_span(self.own, zone) for zone in self._zones}
        if self.own.earliest == "now":
            return {zone: span._replace(start=0) for zone, span in spans.items()}
        return spans

    @cached_property
    def is_common_start(self) -> Callable[[int], bool]:
        """Whether the grid of all resources together has the start: one answer for all of them."""
        rules = [self.start_rules(each) for each in self.resources]
        increment = self.terms.increment or 1
        return lru_cache(maxsize=None)(lambda start: starts_on_grid(rules, start, increment))

    @property
    def _zones(self) -> set[str]:
        return {resource.zone for resource in self.resources}

    def _read_span(self, terms: SlotParameters, zone: str) -> TimeSpan:
        try:
            return TimeSpan(*terms.span(self.now, zone))
        except (DurationError, InstantError) as error:
            raise Invalid({"from": [find_message(error)]}) from error

    @property
    def takes_several_resources(self) -> bool:
        """Whether a booking takes several resources at once, one unit of each."""
        return bool(self.alternatives or self.visit) or self.terms.mode == "mutual"

    def unfitness_of(self, resource: SearchResource) -> Reason | None:
        """Why the resource can take no such booking at any time; None if it can."""
        if self.quantity > resource.capacity:
            return too_small(resource.capacity)
        if self.party_size and resource.party:
            least, most = resource.party
            if not least <= self.party_size <= most:
                text = Message("Is for %(least)s to %(most)s people.", least=least, most=most)
                return Reason("limit", "resource", (), None, text)
        return None

    def rule_lists(self, resource: SearchResource) -> tuple[tuple[ConstraintRule, ...], ...]:
        return (*self.grid_rules(resource), *self.terms.extra)

    def grid_rules(self, resource: SearchResource) -> tuple[tuple[ConstraintRule, ...], ...]:
        """The rules that a booking is checked by, without those of the request.

        With windows for start and end, the time between need not be open.
        """
        if self.terms.windows:
            lists = (resource.rules, self.terms.constraints)
            return tuple(without_allowing_rules(rules) for rules in lists)
        return (resource.rules, self.terms.constraints)

    def start_rules(self, resource: SearchResource) -> ZoneRules:
        """The rules from whose openings the grid of starts counts."""
        return starts_rules(self.grid_rules(resource), self.terms.windows), resource.zone


def too_small(capacity: int) -> Reason:
    """The reason why a resource never takes a booking of more units."""
    text = (
        Message("Has only one place.")
        if capacity == 1
        else Message("Has only %(count)s places.", count=capacity)
    )
    return Reason("capacity", "resource", (), None, text)


def for_party(query: AvailabilityQuery) -> AvailabilityQuery:
    """Return the query with the resources for small parties first, if it is for a party."""
    if not query.party_size:
        return query
    parties = {each.id: each.party for each in query.resources if each.party}
    resources = sorted(query.resources, key=lambda each: party_rank(each.party))
    alternatives = order_by_party(query.alternatives, parties)
    return replace(query, resources=resources, alternatives=alternatives)


class PreparedSearch(NamedTuple):
    """What the core needs. stretches: the timelines for requirements, by stretch."""

    timelines: list[ResourceTimeline]
    slot_request: SlotRequest
    stretches: Mapping[Stretch, Sequence[ResourceTimeline]]


def prepare_search(query: AvailabilityQuery) -> PreparedSearch:
    """Fetch what blocks the resources. At most three queries, however many resources there are."""
    return _prepare_part(query, query.whole_span)


def _prepare_part(query: AvailabilityQuery, part: TimeSpan) -> PreparedSearch:
    """Prepare the search of a first part of the range."""
    timelines = [_timeline_without_busy(query, resource, part) for resource in query.resources]
    parts = _ids_by_stretch(query)
    wide = TimeSpan(*range_with_stretches(*part, parts))
    obstacles = _fetch_obstacles(query, query.resources, wide)
    timelines = [obstacles.add_to(timeline, query) for timeline in timelines]
    stretches: dict[Stretch, Sequence[ResourceTimeline]] = {WHOLE: timelines}
    for stretch in parts.keys() - {WHOLE}:
        stretches[stretch] = [
            obstacles.add_to(_timeline_of_part(each, wide), query, has_limits=False)
            for each in query.resources
            if each.id in parts[stretch]
        ]
    return PreparedSearch(timelines, _slot_request(query, part), stretches)


def _ids_by_stretch(query: AvailabilityQuery) -> dict[Stretch, set[uuid.UUID]]:
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


def _timeline_without_busy(
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


def _with_busy(
    timelines: Sequence[ResourceTimeline], query: AvailabilityQuery, whole: TimeSpan
) -> list[ResourceTimeline]:
    """Return the timelines with their busy time and the periods closed by a limit."""
    obstacles = _fetch_obstacles(query, [timeline.key for timeline in timelines], whole)
    return [obstacles.add_to(timeline, query) for timeline in timelines]


class _TimelineObstacles(NamedTuple):
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


def _fetch_obstacles(
    query: AvailabilityQuery, resources: Sequence[SearchResource], whole: TimeSpan
) -> _TimelineObstacles:
    busy, blocked = _fetch_busy(query, resources, whole)
    closed = _closed_by_booking_limits(query, resources, whole)
    return _TimelineObstacles(busy, blocked, closed)


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
    plain = _ids([one for one in single if not (counts_own and one.longest_buffer)])
    busy, blocked = {}, {}
    if plain or not (shared or buffered):
        busy = fetch_busy(plain, widen_span(whole, terms.buffers.longest), **kept)
    if buffered:
        longest = max(resource.longest_buffer for resource in buffered)
        blocked = fetch_blocked_times(
            _ids(buffered), whole, terms.buffers, longest_buffer=longest, **kept
        )
    if shared:
        items = fetch_busy_items(replace(query, resources=shared, external_busy={}), whole)
        blocked |= {
            key: blocked_times(found, terms.buffers, query.quantity) for key, found in items.items()
        }
    return busy, blocked


def _ids(resources: Sequence[SearchResource]) -> list[uuid.UUID]:
    return [resource.id for resource in resources]


def _busy_query_options(query: AvailabilityQuery) -> dict[str, Any]:
    """Return which rows count, for the functions of search_queries."""
    return {
        "now": query.now,
        "ignore_all_day": query.terms.ignore_all_day_events,
        "without": query.without,
    }


def _slot_request(query: AvailabilityQuery, whole: TimeSpan) -> SlotRequest:
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


def _closed_by_booking_limits(
    query: AvailabilityQuery, resources: Collection[SearchResource], span: TimeSpan
) -> dict[uuid.UUID, ClosedByUnit]:
    counts = count_bookings_per_period(query, resources, span)
    return _closed_by_counts(query, resources, span, counts)


def _closed_by_counts(
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


def search_slots(query: AvailabilityQuery, *, mode: str | None = None) -> list[Slot]:
    """Return the slots sorted by start.

    Raises Invalid on `to` for more than 100,000 slots, in the modes mutual and exclusive for more
    than 100,000 pairs of slot and resource; in the other modes also if the resources together have
    more than three million starts.
    """
    if not query.resources:
        return []
    mode = mode or query.terms.mode
    with _refuse_too_many_slots():
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
        return [slot[:3] for slot in _find_visit_slots(query, prepared)]
    if not query.alternatives:
        return find_slots(mode, timelines, slot_request)
    return find_matched_slots(
        stretches, slot_request, alternatives=query.alternatives, fixed=query.fixed
    )


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
    with _refuse_too_many_slots():
        return _find_visit_slots(query, prepare_search(query))


def _find_visit_slots(query: AvailabilityQuery, prepared: PreparedSearch) -> list[VisitSlot]:
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
    """Return the visit from `start` to `end` that a search offers; None if it offers none.

    end: None for any. Minimum notice and booking window are not checked here. counts_busy: else
    only rules count.
    """
    if query.visit is None:
        raise ValueError("the query has no visit")
    # With a later end, a step might take an earlier time that leaves the next ones a later one.
    latest = start + query.visit.longest if end is None else end
    timelines, slot_request = _prepare_visit(query, start, latest, counts_busy=counts_busy)
    placement = place_visit(timelines, slot_request, query.visit, start, fixed=query.fixed)
    if placement is None or end not in (None, placement[-1].end):
        return None
    is_on_grid = not query.on_grid or _visit_is_on_grid(query, placement)
    return placement if is_on_grid else None


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
    terms = replace(
        query.terms,
        length=None,
        lengths=(),
        earliest=format_instant(to_datetime(start)),
        latest=format_instant(to_datetime(end)),
        include_past=True,
    )
    query = replace(query, terms=terms, bounds=None, own=None)
    if counts_busy:
        timelines, slot_request, _ = prepare_search(query)
    else:
        whole = query.whole_span
        timelines = [_timeline_without_busy(query, each, whole) for each in query.resources]
        slot_request = _slot_request(query, whole)
    return {timeline.key.id: timeline for timeline in timelines}, slot_request


def _visit_is_on_grid(query: AvailabilityQuery, placement: Placement) -> bool:
    """Whether a resource of the first step has a slot that starts then."""
    increment, first = query.terms.increment, placement[0]
    if increment is None or query.visit is None:
        return True
    ids = next(step.requirements[0].ids for step in query.visit.steps if step.name == first.name)
    return any(
        starts_on_grid([query.start_rules(each)], first.start, increment)
        for each in query.resources
        if each.id in ids
    )


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
        limits = _closed_by_counts(query, [resource], whole, counts).get(resource.id, {})
        busy = blocked_times(self._busy.get(resource.id, []), query.terms.buffers, quantity)
        timeline = _timeline_without_busy(query, resource, whole)
        closed = sorted(chain(timeline.closed, *limits.values(), busy))
        request = SlotRequest(*whole, length=None)
        return free_intervals(timeline._replace(closed=closed), request)


@contextmanager
def _refuse_too_many_slots() -> Iterator[None]:
    """Raise Invalid for the errors of the core."""
    try:
        yield
    except TooManyStarts as error:
        text = "Too many starts for so many resources: request a shorter range."
        raise Invalid.at("to", text) from error
    except TooManySlots as error:
        raise Invalid.at("to", "More than 100,000 slots: request a shorter range.") from error


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
    with _refuse_too_many_slots():
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
    slots = FirstFreeSlots(_slot_request(query, whole))
    first, size = 0, FIRST_BATCH if slots.has_fixed_starts else len(resources)
    while first < len(resources):
        batch = [
            timeline
            for resource in resources[first : first + size]
            if slots.can_add(timeline := _timeline_without_busy(query, resource, whole))
        ]
        if batch:
            for timeline, blocked in zip(batch, _with_busy(batch, query, whole), strict=True):
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
            slots = _find_slots(query, _prepare_part(query, TimeSpan(start, until)), mode)
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


class Explanation(NamedTuple):
    """One resource's segments, consecutive over the whole range."""

    resource: SearchResource
    segments: list[Segment]
    never_open: bool
    turn: Turn | None = None  # of the mode roundrobin_fair


TOO_MUCH_TO_EXPLAIN = "Too much to explain: request a shorter range."


def explain_query(query: AvailabilityQuery) -> list[Explanation]:
    """Explain the whole range of the query, per resource.

    Raises Invalid as `search_slots` does, and for more than MAX_REASONS events or reasons of all
    resources together.
    """
    if not query.resources:
        return []
    whole = query.whole_span
    if has_more_busy_events(_ids(query.resources), whole, than=MAX_REASONS):
        raise Invalid.at("to", TOO_MUCH_TO_EXPLAIN)
    obstacles = Obstacles(
        fetch_busy_items(query, whole),
        _closed_by_booking_limits(query, query.resources, whole),
        closed_starts_of(query, whole),
    )
    left, found = MAX_REASONS, []
    for resource in query.resources:
        span = query.spans[resource.zone]
        try:
            segments = explain_time(
                query, resource, span, obstacles, limit=left, starts=_closed_to_starts
            )
        except TooManySlots as error:
            raise Invalid.at("to", TOO_MUCH_TO_EXPLAIN) from error
        left -= sum(len(segment.reasons) for segment in segments)
        is_never_open = never_open(resource.zone, query.rule_lists(resource), *span)
        found.append(Explanation(resource, segments, is_never_open, query.turns.get(resource.id)))
    return found


def possible_starts_of_steps(query: AvailabilityQuery) -> list[tuple[str, Intervals]]:
    """Return, for each step of the query's visit, when it could start, seen alone."""
    if query.visit is None or not query.resources:
        return []
    timelines, slot_request, _ = prepare_search(query)
    by_id = {timeline.key.id: timeline for timeline in timelines}
    return [(step.name, possible_starts(by_id, slot_request, step)) for step in query.visit.steps]


class RequirementTimes(NamedTuple):
    """When enough resources of a requirement are free, whatever the others take.

    alternative: the number of the alternative that has it, from 1 on.
    """

    alternative: int
    name: str
    free: Sequence[tuple[int, int]]


def free_times_of_requirements(
    query: AvailabilityQuery, explanations: Sequence[Explanation]
) -> list[RequirementTimes]:
    """Return, for each requirement, when enough of its resources are free, each seen alone.

    A part of a booking keeps the rules of its resource alone: its times are not those of the
    explanations. At most three queries more.
    """
    free: dict[tuple[Stretch, uuid.UUID], Sequence[tuple[int, int]]] = {
        (WHOLE, each.resource.id): [
            (part.start, part.end) for part in each.segments if part.available
        ]
        for each in explanations
    }
    if _ids_by_stretch(query).keys() - {WHOLE}:
        free |= _free_times_of_parts(query)
    return [
        RequirementTimes(
            number,
            requirement.name,
            find_overlaps(
                chain.from_iterable(
                    free.get((requirement.stretch, each), ()) for each in requirement.ids
                ),
                requirement.number,
            ),
        )
        for number, requirements in enumerate(query.alternatives, start=1)
        for requirement in requirements
    ]


def _free_times_of_parts(query: AvailabilityQuery) -> dict[tuple[Stretch, uuid.UUID], Intervals]:
    prepared = prepare_search(query)
    slot_request = prepared.slot_request._replace(length=None)
    return {
        (stretch, timeline.key.id): free_intervals(timeline, slot_request)
        for stretch, timelines in prepared.stretches.items()
        if stretch != WHOLE
        for timeline in timelines
    }


class Obstacles(NamedTuple):
    """By resource id: busy events and holds, and the periods closed by a limit; for all resources,
    where the project's pace lets no booking start.
    """

    busy: dict[uuid.UUID, list[BusyItem]]
    closed: dict[uuid.UUID, ClosedByUnit]
    closed_starts: Sequence[Span] = ()


def fetch_busy_items(query: AvailabilityQuery, span: TimeSpan) -> dict[uuid.UUID, list[BusyItem]]:
    """Return the busy items, with ids, in the span or so close that buffers reach it."""
    busy = fetch_busy_events(
        _ids(query.resources),
        span,
        buffers=None if query.terms.ignores_buffers else query.terms.buffers,
        **_busy_query_options(query),
    )
    # Busy time from `external_busy` blocks as an event does, but has no id.
    for resource in query.resources:
        for start, end in query.external_busy.get(resource.id, ()):
            busy.setdefault(resource.id, []).append(BusyItem(start, end, "event", None))
    return busy


def explain_time(
    query: AvailabilityQuery,
    resource: SearchResource,
    span: TimeSpan,
    obstacles: Obstacles,
    *,
    limit: int = MAX_REASONS,
    starts: Callable[..., Sequence[Cause]] | None = None,
) -> list[Segment]:
    """Explain one resource's time; notice and booking window are not rounded, as in the check.

    starts: returns why no booking can start where it is free. Raises TooManySlots above `limit`
    reasons.
    """
    notice, horizon = query.bookable_spans.get(resource.zone, (None, None))
    return explain(
        zone=resource.zone,
        rules=query.rule_lists(resource),
        busy=obstacles.busy.get(resource.id, []),
        closed=obstacles.closed.get(resource.id, {}),
        start=span.start,
        end=span.end,
        buffers=query.terms.buffers,
        quantity=query.quantity,
        past_before=None if query.terms.include_past else int(query.now.timestamp()),
        notice_before=notice,
        horizon_after=horizon,
        throughout=_reasons_of_whole_range(query, resource),
        others=starts(query, resource, span, obstacles) if starts else (),
        limit=limit,
    )


def _closed_to_starts(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> list[Cause]:
    causes: list[Cause] = []
    if query.terms.pace:
        causes.append((_too_many_starts(query.terms.pace), obstacles.closed_starts))
    windows = query.terms.windows
    if windows and windows.start is not None:
        opened = permitted_instants(windows.start, resource.zone, *span)
        causes.append((_outside_window("start", windows.start), complement(opened, *span)))
    return causes


def _too_many_starts(pace: Pace) -> Reason:
    text = Message(
        "At most %(count)s bookings start within %(length)s.",
        count=pace.quantity,
        length=_length_text(pace.seconds),
    )
    return Reason("limit", "project", (), None, text)


_WINDOW_TEXTS = {
    "start": Message("Bookings can't start at this time."),
    "end": Message("Bookings can't end at this time."),
}


def _outside_window(side: str, rules: ConstraintRules) -> Reason:
    return Reason("constraint", "project", rules, None, _WINDOW_TEXTS[side])


def _find_window_faults(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> list[Reason]:
    """Return why no booking may start or end then, by the project's windows and pace."""
    reasons = []
    start, end = query.terms.windows or Windows()
    zone = resource.zone
    if start is not None and not permitted_instants(start, zone, span.start, span.start + 1):
        reasons.append(_outside_window("start", start))
    if end is not None and not permitted_ends(end, zone, span.end, span.end + 1):
        reasons.append(_outside_window("end", end))
    if query.terms.pace and clip(obstacles.closed_starts, span.start, span.start + 1):
        reasons.append(_too_many_starts(query.terms.pace))
    return reasons


def _reasons_of_whole_range(query: AvailabilityQuery, resource: SearchResource) -> list[Reason]:
    stale = resource.stale_calendars if resource.is_closed else ()
    unfitness = query.unfitness_of(resource)
    reasons = [_calendar_reason(calendar, resource) for calendar in stale]
    return [*reasons, unfitness] if unfitness else reasons


def _calendar_reason(calendar: StaleCalendar, resource: SearchResource) -> Reason:
    return Reason(
        "calendar",
        None,
        (),
        None,
        stale_calendar_text(calendar, resource.zone),
        calendar_id=calendar.id,
        public_text=stale_calendar_text(calendar, resource.zone, is_public=True),
    )


def stale_calendar_text(calendar: StaleCalendar, zone: str, *, is_public: bool = False) -> str:
    """Return one sentence, with the time in `zone`; the public text omits the calendar's name."""
    subject = "An external calendar" if is_public else f'The external calendar "{calendar.name}"'
    if calendar.synced_at is None:
        return f"{subject} has never synced."
    return f"{subject} has not synced since {format_instant(calendar.synced_at, zone)}."


def find_unavailability(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> list[Reason]:
    """Return the reasons why `span` can't be booked on `resource`; [] if it is entirely free.

    Uses the core of slot queries. Reasons cost more than a yes or no: computed only if not free.
    """
    if not query.terms.permits_length(span.end - span.start):
        return [_wrong_length(query.terms)]
    if query.on_grid and not _is_on_grid(query, resource, span.start):
        return [_OFF_GRID]
    if is_free(query, resource, span, obstacles):
        return []
    try:
        segments = explain_time(query, resource, span, obstacles)
    except TooManySlots:
        return [Reason("constraint", None, (), None, Message("Breaks too many rules to list."))]
    reasons = _find_window_faults(query, resource, span, obstacles)
    reasons += [reason for segment in segments for reason in segment.reasons]
    return list(dict.fromkeys(reasons))


def is_available(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> bool:
    """Return whether `find_unavailability` has no reason, without looking for the reasons."""
    is_on_grid = not query.on_grid or _is_on_grid(query, resource, span.start)
    return is_on_grid and is_free(query, resource, span, obstacles)


def is_free(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> bool:
    terms, own = query.terms, query.bookable_spans.get(resource.zone)
    if resource.is_closed or not terms.permits_length(span.end - span.start):
        return False
    if query.unfitness_of(resource) or _find_window_faults(query, resource, span, obstacles):
        return False
    if not terms.include_past and span.start < int(query.now.timestamp()):
        return False
    if own and (span.start < own.start or span.end > own.end):
        return False
    busy = obstacles.busy.get(resource.id, [])
    timeline = ResourceTimeline(
        key=resource.id,
        zone=resource.zone,
        rules=query.rule_lists(resource),
        busy=(),
        closed=sorted(
            chain(
                *obstacles.closed.get(resource.id, {}).values(),
                blocked_times(busy, terms.buffers, query.quantity),
            )
        ),
    )
    request = SlotRequest(*span, length=None)
    return free_intervals(timeline, request) == [span]


_OFF_GRID = Reason("limit", "project", (), None, Message("Must start at one of the offered times."))


def _is_on_grid(query: AvailabilityQuery, resource: SearchResource, start: int) -> bool:
    """Whether the project offers slots that start then; any start without a grid of starts."""
    increment, length = query.terms.increment, query.terms.length
    if increment is None or length is None:
        return True
    if query.alternatives and not is_leading(query.alternatives, resource.id):
        return True
    if query.terms.mode == "mutual" and not query.alternatives:
        return query.is_common_start(start)
    return starts_on_grid([query.start_rules(resource)], start, increment)


def is_leading(alternatives: Alternatives, resource_id: uuid.UUID) -> bool:
    """Whether the resource may meet a first requirement: only these keep to the grid of starts."""
    return any(resource_id in requirements[0].ids for requirements in alternatives)


def query_of_stretch(query: AvailabilityQuery, stretch: Stretch) -> AvailabilityQuery:
    """Return the query for the resources that are needed for this stretch of a booking.

    A part of a booking keeps the rules of its resource, not those of the project.
    """
    if stretch == WHOLE:
        return query
    if stretch.is_step:
        terms = replace(query.terms, length=None, lengths=())
        return replace(query, terms=terms, on_grid=False, visit=None)
    terms = replace(
        query.terms,
        length=None,
        lengths=(),
        include_past=True,
        limits=(),
        constraints=(),
        extra=((),),
    )
    return replace(query, terms=terms, own=None, on_grid=False, alternatives=())


def _wrong_length(terms: SlotParameters) -> Reason:
    *others, last = [_length_text(length) for length in terms.lengths or [terms.length or 0]]
    exact = f"{', '.join(others)} or {last}" if others else f"exactly {last}"
    return Reason("limit", "project", (), None, Message("Must last %(length)s.", length=exact))


def _length_text(length: int) -> str:
    minutes, seconds = divmod(length, 60)
    return f"{minutes} minutes" + (f" {seconds} seconds" if seconds else "")
