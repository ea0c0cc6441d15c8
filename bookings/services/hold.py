"""Hold a time before it is booked."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from availability.holds import check_open_holds, write_hold
from availability.models import Hold
from bookings.services.reserve_time import find_candidates, reserve_time
from bookings.target import BookingTarget


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to create for `seconds`; client_address: set for public pages, to limit open holds."""

    start: datetime
    end: datetime
    seconds: int
    allow_double_bookings: bool
    enforce_availability: bool
    client_address: str = ""


def hold_time(new: NewHold, *, target: BookingTarget, now: datetime) -> Hold:
    """Create a hold, with the same checks as a booking of the same time.

    In mode mutual every resource gets a hold; the first one's row is returned. Raises SlotTaken or
    NotAvailable, with alternatives; RateLimited.
    """
    time_request = target.time_request(
        new.start,
        new.end,
        blocks=True,
        allow_double_bookings=new.allow_double_bookings,
        rules=target.rules if new.enforce_availability else None,
    )
    with transaction.atomic():
        if new.client_address:
            check_open_holds(target.app, new.client_address, now=now)
        with reserve_time(time_request, target, find_candidates(time_request, target)) as calendars:
            return write_hold(
                time_request,
                app=target.app,
                project=target.project,
                resource_ids=[calendar.resource_id for calendar in calendars],
                seconds=new.seconds,
                client_address=new.client_address,
            )
