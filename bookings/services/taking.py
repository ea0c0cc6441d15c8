"""Take time where a booking or a hold wants it: in one place, or wherever a project is free."""

import random
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

from django.db import transaction

from availability.enforcement import first_calendars
from availability.holds import use_hold
from availability.models import Calendar
from availability.placement import (
    Claim,
    NotAvailable,
    SlotTaken,
    choose_free,
    guarded_transaction,
    keep_project,
    lock_calendars,
)
from bookings.places import Place
from bookings.services.refusals import offer_alternatives
from scheduling.api.errors import Invalid

Taken = TypeVar("Taken")


def take_time(place: Place, claim: Claim, take: Callable[[Sequence[Calendar]], Taken]) -> Taken:
    """What `take` makes of the place's calendars, whose resources are locked when it is called.

    It checks the claim and writes; a refusal leaves nothing behind. Raises SlotTaken or
    NotAvailable, with alternatives that were free after the rollback; HoldExpired; Invalid where
    something has been deleted meanwhile.
    """
    try:
        with guarded_transaction():
            if place.project and not keep_project(place.project.id):
                raise Invalid.at("project_id", "There is no such project any more.")
            return _take_somewhere(place, claim, take)
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, claim, place)
        raise


def _take_somewhere(
    place: Place, claim: Claim, take: Callable[[Sequence[Calendar]], Taken]
) -> Taken:
    if place.calendar:
        return _take_in([place.calendar], place, take)
    if place.holds:
        return _take_in(_calendars_of(place.held_ids), place, take)
    choices = place.choices(enforced=claim.rules is not None)
    if place.mode == "mutual" and choices.resources:
        return _take_in(_calendars_of([one.id for one in choices.resources]), place, take)
    free = [resource.id for resource in choose_free(claim, choices)]
    # Take the first resource, by the project's mode, that is still free once it is locked.
    if place.mode == "roundrobin_random":
        free = random.sample(free, len(free))
    *calendars, last = _calendars_of(free)
    for calendar in calendars:
        try:
            # A refused try rolls back to its savepoint, which gives its lock back: no resource is
            # waited for while another is held.
            with transaction.atomic():
                return _take_in([calendar], place, take)
        except (SlotTaken, NotAvailable, Invalid):
            continue
    return _take_in([last], place, take)


def _calendars_of(resource_ids: Sequence[uuid.UUID]) -> list[Calendar]:
    calendars = first_calendars(resource_ids)
    return [calendars[one] for one in resource_ids if one in calendars]


def _take_in(
    calendars: Sequence[Calendar], place: Place, take: Callable[[Sequence[Calendar]], Taken]
) -> Taken:
    """Lock the calendars' resources, use up the hold that keeps them, and take their time."""
    if not calendars or not lock_calendars(calendars):
        raise Invalid.at("resource_id", "There is no such resource any more.")
    if place.holds:
        use_hold(place.holds[0], now=place.now)
    return take(calendars)
