"""Create a series: one booking per occurrence of a rule, on one resource (mutual: on all)."""

import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.db import transaction

from availability.core.matching import WHOLE, Chosen, Stretch
from availability.core.parties import party_rank
from availability.models import Event
from availability.reserve.checks import (
    NO_RESOURCE,
    RequestRefusal,
    check_requests,
    restrict_to_resources,
)
from availability.reserve.events import (
    NotAvailable,
    Place,
    SlotTaken,
    TimeRequest,
    guarded_transaction,
    lock_project,
    lock_resources_of_calendars,
    span_record,
    write_events,
)
from availability.reserve.policies import first_own_calendars
from availability.search.availability_query import (
    AvailabilityQuery,
    ExternalBusy,
    SearchResource,
    query_of_stretch,
)
from availability.search.requirements import stretches_of
from bookings.booking_target import BookingTarget
from bookings.models import Booking, Series
from bookings.services.create import NewBooking, new_row, write_bookings
from bookings.services.live_check import fetch_live_busy_for, needs_live_check
from bookings.services.resource_assignment import FIRST_BATCH
from bookings.services.transition_log import Actor
from common.db.sql import insert_rows
from common.errors import Invalid
from common.ical.rrule import RecurrenceRule, RecurrenceRuleError, Times, expand_recurrence
from common.messages import find_message

Conflict = tuple[Times, SlotTaken | NotAvailable]  # an occurrence and why it is not free

FAIL, SKIP = ON_CONFLICT = ("fail", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeries(NewBooking):
    """A booking and its recurrences.

    on_conflict: `fail` refuses the whole series if an occurrence is unavailable, `skip` omits it.
    """

    rule: RecurrenceRule
    on_conflict: str = FAIL


@dataclass(frozen=True, slots=True)
class _ResourceChoice:
    """Resources to book together.

    times: of the occurrences. refusals: the refusal of each occurrence; None: free. chosen: the
    requirements that the resources meet.
    """

    resources: Sequence[SearchResource]
    times: Sequence[Times]
    refusals: Sequence[RequestRefusal]
    chosen: Sequence[Chosen] = ()

    @property
    def conflicts(self) -> int:
        return sum(refusal is not None for refusal in self.refusals)


def create_series(new: NewSeries, *, target: BookingTarget, actor: Actor, now: datetime) -> Booking:
    """Create the series in one transaction; return its first booking.

    All occurrences use the same resource: the first, in the order of the project's mode, that is
    free for all of them, else the one with the fewest conflicts. Raises SlotTaken or NotAvailable
    with every occurrence in conflict; Invalid for a rule that can't be used.
    """
    candidates = target.candidate_query(enforced=new.enforce_availability)
    choices = _resource_choices(new, target, candidates)
    target.external_busy = _live_busy(choices, new, target)
    if target.external_busy:
        choices = _resource_choices(new, target, candidates)
    with guarded_transaction():
        lock_project_of_series(target)
        if target.is_by_turn:
            # Another booking may have taken this turn meanwhile.
            if not target.alternatives:
                by_turn = _resources_by_turn(candidates, target)
                candidates = replace(candidates, resources=by_turn)
            choices = _resource_choices(new, target, candidates)
        refusal: SlotTaken | NotAvailable = NotAvailable([NO_RESOURCE])
        for choice in choices:
            try:
                # The savepoint of a refused choice releases its locks, as for a single booking.
                with transaction.atomic():
                    return _create_at(choice, candidates, new, target, actor, now)
            except (SlotTaken, NotAvailable) as error:
                refusal = error
        raise refusal


def lock_project_of_series(target: BookingTarget) -> None:
    """Lock the project, if any. Raises Invalid if it is deleted."""
    if target.project and not lock_project(
        target.project.id, exclusive=target.is_by_turn or target.is_paced
    ):
        raise Invalid.at("project_id", "The project no longer exists.")


def _resources_by_turn(
    candidates: AvailabilityQuery, target: BookingTarget
) -> list[SearchResource]:
    by_id = {resource.id: resource for resource in candidates.resources}
    return [by_id[each] for each in target.resources_by_turn() if each in by_id]


def _live_busy(
    choices: Iterable[_ResourceChoice], new: NewSeries, target: BookingTarget
) -> ExternalBusy:
    """Return the live busy times of the connected calendars at the occurrences."""
    if not needs_live_check_of(new, target):
        return {}
    resources = [resource for choice in choices for resource in choice.resources]
    if not resources:
        return {}
    times = expand_occurrences(new, resources[0].zone)
    return fetch_live_busy_for(
        [occurrence_request(new, target, time) for time in times],
        {resource.id for resource in resources},
    )


def needs_live_check_of(new: NewSeries, target: BookingTarget) -> bool:
    """Return whether the project wants a live check, and the occurrences may not overlap."""
    return needs_live_check(occurrence_request(new, target, (new.start, new.end)), target)


def _resource_choices(
    new: NewSeries, target: BookingTarget, candidates: AvailabilityQuery
) -> Iterable[_ResourceChoice]:
    """Return the choices of resources, best first; checked without a lock.

    The resources are read in batches: at once until a batch contains a free resource, the others
    when the iteration reaches them. For a live check, all are read at once.
    """
    resources = list(candidates.resources)
    if not resources:
        return []
    if target.alternatives:
        return [_choose_for_requirements(resources, candidates, new, target)]
    if target.mode == "mutual" or len(resources) == 1:
        return [_ResourceChoice(resources, (), ())]  # a single choice: checked under its lock
    if target.mode == "roundrobin_random":
        random.shuffle(resources)
    if target.party_size:
        resources.sort(key=lambda each: party_rank(each.party))
    choices = _free_choices(resources, candidates, new, target)
    first = next(choices)
    return [first, *choices] if needs_live_check_of(new, target) else chain([first], choices)


def _choose_for_requirements(
    resources: Sequence[SearchResource],
    candidates: AvailabilityQuery,
    new: NewSeries,
    target: BookingTarget,
) -> _ResourceChoice:
    """Return a choice for the requirements that is free for all occurrences, else any choice."""
    free: dict[Stretch, set[uuid.UUID]] = {}
    named = stretches_of(target.alternatives)
    for stretch, ids in named.items():
        of_stretch = [resource for resource in resources if resource.id in ids]
        free[stretch] = {
            choice.resources[0].id
            for choice in _check_each(of_stretch, candidates, new, target, stretch)
            if not choice.conflicts
        }
    required = candidates.alternatives
    chosen = target.choose(required, free) or target.choose(required, named)
    if chosen is None:
        raise NotAvailable([NO_RESOURCE])
    by_id = {resource.id: resource for resource in resources}
    return _ResourceChoice([by_id[each.id] for each in chosen], (), (), chosen)


def _free_choices(
    resources: Sequence[SearchResource],
    candidates: AvailabilityQuery,
    new: NewSeries,
    target: BookingTarget,
) -> Iterator[_ResourceChoice]:
    """Yield the resources that are free for all occurrences, else the one with least conflicts."""
    upcoming, size, some_free, conflicting = iter(resources), FIRST_BATCH, False, []
    while batch := list(islice(upcoming, size)):
        for choice in _check_each(batch, candidates, new, target):
            if choice.conflicts:
                conflicting.append(choice)
            else:
                some_free = True
                yield choice
        size *= 4
    if not some_free:
        yield min(conflicting, key=lambda choice: choice.conflicts)


def _check_each(
    resources: Sequence[SearchResource],
    candidates: AvailabilityQuery,
    new: NewSeries,
    target: BookingTarget,
    stretch: Stretch = WHOLE,
) -> list[_ResourceChoice]:
    """Check the occurrences for each resource alone; at most two queries per time zone."""
    times = {
        zone: expand_occurrences(new, zone) for zone in {resource.zone for resource in resources}
    }
    refusals_by_resource: dict[uuid.UUID, list[RequestRefusal]] = {}
    for zone in times:
        resources_in_zone = [resource for resource in resources if resource.zone == zone]
        refusals_by_resource |= _check_occurrences(
            resources_in_zone, times[zone], candidates, new, target, stretch
        )
    return [
        _ResourceChoice([resource], times[resource.zone], refusals_by_resource[resource.id])
        for resource in resources
    ]


def _check_together(
    choice: _ResourceChoice, candidates: AvailabilityQuery, new: NewSeries, target: BookingTarget
) -> _ResourceChoice:
    """Check the occurrences in the first resource's zone; keep the first refusal of each."""
    resources = choice.resources
    times = expand_occurrences(new, resources[0].zone)
    by_stretch: dict[Stretch, list[SearchResource]] = {}
    stretches = [each.stretch for each in choice.chosen] or [WHOLE] * len(resources)
    for resource, stretch in zip(resources, stretches, strict=True):
        by_stretch.setdefault(stretch, []).append(resource)
    columns = [
        refusals
        for stretch, alike in by_stretch.items()
        for refusals in _check_occurrences(alike, times, candidates, new, target, stretch).values()
    ]
    refusals = [
        next((refusal for refusal in column if refusal), None)
        for column in zip(*columns, strict=True)
    ]
    return replace(choice, times=times, refusals=refusals)


def _check_occurrences(
    resources: Sequence[SearchResource],
    times: Sequence[Times],
    candidates: AvailabilityQuery,
    new: NewSeries,
    target: BookingTarget,
    stretch: Stretch = WHOLE,
) -> dict[uuid.UUID, list[RequestRefusal]]:
    """Return, by resource, the refusal of each occurrence; None if it is free."""
    time_requests = [occurrence_request(new, target, time).of_stretch(stretch) for time in times]
    ids = [resource.id for resource in resources]
    query = query_of_stretch(restrict_to_resources(candidates, ids), stretch)
    return check_requests(time_requests, query)


def expand_occurrences(new: NewSeries, zone: str) -> list[Times]:
    """Return the start and end of each occurrence on the wall clock of the zone, in order.

    Raises Invalid for a rule that can't be used.
    """
    try:
        return expand_recurrence(new.rule, new.start, new.end, zone)
    except RecurrenceRuleError as error:
        raise Invalid.at("recurrence", find_message(error)) from error


def occurrence_request(new: NewSeries, target: BookingTarget, times: Times) -> TimeRequest:
    """Return the time request of an occurrence."""
    return target.time_request(
        *times,
        blocks=new.graph.blocks(new.state, pending_blocks=target.pending_blocks),
        allow_double_bookings=new.allow_double_bookings,
        rules=target.rules if new.enforce_availability else None,
    )


def _create_at(
    choice: _ResourceChoice,
    candidates: AvailabilityQuery,
    new: NewSeries,
    target: BookingTarget,
    actor: Actor,
    now: datetime,
) -> Booking:
    places = _places_of(target, choice)
    calendars = [place.calendar for place in places]
    if not calendars or not lock_resources_of_calendars(calendars):
        raise Invalid.at("resource_id", "The resource no longer exists.")
    choice = _check_together(choice, candidates, new, target)
    made = [
        times for times, refusal in zip(choice.times, choice.refusals, strict=True) if not refusal
    ]
    if choice.conflicts and (new.on_conflict == FAIL or not made):
        raise refusal_of_series(_conflicts(choice))
    time_requests = [occurrence_request(new, target, times) for times in made]
    events = write_events(time_requests, places=places, details=new.details, project=target.project)
    return write_series(events, _conflicts(choice), new, target=target, actor=actor, now=now)


def write_series(
    events: Sequence[Event],
    conflicts: Sequence[Conflict],
    new: NewSeries,
    *,
    target: BookingTarget,
    actor: Actor,
    now: datetime,
) -> Booking:
    """Write a booking for each event, and the series with the occurrences that are skipped for
    their conflicts. Returns the first booking.
    """
    series = Series(
        app=target.app,
        rrule=new.rule.text,
        skipped=[_skipped(*conflict) for conflict in conflicts],
        created_at=now,
    )
    insert_rows([series])
    bookings = [
        new_row(
            new,
            event,
            target=target,
            now=now,
            end=event.end,
            series=series,
            allow_double_bookings=new.allow_double_bookings,
            enforce_availability=new.enforce_availability,
        )
        for event in events
    ]
    write_bookings(bookings, new, target=target, actor=actor, now=now)
    return bookings[0]


def _places_of(target: BookingTarget, choice: _ResourceChoice) -> list[Place]:
    if target.calendar:
        return [Place(target.calendar)]
    calendars = first_own_calendars([resource.id for resource in choice.resources])
    if choice.chosen:
        return [
            Place(calendars[each.id], each.name, each.stretch)
            for each in choice.chosen
            if each.id in calendars
        ]
    return [Place(calendars[each.id]) for each in choice.resources if each.id in calendars]


# --- Conflicts ------------------------------------------------------------------------------------
def _conflicts(choice: _ResourceChoice) -> list[Conflict]:
    pairs = zip(choice.times, choice.refusals, strict=True)
    return [(times, refusal) for times, refusal in pairs if refusal]


def _skipped(times: Times, refusal: SlotTaken | NotAvailable) -> dict[str, str]:
    return {**span_record(*times), "reason": refusal.code}


def refusal_of_series(conflicts: Sequence[Conflict]) -> SlotTaken | NotAvailable:
    """Return one refusal for all conflicts; a broken rule takes precedence over a taken time."""
    occurrences: list[Any] = [_skipped(*pair) for pair in conflicts]
    broken = [refusal for _, refusal in conflicts if isinstance(refusal, NotAvailable)]
    if broken:
        reasons = dict.fromkeys(reason for refusal in broken for reason in refusal.reasons)
        refusal: SlotTaken | NotAvailable = NotAvailable(list(reasons))
    else:
        refusal = SlotTaken()
        refusal.fields["conflicts"] = [
            span for _, refusal in conflicts for span in refusal.fields["conflicts"]
        ]
    refusal.fields["occurrences"] = occurrences
    return refusal
