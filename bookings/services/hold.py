"""Hold a time before it is booked."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from availability.models import Hold
from availability.reserve.checks import check_request
from availability.reserve.holds import (
    WIDGET_EXTENSIONS,
    extend_hold,
    held_span,
    hold_stretches,
    with_companions,
    write_hold,
)
from availability.reserve.policies import first_own_calendars
from bookings.booking_target import BookingTarget
from bookings.public_booking_checks import count_public_hold
from bookings.services.public_hold_limits import check_held_share
from bookings.services.resource_assignment import find_candidates, reserve_time
from bookings.services.seat_holds import check_open_holds_of_address


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
    NotAvailable, with alternatives; RateLimited if the address has too many holds, LimitReached if
    public callers have.
    """
    time_request = target.time_request(
        new.start,
        new.end,
        blocks=True,
        allow_double_bookings=new.allow_double_bookings,
        rules=target.policies if new.enforce_availability else None,
    )
    with transaction.atomic():
        if new.client_address:
            check_open_holds_of_address(target.app, new.client_address, now=now)
        with reserve_time(time_request, target, find_candidates(time_request, target)) as places:
            hold = write_hold(
                time_request,
                app=target.app,
                project=target.project,
                places=places,
                seconds=new.seconds,
                client_address=new.client_address,
            )
            if hold.is_public:
                check_held_share(hold, target, now=now)
            if target.public_request:
                count_public_hold(
                    target.app, target.public_request, quantity=target.quantity, now=now
                )
            return hold


def extend_public_hold(hold: Hold, *, seconds: int, now: datetime) -> Hold:
    """Extend a hold for a public caller: once, and only if the project offers its time.

    Raises what `extend_hold` raises, and NotAvailable.
    """
    rows = with_companions(hold)
    resource_ids = list(dict.fromkeys(row.resource_id for row in rows))
    target = BookingTarget(
        app=hold.app,
        project=hold.project,
        calendar=first_own_calendars(resource_ids)[hold.resource_id],
        now=now,
        others=resource_ids[1:],
        holds=rows,
        is_public=True,
        quantity=len(rows) // len(resource_ids),
    )
    with transaction.atomic():
        extend_hold(hold, seconds=seconds, now=now, max_extensions=WIDGET_EXTENSIONS)
        target.check_is_offered()
        time_request = target.time_request(
            *held_span(hold),
            blocks=True,
            allow_double_bookings=target.allows_double_bookings,
            rules=target.rules,
        )
        for row, stretch in hold_stretches(hold):
            check_request(time_request.of_stretch(stretch), [row.resource_id])
    return hold
