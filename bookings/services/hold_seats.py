"""Hold seats of a group before they are booked."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from bookings.booking_target import BookingTarget
from bookings.models import SeatHold
from bookings.public_booking_checks import count_public_hold
from bookings.services.create_seat import OWNER_PATH, check_booking_window, check_place
from bookings.services.errors import ActionNotAllowed
from bookings.services.locks import lock_booking
from bookings.services.public_hold_limits import check_held_seats
from bookings.services.seat_counts import check_seats_are_free
from bookings.services.seat_holds import check_open_holds_of_address
from common.db.sql import insert_rows
from common.errors import Invalid, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeatHold:
    """Seats to hold for `seconds`. client_address: set for public pages, to limit open holds.
    not_begun: refuse a group that has begun.
    """

    group_id: UUID
    quantity: int
    seconds: int
    place: str | None = None
    client_address: str = ""
    not_begun: bool = False


def hold_seats(new: NewSeatHold, *, target: BookingTarget, now: datetime) -> SeatHold:
    """Create a hold, with the same checks as a booking of the same seats.

    Raises what `create_seat` raises; RateLimited if the address has too many holds, LimitReached
    if public callers have.
    """
    with transaction.atomic():
        if new.client_address:
            check_open_holds_of_address(target.app, new.client_address, now=now)
        try:
            group = lock_booking(target.app, new.group_id)
        except NotFound:
            raise Invalid.at(OWNER_PATH, "The group no longer exists.") from None
        if group.completed:
            raise ActionNotAllowed(group, "hold")
        check_booking_window(group, now, not_begun=new.not_begun)
        check_place(group, new.place)
        check_seats_are_free(group, new.quantity, new.place, now=now)
        if target.public_request:
            check_held_seats(group, new.quantity, now=now)
        hold = SeatHold(
            app=target.app,
            group=group,
            quantity=new.quantity,
            place=new.place,
            expires_at=now + timedelta(seconds=new.seconds),
            client_address=new.client_address,
            created_at=now,
        )
        insert_rows([hold])
        if target.public_request:
            count_public_hold(target.app, target.public_request, quantity=new.quantity, now=now)
    return hold
