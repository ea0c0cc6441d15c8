"""Reserve time for a booking or a hold: in one calendar, or on a free resource of a project.

1. `find_candidates` checks without a lock and returns the possible calendars, best first.
2. `reserve_time` locks the first candidate that is still free, and keeps the lock while the
   block under it writes the booking or the hold.
"""

import random
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction

from availability.booking_policies import first_own_calendars
from availability.event_time import (
    NotAvailable,
    SlotTaken,
    TimeRequest,
    guarded_transaction,
    lock_project_against_deletion,
    lock_resources_of_calendars,
)
from availability.free_time_checks import check_request, choose_free_resources
from availability.holds import use_hold
from availability.models import Calendar
from bookings.services.errors import alternatives_on_refusal
from bookings.target import BookingTarget
from common.errors import Invalid

Candidate = Sequence[Calendar]  # calendars booked together; the first is the booking's own


def find_candidates(time_request: TimeRequest, target: BookingTarget) -> list[Candidate]:
    """Return the candidates for the time request in the order to try them.

    No query if a calendar is named. Raises SlotTaken or NotAvailable, with alternatives, if none of
    the project's resources is free.
    """
    if target.calendar:
        return [[target.calendar]]
    if target.holds:
        return [_calendars_of(target.held_ids)]
    choices = target.choices(enforced=time_request.rules is not None)
    if target.mode == "mutual" and choices.resources:
        return [_calendars_of([resource.id for resource in choices.resources])]
    with alternatives_on_refusal(time_request, target):
        free = [resource.id for resource in choose_free_resources(time_request, choices)]
    if target.mode == "roundrobin_random":
        random.shuffle(free)
    return [[calendar] for calendar in _calendars_of(free)]


def _calendars_of(resource_ids: Sequence[uuid.UUID]) -> list[Calendar]:
    calendars = first_own_calendars(resource_ids)
    return [calendars[resource_id] for resource_id in resource_ids if resource_id in calendars]


@contextmanager
def reserve_time(
    time_request: TimeRequest, target: BookingTarget, candidates: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Yield the first candidate that is free, under its locks until the block ends.

    If the block raises, its writes are rolled back. Raises SlotTaken or NotAvailable, with
    alternatives that were free after the rollback; HoldExpired; Invalid if the project or resource
    has been deleted meanwhile.
    """
    # If the live check leaves no candidate, search again: another resource may be free by now.
    candidates = _free_elsewhere(time_request, candidates) or find_candidates(time_request, target)
    with alternatives_on_refusal(time_request, target), guarded_transaction():
        if target.project and not lock_project_against_deletion(target.project.id):
            raise Invalid.at("project_id", "The project no longer exists.")
        yield _lock_first_free(time_request, target, candidates)


def _free_elsewhere(time_request: TimeRequest, candidates: Sequence[Candidate]) -> list[Candidate]:
    return [
        calendars
        for calendars in candidates
        if not any(calendar.resource_id in time_request.elsewhere for calendar in calendars)
    ]


def _lock_first_free(
    time_request: TimeRequest, target: BookingTarget, candidates: Sequence[Candidate]
) -> Candidate:
    *others, last = candidates or [()]
    for calendars in others:
        try:
            # A refused attempt rolls back to its savepoint, which releases its lock: no lock is
            # held while waiting for another resource.
            with transaction.atomic():
                return _lock(time_request, target, calendars)
        except (SlotTaken, NotAvailable, Invalid):
            continue
    return _lock(time_request, target, last)


def _lock(time_request: TimeRequest, target: BookingTarget, calendars: Candidate) -> Candidate:
    """Lock the resources, use up the target's hold, and check the time request again.

    The check in `find_candidates` ran without the lock and may be out of date.
    """
    if not calendars or not lock_resources_of_calendars(calendars):
        raise Invalid.at("resource_id", "The resource no longer exists.")
    if target.holds:
        use_hold(target.holds[0], now=target.now)
    check_request(time_request, [calendar.resource_id for calendar in calendars])
    return calendars
