"""Reserve time for a booking or a hold: in one calendar, or on a free resource of a project.

1. `find_candidates` checks without a lock and finds the possible calendars, best first.
2. `reserve_time` locks the first candidate that is still free, and keeps the lock while the
   block under it writes the booking or the hold.
"""

import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from django.db import transaction

from availability.core.parties import party_rank
from availability.models import Calendar
from availability.reserve.checks import (
    check_capacity,
    check_request,
    find_free_resources,
    find_nearest_refusal,
    find_unmet_requirement,
)
from availability.reserve.events import (
    NotAvailable,
    SlotTaken,
    TimeRequest,
    guarded_transaction,
    lock_project,
    lock_resources_of_calendars,
)
from availability.reserve.holds import use_hold
from availability.reserve.policies import first_own_calendars, without_rules
from availability.search.engine import AvailabilityQuery
from availability.search.queries import fetch_parties
from availability.search.requirements import resource_ids_of_requirements
from bookings.booking_target import BookingTarget
from bookings.services.errors import alternatives_on_refusal
from bookings.services.live_check import fetch_live_busy_for, needs_live_check
from common.db.sql import to_uuid
from common.errors import Invalid

# A project's resources are read and checked in growing batches until one is free.
FIRST_BATCH = 8


class Candidate(NamedTuple):
    """Calendars to book together, the booking's own first, and the rules of their resources; None
    if rules are not enforced.
    """

    calendars: Sequence[Calendar]
    rules: AvailabilityQuery | None

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
        return [Candidate([target.calendar], target.rules if enforced else None)]
    if target.holds:
        held = _calendars_of(target.held_resource_ids)
        return [Candidate(held, target.rules_of(target.held_resource_ids) if enforced else None)]
    if target.requirements:
        matched = _matched_candidates(time_request, target)
        with alternatives_on_refusal(time_request, target):
            return chain([next(matched)], matched)
    if target.mode == "mutual" and target.project_resource_zones:
        calendars = _calendars_of(target.project_resource_ids)
        return [Candidate(calendars, target.rules if enforced else None)]
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
                yield Candidate([calendars[resource.id]], rules)
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
        query = target.rules_of(resource_ids_of_requirements(target.requirements))
        query = query if enforced else without_rules(query)
        free = find_free_resources(time_request, query)
        by_id = {resource.id: resource for resource in free}
        chosen = target.choose(by_id.keys())
        if chosen is None:
            if number == 0:
                raise find_unmet_requirement(time_request, query, target.fixed)
            return
        calendars = first_own_calendars(chosen)
        if target.named:
            calendars[target.named.resource_id] = target.named
        if len(calendars.keys() & set(chosen)) == len(chosen):
            resources = [by_id[each] for each in chosen]
            rules = replace(query, resources=resources) if enforced else None
            yield Candidate([calendars[each] for each in chosen], rules)


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


def _calendars_of(resource_ids: Sequence[uuid.UUID]) -> list[Calendar]:
    calendars = first_own_calendars(resource_ids)
    return [calendars[resource_id] for resource_id in resource_ids if resource_id in calendars]


def with_live_busy(
    time_request: TimeRequest, target: BookingTarget, candidates: Iterable[Candidate]
) -> TimeRequest:
    """Return the time request with the live busy times of the candidates' resources."""
    if not needs_live_check(time_request, target):
        return time_request
    if target.requirements and not target.holds:
        resource_ids = resource_ids_of_requirements(target.requirements)
    else:
        resource_ids = [
            resource_id for candidate in candidates for resource_id in candidate.resource_ids
        ]
    return replace(time_request, external_busy=fetch_live_busy_for([time_request], resource_ids))


@contextmanager
def reserve_time(
    time_request: TimeRequest, target: BookingTarget, candidates: Iterable[Candidate]
) -> Iterator[Sequence[Calendar]]:
    """Yield the calendars of the first free candidate, under its locks until the block ends.

    If the block raises, its writes are rolled back. Raises SlotTaken or NotAvailable, with
    alternatives that were free after the rollback; HoldExpired; Invalid if the project or resource
    has been deleted meanwhile.
    """
    if time_request.external_busy and target.requirements:
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
            free = _free_candidates(time_request, target)
            candidates = chain([next(free, Candidate((), None))], free)
        yield _lock_first_free(time_request, target, candidates).calendars


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
    if target.requirements and not target.holds:
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
    check_request(replace(time_request, rules=candidate.rules), candidate.resource_ids)
    return candidate
