"""Hold a time that is to be booked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from availability.holds import check_open_holds, place_hold
from availability.models import Calendar, Hold
from bookings.places import Place
from bookings.services.taking import take_time


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to be placed; it lasts `seconds`. client_address: of a public page, which gets only
    a few."""

    start: datetime
    end: datetime
    seconds: int
    allow_double_bookings: bool
    enforce_availability: bool
    client_address: str = ""


def reserve_time(new: NewHold, *, place: Place, now: datetime) -> Hold:
    """Hold the time where a booking would take it; checked as that booking would be.

    In mode mutual it is held of every resource, and the first one's row is returned. Raises
    SlotTaken or NotAvailable, with alternatives; RateLimited.
    """
    claim = place.claim(
        new.start,
        new.end,
        blocks=True,
        allow_double_bookings=new.allow_double_bookings,
        rules=place.rules if new.enforce_availability else None,
    )

    def hold(calendars: Sequence[Calendar]) -> Hold:
        return place_hold(
            claim,
            app=place.app,
            project=place.project,
            resource_ids=[calendar.resource_id for calendar in calendars],
            seconds=new.seconds,
            client_address=new.client_address,
        )

    with transaction.atomic():
        if new.client_address:
            check_open_holds(place.app, new.client_address, now=now)
        return take_time(place, claim, hold)
