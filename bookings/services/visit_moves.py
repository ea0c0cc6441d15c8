"""Arrange the steps of a visit that is moved: all of them anew, or one step alone."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from availability.core.explain import Reason
from availability.core.matching import WHOLE, Chosen, FixedChoice, Requirement, Stretch, choose
from availability.core.visits import PlacedStep, Step, Visit
from availability.models import VISIT, Calendar, Event
from availability.reserve.checks import find_free_resources, find_visit_refusal
from availability.reserve.events import NotAvailable, SlotTaken, TimeRequest, event_with_companions
from availability.reserve.policies import first_own_calendars
from availability.search.availability_query import AvailabilityQuery, query_of_stretch
from availability.search.visit_slots import place_visit_at
from bookings.booking_target import BookingTarget
from bookings.models import Booking
from common.errors import Invalid
from common.messages import Message
from common.time.instants import to_datetime


class Arrangement(NamedTuple):
    """Where the events of a visit go.

    start, end: of the visit. calendars: by resource. others: the resources of the companions, in
    their order; the first step's first resource is that of the visit. stretches: by event.
    """

    start: datetime
    end: datetime
    resource_id: uuid.UUID
    others: Sequence[uuid.UUID]
    calendars: Mapping[uuid.UUID, Calendar]
    stretches: Mapping[uuid.UUID, Stretch]


def span_with_step(
    booking: Booking, name: str, start: datetime | None
) -> tuple[datetime, datetime]:
    """Return the start and end of the visit after one of its steps starts at `start` (None: where
    it does). Raises Invalid for a step that it has not.
    """
    spans = [(row.start, row.end) for row in booking.event.companions.all() if row.step != name]
    own = [row for row in booking.event.companions.all() if row.step == name]
    if not own:
        raise Invalid.at("step", "The booking has no such step.")
    begin = start or own[0].start
    spans.append((begin, begin + (own[0].end - own[0].start)))
    return min(first for first, _ in spans), max(last for _, last in spans)


class VisitMove(NamedTuple):
    """The move of a visit: its target without a calendar, with what is fixed; the time request of
    the whole visit; the ids of the events that move; whether rules count.
    """

    booking: Booking
    target: BookingTarget
    time_request: TimeRequest
    own: Sequence[uuid.UUID]
    is_enforced: bool

    def query(self) -> AvailabilityQuery:
        """Return the query for the visit, with the present resources preferred."""
        query = self.target.query_of_visit(enforced=self.is_enforced)
        query = self.target.with_buffers(query, self.time_request.buffers)
        present = {
            (row.step, row.requirement, row.resource_id)
            for row in self.booking.event.companions.all()
        }
        return replace(
            query,
            visit=(query.visit or Visit([])).preferring(present),
            external_busy=self.time_request.external_busy,
            without=self.own,
        )


def arrange_visit(move: VisitMove) -> Arrangement:
    """Arrange all steps anew from the start of the time request to its end; staff get another end
    where the visit can't have this one. Present resources are kept where they are free.

    Raises SlotTaken or NotAvailable.
    """
    query, start, end = move.query(), *move.time_request.span
    counts_busy = move.time_request.exclusive
    placement = place_visit_at(query, start, end, counts_busy=counts_busy)
    if placement is None and not move.target.is_public:
        placement = place_visit_at(query, start, None, counts_busy=counts_busy)
    if placement is None:
        raise find_visit_refusal(move.time_request, query)
    return _arrangement(move.booking, placement)


def arrange_step(move: VisitMove, name: str, start: datetime | None) -> Arrangement:
    """Give one step another start (None: the same) or other resources; the other steps stay.

    Raises NotAvailable if the gaps between the steps do not allow it, SlotTaken if no resource is
    free, Invalid for a resource that another step shares.
    """
    query = move.query()
    visit = query.visit or Visit([])
    steps = {step.name: step for step in visit.steps}
    if name not in steps:
        raise Invalid.at("step", "The project has no such step any more.")
    placed = {each.name: each for each in _present_steps(move.booking)}
    begin = int(start.timestamp()) if start else placed[name].start
    length = placed[name].end - placed[name].start
    stretch = Stretch(begin - move.time_request.span.start, length, is_step=True)
    chosen = _choose_for_step(move, query, visit, steps[name], stretch)
    placed[name] = PlacedStep(name, begin, begin + length, chosen)
    placement = sorted(placed.values(), key=lambda each: each.start)
    _check_gaps(placement, steps, visit)
    return _arrangement(move.booking, placement)


def _present_steps(booking: Booking) -> list[PlacedStep]:
    """Return the steps as they are booked, in the order of their times."""
    rows: dict[str, list[Event]] = {}
    for row in booking.event.companions.all():
        rows.setdefault(row.step or "", []).append(row)
    placed = [
        PlacedStep(
            name,
            int(found[0].start.timestamp()),
            int(found[0].end.timestamp()),
            [Chosen(row.resource_id, row.requirement or "") for row in found],
        )
        for name, found in rows.items()
    ]
    return sorted(placed, key=lambda each: each.start)


def _choose_for_step(
    move: VisitMove, query: AvailabilityQuery, visit: Visit, step: Step, stretch: Stretch
) -> Sequence[Chosen]:
    named = move.target.fixed.named
    fixed = FixedChoice(
        {each.name: named[each.name] for each in step.requirements if each.name in named}
    )
    shared = _shared_resource(move.booking, step, visit)
    first = step.requirements[0]
    if shared is not None:
        if shared not in fixed.named.get(first.name, (shared,)):
            raise Invalid.at(f"resources.{first.name}", "Another step has the same resource.")
        fixed = FixedChoice({**fixed.named, first.name: (shared,)})
    ids = {each for requirement in step.requirements for each in requirement.ids}
    searched = replace(
        query_of_stretch(query, stretch),
        resources=[each for each in query.resources if each.id in ids],
    )
    part = replace(move.time_request, holds=move.own).of_stretch(stretch)
    free = find_free_resources(part, searched)
    chosen = choose([step.requirements], {WHOLE: {each.id for each in free}}, fixed)
    if chosen is None:
        raise SlotTaken()
    return chosen


def _shared_resource(booking: Booking, step: Step, visit: Visit) -> uuid.UUID | None:
    """Return the present first resource of a step that another step has, too."""
    is_shared = step.same_as or any(each.same_as == step.name for each in visit.steps)
    if not is_shared:
        return None
    first: Requirement = step.requirements[0]
    rows = booking.event.companions.all()
    return next(
        (
            row.resource_id
            for row in rows
            if row.step == step.name and row.requirement == first.name
        ),
        None,
    )


def _check_gaps(placement: Sequence[PlacedStep], steps: Mapping[str, Step], visit: Visit) -> None:
    """Raise NotAvailable if the steps do not follow each other within their gaps."""
    order = [each.name for each in placement]
    if visit.is_ordered and order != [step.name for step in visit.steps]:
        raise NotAvailable([_reason(Message("The steps of the visit have a fixed order."))])
    for before, after in pairwise(placement):
        step = steps[after.name]
        if not step.min_gap <= after.start - before.end <= step.max_gap:
            text = Message(
                'The step "%(step)s" must start %(least)s to %(most)s minutes after the step'
                " before it.",
                step=after.name,
                least=step.min_gap // 60,
                most=step.max_gap // 60,
            )
            raise NotAvailable([_reason(text)])


def _reason(text: Message) -> Reason:
    return Reason("limit", "project", (), None, text)


def _arrangement(booking: Booking, placement: Sequence[PlacedStep]) -> Arrangement:
    """Give each event of the visit its place. Raises Invalid if the project's steps have changed
    since the booking was made.
    """
    places: dict[tuple[str, str], list[tuple[PlacedStep, uuid.UUID]]] = {}
    for placed in placement:
        for each in placed.chosen:
            places.setdefault((placed.name, each.name), []).append((placed, each.id))
    start = placement[0].start
    others, stretches = [], {booking.event.id: WHOLE}
    for row in booking.event.companions.all():
        waiting = places.get((row.step or "", row.requirement or ""))
        if not waiting:
            raise Invalid.at("start", "The steps of the project have changed since.")
        placed, resource_id = waiting.pop(0)
        others.append(resource_id)
        length = placed.end - placed.start
        stretches[row.id] = Stretch(placed.start - start, length, is_step=True)
    if any(places.values()):
        raise Invalid.at("start", "The steps of the project have changed since.")
    calendars = {row.resource_id: row.calendar for row in event_with_companions(booking.event)}
    missing = [each for each in others if each not in calendars]
    calendars |= first_own_calendars(missing) if missing else {}
    if not all(each in calendars for each in others):
        raise Invalid.at("resources", "The resource no longer exists.")
    return Arrangement(
        to_datetime(start),
        to_datetime(placement[-1].end),
        placement[0].chosen[0].id,
        others,
        calendars,
        stretches,
    )


def is_visit(booking: Booking) -> bool:
    """Whether the booking has steps."""
    return booking.event.step == VISIT
