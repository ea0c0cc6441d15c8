"""Check whether resources are free for the times of bookings, one time request or many at once.

The rows are fetched once for all time requests and resources, in at most two queries. An accepted
time request blocks those after it, as its event will.
"""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from availability.core.busy_items import BusyItem, blocked_times, fully_booked_items
from availability.core.explain import Reason
from availability.core.intervals import Span, clip, normalise
from availability.core.matching import WHOLE, FixedChoice, FreeIds, Requirement, Stretch, choose
from availability.core.pacing import closed_starts
from availability.core.parties import join_ranges, suits
from availability.core.periods import Period, local_periods
from availability.models import VISIT, Event
from availability.reserve.events import (
    CONFLICTS_NAMED,
    NO_STRETCHES,
    NotAvailable,
    SlotTaken,
    Stretches,
    TimeRequest,
    event_stretches,
    find_conflicts,
)
from availability.reserve.policies import without_notice_rules
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    is_leading,
    not_for_party,
    query_of_stretch,
    too_small,
    with_party,
)
from availability.search.explaining import Obstacles, find_unavailability, is_available
from availability.search.preparation import count_bookings_per_period, fetch_busy_items, starts_near
from availability.search.queries import ClosedByUnit, TimeSpan, add_to_periods, closed_by_limits
from availability.search.requirements import requirements_for_party, stretches_of
from availability.search.visit_slots import find_closed_step, place_visit_at
from common.messages import Message
from common.time.instants import to_datetime

RequestRefusal = SlotTaken | NotAvailable | None
NO_RESOURCE = Reason("limit", "project", (), None, Message("The project has no resources."))


def check_request(time_request: TimeRequest, resource_ids: Collection[uuid.UUID]) -> None:
    """Raise NotAvailable or SlotTaken for the first resource that is not free.

    The caller holds the locks on the resources: without them the result may be outdated.
    """
    if time_request.rules:
        rules = (
            without_notice_rules(time_request.rules)
            if time_request.is_in_time
            else time_request.rules
        )
        query = restrict_to_resources(rules, resource_ids)
        for checker in _resource_checkers([(time_request, query)], time_request.holds):
            if refusal := checker.refusal_of(time_request):
                raise refusal
    elif time_request.is_guarded and (conflicts := find_conflicts(time_request, resource_ids)):
        raise SlotTaken(conflicts)


def check_capacity(time_request: TimeRequest, capacities: Iterable[int]) -> None:
    """Raise NotAvailable if a resource never has so many units; rules need not be enforced."""
    for capacity in capacities:
        if time_request.is_guarded and time_request.quantity > capacity:
            raise NotAvailable([too_small(capacity)])


def find_free_resources(
    time_request: TimeRequest, candidates: AvailabilityQuery
) -> list[SearchResource]:
    """The candidates that are free for the time request, in their order.

    Reads without a lock: the caller locks its choice and checks again. Finds no reasons.
    """
    checkers = _resource_checkers([(time_request, candidates)], time_request.holds)
    if not checkers:
        return list(candidates.resources)
    rules = _RuleChecks(candidates, time_request.span)
    return [
        checker.resource
        for checker in checkers
        if rules.permit(checker.resource) and not checker.is_taken(time_request)
    ]


def find_free_for_requirements(
    time_request: TimeRequest, candidates: AvailabilityQuery
) -> dict[Stretch, dict[uuid.UUID, SearchResource]]:
    """The candidates that are free for each stretch of the time request that requirements name, by
    id.

    Reads without a lock, as `find_free_resources`. Two queries for each stretch.
    """
    free: dict[Stretch, dict[uuid.UUID, SearchResource]] = {}
    for stretch, ids in stretches_of(candidates.alternatives).items():
        free[stretch] = {}
        if stretch.fits(*time_request.span):
            query = query_of_stretch(restrict_to_resources(candidates, ids), stretch)
            found = find_free_resources(time_request.of_stretch(stretch), query)
            free[stretch] = {each.id: each for each in found}
    return free


def find_nearest_refusal(
    time_request: TimeRequest, candidates: AvailabilityQuery
) -> SlotTaken | NotAvailable:
    """The refusal to report if no candidate is free.

    SlotTaken for the first resource that is only taken and no rule is broken (the more precise
    reason), else NotAvailable with the reasons of the first resource.
    """
    if not candidates.resources:
        return NotAvailable([NO_RESOURCE])
    checkers = _resource_checkers([(time_request, candidates)], time_request.holds)
    rules = _RuleChecks(candidates, time_request.span)
    for checker in checkers:
        if checker.overlaps(time_request) and rules.permit(checker.resource):
            refusal = checker.refusal_of(time_request)
            if isinstance(refusal, SlotTaken):
                return refusal
    for checker in checkers:
        if refusal := checker.refusal_of(time_request):
            return refusal
    return SlotTaken()  # a resource has become free meanwhile


def find_unmet_requirement(
    time_request: TimeRequest, candidates: AvailabilityQuery, fixed: FixedChoice
) -> SlotTaken | NotAvailable:
    """The refusal to report if there is no choice of free resources for the requirements.

    SlotTaken if the rules leave one, else NotAvailable with the first requirement that fails, of
    each alternative.
    """
    # The party counts for all resources of a choice together.
    permitted = _permitted_by_stretch(time_request, replace(candidates, party_size=None))
    if choose(candidates.alternatives, permitted, fixed):
        return SlotTaken()
    possible = [
        requirements
        for requirements in candidates.alternatives
        if fixed.named.keys() <= {each.name for each in requirements}
    ]
    texts = dict.fromkeys(_unmet_text(each, permitted, fixed) for each in possible)
    return NotAvailable([Reason("requirement", "project", (), None, text) for text in texts])


def _unmet_text(
    requirements: Sequence[Requirement], permitted: FreeIds, fixed: FixedChoice
) -> Message:
    """Return the sentence about the first requirement that has no resource, with those before."""
    (for_any_party,) = requirements_for_party([requirements], None)
    for count, requirement in enumerate(requirements, start=1):
        first = for_any_party[:count]
        named = {each.name: fixed.named[each.name] for each in first if each.name in fixed.named}
        if not choose([first], permitted, FixedChoice(named)):
            return Message(
                'No resource for "%(requirement)s" is open.', requirement=requirement.name
            )
    if party := requirements[0].party:
        return _unsuited_text(party.size)
    return Message("Too few different resources are open.")


def _unsuited_text(party_size: int) -> Message:
    return Message("No choice of open resources is for %(count)s people.", count=party_size)


def check_party(query: AvailabilityQuery, resource_ids: Collection[uuid.UUID]) -> None:
    """Raise NotAvailable unless the resources suit the query's party together."""
    chosen = restrict_to_resources(query, resource_ids).resources
    joined = join_ranges(each.party for each in chosen if each.party)
    if query.party_size and not suits(query.party_size, [joined]):
        raise NotAvailable([not_for_party(joined)])


def _permitted_by_stretch(
    time_request: TimeRequest, candidates: AvailabilityQuery
) -> dict[Stretch, set[uuid.UUID]]:
    """The resources whose rules permit each stretch, whatever is busy."""
    permitted: dict[Stretch, set[uuid.UUID]] = {}
    for stretch, ids in stretches_of(candidates.alternatives).items():
        permitted[stretch] = set()
        if stretch.fits(*time_request.span):
            query = query_of_stretch(restrict_to_resources(candidates, ids), stretch)
            rules = _RuleChecks(query, time_request.of_stretch(stretch).span)
            permitted[stretch] = {each.id for each in query.resources if rules.permit(each)}
    return permitted


def find_visit_refusal(
    time_request: TimeRequest, candidates: AvailabilityQuery
) -> SlotTaken | NotAvailable:
    """The refusal to report if no visit is possible at the time: SlotTaken if the rules leave one,
    else NotAvailable with the first step that has no open resource in the time, or the visit.
    """
    start, end = time_request.span
    if place_visit_at(candidates, start, end, counts_busy=False):
        return SlotTaken()
    text = Message("The steps of the visit do not fit into this time.")
    for_any_party = replace(with_party(candidates, None), party_size=None)
    if candidates.party_size and place_visit_at(for_any_party, start, end, counts_busy=False):
        text = _unsuited_text(candidates.party_size)
    elif (step := find_closed_step(for_any_party, start, end)) is not None:
        text = Message('No resource for the step "%(step)s" is open.', step=step)
    return NotAvailable([Reason("requirement", "project", (), None, text)])


class _RuleChecks:
    """Whether the rules permit a span, whatever is busy; checked once for resources with the same
    rules and zone.
    """

    def __init__(self, query: AvailabilityQuery, span: TimeSpan) -> None:
        self._query = query
        self._span = span
        self._permitted: dict[tuple, bool] = {}

    def permit(self, resource: SearchResource) -> bool:
        leads = is_leading(self._query.alternatives, resource.id)
        unfitness = self._query.unfitness_of(resource)
        kind = resource.rules, resource.zone, resource.is_closed, leads, unfitness
        if kind not in self._permitted:
            is_permitted = is_available(self._query, resource, self._span, Obstacles({}, {}))
            self._permitted[kind] = is_permitted
        return self._permitted[kind]


def check_requests(
    time_requests: Sequence[TimeRequest], candidates: AvailabilityQuery
) -> dict[uuid.UUID, list[RequestRefusal]]:
    """For each candidate resource, the refusal of each time request; None if it is free.

    `time_requests` are sorted by start, differ only in their times, and belong to the same kind of
    booking. `candidates`: the resources, with the rules if rules are enforced.
    """
    kind = [(time_request, candidates) for time_request in time_requests]
    refusals_by_resource = {
        checker.resource.id: checker.refusals_of(time_requests)
        for checker in _resource_checkers(kind, time_requests[0].holds)
    }
    free: list[RequestRefusal] = [None] * len(time_requests)
    return {
        resource.id: refusals_by_resource.get(resource.id, free)
        for resource in candidates.resources
    }


Request = tuple[TimeRequest, AvailabilityQuery]  # with the query to check it with


def find_first_refusal(
    bookings: Sequence[Sequence[Request]], *, without: Collection[uuid.UUID]
) -> tuple[int, SlotTaken | NotAvailable] | None:
    """The index of the first booking with a time request that a resource of its query refuses, and
    the refusal; None if there is none.

    bookings: the time requests of each; those of one booking never conflict with each other. Unlike
    in `check_requests`, they may be of several kinds. `without`: the events that are being moved.
    Two queries for each combination of query and kind of time request.
    """
    kinds: dict[tuple[int, bool, bool], list[Request]] = {}
    for request in chain.from_iterable(bookings):
        kinds.setdefault(_request_kind(*request), []).append(request)
    checkers = {kind: _resource_checkers(alike, without) for kind, alike in kinds.items()}
    all_checkers = [checker for found in checkers.values() for checker in found]
    for number, requests in enumerate(bookings):
        for time_request, query in requests:
            for checker in checkers[_request_kind(time_request, query)]:
                if refusal := checker.refusal_of(time_request):
                    return number, refusal
        for checker in all_checkers:
            checker.record_booking(requests)
    return None


VisitPart = tuple[uuid.UUID, TimeRequest]  # a resource of a step, and the time that it takes


class VisitChecks:
    """Checks visits one after another; those that are accepted block the others."""

    def __init__(self, time_requests: Sequence[TimeRequest], query: AvailabilityQuery) -> None:
        """Read what blocks the resources of the query. time_requests: of the visits as a whole."""
        of_step = query_of_stretch(query, Stretch(0, None, is_step=True))
        kind = [(time_request, of_step) for time_request in time_requests]
        self._checkers = {each.resource.id: each for each in _resource_checkers(kind, ())}

    def find_refusal(
        self, parts: Sequence[VisitPart]
    ) -> tuple[uuid.UUID, SlotTaken | NotAvailable] | None:
        """Return the first resource of the visit that is not free, and the refusal."""
        for number, (resource_id, time_request) in enumerate(parts):
            checker = self._checkers.get(resource_id)
            if checker and (refusal := checker.refusal_of(time_request, is_start=number == 0)):
                return resource_id, refusal
        return None

    def accept(self, visit: TimeRequest, parts: Sequence[VisitPart]) -> None:
        """Record the time of a visit; of several steps, it counts as one booking of a resource."""
        if not visit.blocks:
            return
        for checker in self._checkers.values():
            checker.record_start(visit, checker.query.project_id, 1)
        counted: set[uuid.UUID] = set()
        for resource_id, time_request in parts:
            if resource_id not in self._checkers:
                continue
            own = self._checkers[resource_id]
            own.record_busy(time_request, 1)
            if resource_id not in counted:
                own.record_in_periods(time_request, own.query.project_id, 1)
            counted.add(resource_id)


QueryOfPart = tuple[int, Stretch, tuple[uuid.UUID, ...]]


def requests_of_event(
    event: Event,
    time_request: TimeRequest,
    query: AvailabilityQuery,
    known: dict[QueryOfPart, AvailabilityQuery],
    stretches: Stretches = NO_STRETCHES,
) -> list[Request]:
    """Return the time requests of an event and its companions, one for each of their stretches, and
    the queries to check them with; of several events, those in `known` are shared.
    """
    by_stretch: dict[Stretch, list[uuid.UUID]] = {}
    for row, stretch in event_stretches(event, stretches):
        if row.step == VISIT:
            continue
        by_stretch.setdefault(stretch, []).append(row.resource_id)
    if by_stretch.keys() == {WHOLE}:
        return [(time_request, query)]
    found = []
    for stretch, resource_ids in by_stretch.items():
        key = id(query), stretch, tuple(resource_ids)
        if key not in known:
            known[key] = query_of_stretch(restrict_to_resources(query, resource_ids), stretch)
        found.append((time_request.of_stretch(stretch), known[key]))
    return found


def _request_kind(time_request: TimeRequest, query: AvailabilityQuery) -> tuple[int, bool, bool]:
    return id(query), time_request.blocks, time_request.exclusive


def _resource_checkers(
    requests: Sequence[tuple[TimeRequest, AvailabilityQuery]], without: Collection[uuid.UUID]
) -> list["_ResourceChecker"]:
    """One checker per resource; none if the time requests have no rules and are not guarded."""
    time_requests, query = [time_request for time_request, _ in requests], requests[0][1]
    if not time_requests[0].rules and not time_requests[0].is_guarded:
        return []
    whole = TimeSpan(
        min(time_request.span.start for time_request in time_requests),
        max(time_request.span.end for time_request in time_requests),
    )
    of_others = replace(query, external_busy=time_requests[0].external_busy, without=without)
    busy = fetch_busy_items(of_others, whole) if time_requests[0].exclusive else {}
    counts = count_bookings_per_period(of_others, query.resources, whole)
    starts = starts_near(of_others, whole)
    return [
        _ResourceChecker(
            query, resource, busy.get(resource.id, []), counts.get(resource.id, {}), list(starts)
        )
        for resource in query.resources
    ]


class _ResourceChecker:
    """A resource with its busy items, the number of its bookings per period, and the starts of the
    project's bookings.
    """

    def __init__(
        self,
        query: AvailabilityQuery,
        resource: SearchResource,
        busy: list[BusyItem],
        counts: dict[Period, int],
        starts: list[int],
    ) -> None:
        self.query = query
        self.resource = resource
        self.busy = busy
        self.counts = counts
        self.starts = starts

    def refusals_of(self, time_requests: Sequence[TimeRequest]) -> list[RequestRefusal]:
        refusals = []
        for time_request in time_requests:
            refusal = self.refusal_of(time_request)
            refusals.append(refusal)
            if refusal is None and time_request.blocks and time_request is not time_requests[-1]:
                self.record_accepted(time_request, self.query.project_id, self.query.quantity)
                self.record_start(time_request, self.query.project_id, self.query.quantity)
        return refusals

    def is_taken(self, time_request: TimeRequest) -> bool:
        """Whether a busy item or its buffer, or a limit, blocks the time request."""
        return (
            self._is_busy(time_request)
            or any(self._periods_closed_by_limits(time_request).values())
            or bool(self._closed_starts(time_request))
        )

    def _is_busy(self, time_request: TimeRequest) -> bool:
        near = self._near(time_request)
        if any(item.capacity == 1 for item in near):
            return True
        if time_request.exclusive and self.query.unfitness_of(self.resource):
            return True
        start, end = time_request.span
        blocked = blocked_times(near, self.query.terms.buffers, self.query.quantity)
        return any(since < end and until > start for since, until in blocked)

    def overlaps(self, time_request: TimeRequest) -> bool:
        near = fully_booked_items(self._near(time_request), self.query.quantity)
        return bool(_overlaps(near, time_request.span))

    def refusal_of(self, time_request: TimeRequest, *, is_start: bool = True) -> RequestRefusal:
        """Return why the resource is not free. is_start: the pace counts."""
        span, near = time_request.span, self._near(time_request)
        obstacles = Obstacles(
            {self.resource.id: near},
            {self.resource.id: self._periods_closed_by_limits(time_request)},
            self._closed_starts(time_request) if is_start else (),
        )
        reasons = find_unavailability(self.query, self.resource, span, obstacles)
        if not reasons:
            return None
        overlaps = _overlaps(fully_booked_items(near, self.query.quantity), span)
        # An overlap without any other reason breaks no rule.
        if overlaps and all(reason.type in _TAKEN_REASONS for reason in reasons):
            # Conflicts with an id come before those of external calendars, which have none.
            conflicts = sorted(item.span for item in overlaps if item.id or item.type == "capacity")
            named = conflicts or normalise(item.span for item in overlaps)
            named = named[:CONFLICTS_NAMED]
            return SlotTaken([(to_datetime(start), to_datetime(end)) for start, end in named])
        return NotAvailable(reasons)

    def _near(self, time_request: TimeRequest) -> list[BusyItem]:
        """The busy items that keep out the time request: they overlap it, or lie too close."""
        if not time_request.exclusive:
            return []
        buffers, (start, end) = self.query.terms.buffers, time_request.span
        blocked = ((item, item.blocked_span(buffers)) for item in self.busy)
        return [item for item, (since, until) in blocked if since < end and until > start]

    def _periods_closed_by_limits(self, time_request: TimeRequest) -> ClosedByUnit:
        """The periods of the time request that a limit closes."""
        zone, limits = self.resource.zone, self.query.terms.limits
        touched = {
            period: self.counts.get(period, 0)
            for unit in self.query.terms.limited_period_units
            for period in local_periods(*time_request.span, zone, unit)
        }
        return closed_by_limits(touched, zone, limits, self.query.quantity)

    def _closed_starts(self, time_request: TimeRequest) -> list[Span]:
        """The start of the time request, if the pace closes it."""
        pace, start = self.query.terms.pace, time_request.span.start
        if pace is None:
            return []
        closed = closed_starts(self.starts, pace, self.query.quantity, start, start + 1)
        return clip(closed, start, start + 1)

    def record_booking(self, requests: Sequence[Request]) -> None:
        """Record an accepted booking: however many of its time requests are for this resource, it
        counts once towards the limits.
        """
        is_counted = False
        for position, (time_request, query) in enumerate(requests):
            terms = query.project_id, query.quantity
            if not time_request.blocks:
                continue
            if position == 0:
                self.record_start(time_request, *terms)
            if any(resource.id == self.resource.id for resource in query.resources):
                self.record_busy(time_request, query.quantity)
                if not is_counted:
                    self.record_in_periods(time_request, *terms)
                is_counted = True

    def record_start(
        self, time_request: TimeRequest, project_id: uuid.UUID | None, quantity: int
    ) -> None:
        """Record the start of an accepted time request, on whatever resource."""
        if project_id == self.query.project_id:
            self.starts += [time_request.span.start] * quantity

    def record_accepted(
        self, time_request: TimeRequest, project_id: uuid.UUID | None, quantity: int
    ) -> None:
        """Record an accepted time request of `project_id` for so many units: it blocks later ones,
        and counts towards the limits if that is the query's project."""
        self.record_busy(time_request, quantity)
        self.record_in_periods(time_request, project_id, quantity)

    def record_busy(self, time_request: TimeRequest, quantity: int) -> None:
        """Record the time of an accepted time request for so many units."""
        start, end = time_request.span
        item = BusyItem(start, end, "event", None, self.resource.capacity)
        if time_request.buffers and not self.query.terms.ignores_buffers:
            before, after = time_request.buffers
            item = item._replace(before=before, after=after)
        self.busy += [item] * quantity

    def record_in_periods(
        self, time_request: TimeRequest, project_id: uuid.UUID | None, quantity: int
    ) -> None:
        """Count an accepted time request towards the limits if it is of the query's project."""
        start, end = time_request.span
        if project_id != self.query.project_id:
            return
        units = self.query.terms.limited_period_units
        for _ in range(quantity):
            add_to_periods(self.counts, start, end, self.resource.zone, units)


_TAKEN_REASONS = {"event", "hold", "capacity", "buffer"}


def _overlaps(items: Iterable[BusyItem], span: TimeSpan) -> list[BusyItem]:
    return [item for item in items if item.start < span.end and item.end > span.start]


def restrict_to_resources(
    query: AvailabilityQuery, resource_ids: Collection[uuid.UUID]
) -> AvailabilityQuery:
    """The query for the given resources only."""
    chosen = [resource for resource in query.resources if resource.id in resource_ids]
    return query if chosen == query.resources else replace(query, resources=chosen)
