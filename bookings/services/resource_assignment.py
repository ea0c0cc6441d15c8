"""Reserve time for a booking or a hold: in one calendar, or on a free resource of a project.

1. `find_candidates` checks without a lock and finds the possible calendars, best first.
2. `reserve_time` locks the first candidate that is still free, and keeps the lock while the
   block under it writes the booking or the hold.
"""

import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from django.db import transaction

from availability.core.matching import Chosen, Stretch
from availability.core.parties import party_rank
from availability.core.visits import Placement
from availability.models import VISIT, Calendar
from availability.reserve.checks import (
    check_capacity,
    check_party,
    check_request,
    find_free_for_requirements,
    find_free_resources,
    find_nearest_refusal,
    find_unmet_requirement,
    find_visit_refusal,
)
from availability.reserve.events import (
    NotAvailable,
    Place,
    SlotTaken,
    TimeRequest,
    guarded_transaction,
    lock_project,
    lock_resources_of_calendars,
)
from availability.reserve.holds import hold_stretches, use_hold
from availability.reserve.policies import first_own_calendars, without_rules
from availability.search.availability_query import AvailabilityQuery
from availability.search.queries import fetch_parties
from availability.search.requirements import resource_ids_of_requirements, stretches_of
from availability.search.visit_slots import place_visit_at
from availability.search.visits import requirements_of
from bookings.booking_target import BookingTarget
from bookings.services.errors import alternatives_on_refusal
from bookings.services.live_check import fetch_live_busy_for, needs_live_check
from common.db.sql import to_uuid
from common.errors import Invalid

# A project's resources are read and checked in growing batches until one is free.
FIRST_BATCH = 8


class Candidate(NamedTuple):
    """Places to book together, the booking's own first, and the rules of their resources; None if
    rules are not enforced.
    """

    places: Sequence[Place]
    rules: AvailabilityQuery | None

    @property
    def calendars(self) -> list[Calendar]:
        return [place.calendar for place in self.places]

    @property
    def resource_ids(self) -> list[uuid.UUID]:
        return [calendar.resource_id for calendar in self.calendars]


def find_candidates(time_request: TimeRequest, target: BookingTarget) -> Iterable[Candidate]:
    """Return the candidates for the time request in the order to try them, at least one.

    If the target leaves no choice (a calendar, holds, mode mutual), its calendars are not checked
    here. The resources of a project are read in batches: at once until a batch contains a free
    resource, the others when the iteration reaches them. For a live check, all are read at once.
    Raises SlotTaken or NotAvailable, with alternatives, if no resource is free.
    """
    enforced = time_request.rules is not None
    if target.calendar:
        return [Candidate([Place(target.calendar)], target.rules if enforced else None)]
    if target.holds:
        places = _held_places(target)
        held = list(dict.fromkeys(place.calendar.resource_id for place in places))
        rules = target.rules_of(held) if enforced else None
        if rules:
            _check_party_of_held(places, rules)
        return [Candidate(places, rules)]
    if target.visit:
        visits = _visit_candidates(time_request, target)
        with alternatives_on_refusal(time_request, target):
            return chain([next(visits)], visits)
    if target.alternatives:
        matched = _matched_candidates(time_request, target)
        with alternatives_on_refusal(time_request, target):
            return chain([next(matched)], matched)
    if target.mode == "mutual" and target.project_resource_zones:
        places = _places_of(target.project_resource_ids)
        return [Candidate(places, target.rules if enforced else None)]
    free = _free_candidates(time_request, target)
    with alternatives_on_refusal(time_request, target):
        first = next(free, Candidate((), None))
    return [first, *free] if needs_live_check(time_request, target) else chain([first], free)


def _free_candidates(time_request: TimeRequest, target: BookingTarget) -> Iterator[Candidate]:
    """Yield the free resources of the project. Raises SlotTaken or NotAvailable if none is free."""
    enforced = time_request.rules is not None
    upcoming, size, some_free = _resource_ids_to_try(target), FIRST_BATCH, False
    while resource_ids := list(islice(upcoming, size)):
        batch = target.rules_of(resource_ids)
        batch = batch if enforced else without_rules(batch)
        free = find_free_resources(time_request, batch)
        calendars = first_own_calendars([resource.id for resource in free])
        for resource in free:
            some_free = True
            if resource.id in calendars:
                rules = replace(batch, resources=[resource]) if enforced else None
                yield Candidate([Place(calendars[resource.id])], rules)
        size *= 4
    if not some_free:
        raise find_nearest_refusal(time_request, target.candidate_query(enforced=enforced))


MAX_MATCHES = 20


def _matched_candidates(time_request: TimeRequest, target: BookingTarget) -> Iterator[Candidate]:
    """Yield choices of free resources for the requirements; each is found when it is needed.

    Raises SlotTaken or NotAvailable if there is no first choice.
    """
    enforced = time_request.rules is not None
    for number in range(MAX_MATCHES):
        query = target.rules if enforced else without_rules(target.rules)
        free = find_free_for_requirements(time_request, query)
        chosen = target.choose(query.alternatives, free)
        if chosen is None:
            if number == 0:
                raise find_unmet_requirement(time_request, query, target.fixed)
            return
        places = _chosen_places(chosen, target.named)
        if len(places) == len(chosen):
            resources = [free[each.stretch][each.id] for each in chosen]
            rules = replace(query, resources=resources) if enforced else None
            yield Candidate(places, rules)


def _visit_candidates(time_request: TimeRequest, target: BookingTarget) -> Iterator[Candidate]:
    """Yield arrangements of the visit's steps in the time; each is found when it is needed.

    Raises SlotTaken or NotAvailable if there is no first one.
    """
    query = target.query_of_visit(enforced=time_request.rules is not None)
    start, end = time_request.span
    for number in range(MAX_MATCHES):
        searched = replace(
            query, external_busy=time_request.external_busy, without=time_request.holds
        )
        placement = place_visit_at(searched, start, end, counts_busy=time_request.exclusive)
        if placement is None:
            if number == 0:
                raise find_visit_refusal(time_request, query)
            return
        places = _step_places(chosen_for_steps(placement, start))
        if places:
            rules = query if time_request.rules is not None else None
            yield Candidate(places, rules)


ChosenForStep = tuple[Chosen, str, Stretch]  # with the name and the stretch of the step


def chosen_for_steps(placement: Placement, start: int) -> list[ChosenForStep]:
    """Return the resources of a visit that begins at the start."""
    return [
        (each, step.name, Stretch(step.start - start, step.end - step.start, is_step=True))
        for step in placement
        for each in step.chosen
    ]


def _step_places(chosen: Sequence[ChosenForStep]) -> list[Place]:
    """Return the places of a visit; none if a resource has no calendar of its own."""
    calendars = first_own_calendars({each.id for each, _, _ in chosen})
    if not all(each.id in calendars for each, _, _ in chosen):
        return []
    return places_of_visit(chosen, calendars)


def places_of_visit(
    chosen: Sequence[ChosenForStep], calendars: Mapping[uuid.UUID, Calendar]
) -> list[Place]:
    """Return the place of the visit as a whole, and those of its steps."""
    steps = [Place(calendars[each.id], each.name, stretch, step) for each, step, stretch in chosen]
    return [Place(steps[0].calendar, step=VISIT), *steps]


def _chosen_places(chosen: Sequence[Chosen], named: Calendar | None = None) -> list[Place]:
    """Return the places of the resources that have a calendar of their own."""
    calendars = first_own_calendars([each.id for each in chosen])
    if named:
        calendars[named.resource_id] = named
    return [
        Place(calendars[each.id], each.name, each.stretch)
        for each in chosen
        if each.id in calendars
    ]


def _held_places(target: BookingTarget) -> list[Place]:
    if target.visit:
        return _step_places(
            [
                (Chosen(row.resource_id, row.requirement or ""), row.step or "", stretch)
                for row, stretch in hold_stretches(target.holds[0])
            ]
        )
    if not target.alternatives:
        return _places_of(target.held_resource_ids)
    return _chosen_places(target.choose_held() or [])


def _check_party_of_held(places: Sequence[Place], rules: AvailabilityQuery) -> None:
    """Raise NotAvailable if the held resources, of a visit those of a step, do not suit the party
    together: the hold may be for another one.
    """
    by_step: dict[str | None, set[uuid.UUID]] = {}
    for place in places:
        if place.step != VISIT:
            by_step.setdefault(place.step, set()).add(place.calendar.resource_id)
    for resource_ids in by_step.values():
        check_party(rules, resource_ids)


def _resource_ids_to_try(target: BookingTarget) -> Iterator[uuid.UUID]:
    """Yield the project's resources in the order to try them; for a party, the smallest first."""
    ids: Iterator[uuid.UUID]
    if target.is_by_turn:
        ids = iter(target.resources_by_turn())
    else:
        texts: Iterable[str] = (text for text, _ in target.project_resource_zones)
        if target.mode == "roundrobin_random":
            texts = in_random_order(texts)
        ids = map(to_uuid, texts)
    if not target.party_size:
        return ids
    known_ids = list(ids)
    parties = fetch_parties(target.app.id, known_ids)
    return iter(sorted(known_ids, key=lambda each: party_rank(parties.get(each))))


def in_random_order(texts: Iterable[str]) -> Iterator[str]:
    """Yield all texts in random order; only the yielded ones are shuffled."""
    left = list(texts)
    while left:
        position = random.randrange(len(left))
        left[position], left[-1] = left[-1], left[position]
        yield left.pop()


def _places_of(resource_ids: Sequence[uuid.UUID]) -> list[Place]:
    calendars = first_own_calendars(resource_ids)
    return [Place(calendars[each]) for each in resource_ids if each in calendars]


def with_live_busy(
    time_request: TimeRequest, target: BookingTarget, candidates: Iterable[Candidate]
) -> TimeRequest:
    """Return the time request with the live busy times of the candidates' resources."""
    if not needs_live_check(time_request, target):
        return time_request
    time_requests = [time_request]
    if target.visit and not target.holds:
        resource_ids = resource_ids_of_requirements(requirements_of(target.visit))
    elif target.alternatives and not target.holds:
        stretches = stretches_of(target.alternatives)
        time_requests = [
            time_request.of_stretch(each) for each in stretches if each.fits(*time_request.span)
        ]
        resource_ids = resource_ids_of_requirements(target.alternatives)
    else:
        resource_ids = [
            resource_id for candidate in candidates for resource_id in candidate.resource_ids
        ]
    return replace(time_request, external_busy=fetch_live_busy_for(time_requests, resource_ids))


@contextmanager
def reserve_time(
    time_request: TimeRequest, target: BookingTarget, candidates: Iterable[Candidate]
) -> Iterator[Sequence[Place]]:
    """Yield the places of the first free candidate, under its locks until the block ends.

    If the block raises, its writes are rolled back. Raises SlotTaken or NotAvailable, with
    alternatives that were free after the rollback; HoldExpired; Invalid if the project or resource
    has been deleted meanwhile.
    """
    if time_request.external_busy and (target.alternatives or target.visit):
        candidates = find_candidates(time_request, target)
    elif time_request.external_busy:
        # If the live check leaves no candidate, search again: another resource may be free by now.
        left = _without_external_busy(time_request, candidates)
        candidates = left or find_candidates(time_request, target)
    with alternatives_on_refusal(time_request, target), guarded_transaction():
        if target.project and not lock_project(
            target.project.id, exclusive=target.is_by_turn or target.is_paced
        ):
            raise Invalid.at("project_id", "The project no longer exists.")
        if target.is_by_turn:
            # Another booking may have taken this turn meanwhile.
            search = _free_candidates
            if target.alternatives or target.visit:
                search = _matched_candidates if target.alternatives else _visit_candidates
            free = search(time_request, target)
            candidates = chain([next(free, Candidate((), None))], free)
        yield _lock_first_free(time_request, target, candidates).places


def _without_external_busy(
    time_request: TimeRequest, candidates: Iterable[Candidate]
) -> list[Candidate]:
    return [
        candidate
        for candidate in candidates
        if not any(
            resource_id in time_request.external_busy for resource_id in candidate.resource_ids
        )
    ]


def _lock_first_free(
    time_request: TimeRequest, target: BookingTarget, candidates: Iterable[Candidate]
) -> Candidate:
    upcoming = iter(candidates)
    candidate = next(upcoming)
    if (target.alternatives or target.visit) and not target.holds:
        return _lock_first_matched(time_request, target, candidate, upcoming)
    for following in upcoming:
        try:
            # A refused attempt rolls back to its savepoint, which releases its lock: no lock is
            # held while waiting for another resource.
            with transaction.atomic():
                return _lock(time_request, target, candidate)
        except (SlotTaken, NotAvailable, Invalid):
            candidate = following
    return _lock(time_request, target, candidate)


def _lock_first_matched(
    time_request: TimeRequest,
    target: BookingTarget,
    candidate: Candidate | None,
    upcoming: Iterator[Candidate],
) -> Candidate:
    """Lock the first choice that is still free; find the next choice after each refusal."""
    while candidate:
        try:
            with transaction.atomic():
                return _lock(time_request, target, candidate)
        except (SlotTaken, NotAvailable) as error:
            refusal = error
        candidate = next(upcoming, None)
    raise refusal


def _lock(time_request: TimeRequest, target: BookingTarget, candidate: Candidate) -> Candidate:
    """Lock the resources, use up the target's hold, and check the time request again.

    The check in `find_candidates` ran without the lock and may be out of date.
    """
    if not candidate.calendars or not lock_resources_of_calendars(candidate.calendars):
        raise Invalid.at("resource_id", "The resource no longer exists.")
    if target.holds:
        use_hold(target.holds[0], now=target.now)
    check_capacity(time_request, [calendar.capacity for calendar in candidate.calendars])
    checked = replace(time_request, rules=candidate.rules)
    by_stretch: dict[Stretch, list[uuid.UUID]] = {}
    for place in candidate.places:
        if place.step == VISIT:
            continue
        by_stretch.setdefault(place.stretch, []).append(place.calendar.resource_id)
    for stretch, resource_ids in by_stretch.items():
        check_request(checked.of_stretch(stretch), resource_ids)
    return candidate
