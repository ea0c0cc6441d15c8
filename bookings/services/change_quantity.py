"""Give back units or seats of a booking, or take more."""

from datetime import datetime

from availability.models import Event
from availability.reserve.checks import check_capacity, check_request
from availability.reserve.events import further_resource_events, further_unit_of, lock_resources
from availability.reserve.units import assign_units
from availability.search.availability_query import MAX_UNITS
from bookings.graphs import SEATED
from bookings.models import Booking
from bookings.services.errors import ActionNotAllowed, ResourceDeleted
from bookings.services.locks import lock_paced_projects
from bookings.services.seat_counts import check_seats_are_free
from bookings.services.transitions import target_of
from common.db.sql import insert_rows
from common.errors import Invalid
from common.messages import Message

CHANGE = "change"


def set_quantity(booking: Booking, quantity: int, *, now: datetime) -> None:
    """Set the quantity of a locked booking, unsaved; of a seat, its group is locked, too.

    Call it in a `guarded_transaction`. Raises Invalid, ActionNotAllowed (completed), GroupFull;
    SlotTaken or NotAvailable if further units are not free.
    """
    if booking.completed:
        raise ActionNotAllowed(booking, CHANGE)
    if booking.max_seats is not None:
        raise Invalid.at("quantity", "A group takes one unit.")
    if booking.owner_booking_id:
        _check_seats(booking, quantity, now)
    else:
        _set_units(booking, quantity, now)
    booking.quantity = None if quantity == 1 else quantity


def _check_seats(seat: Booking, quantity: int, now: datetime) -> None:
    group = seat.owner_booking
    if group and quantity > seat.units and seat.state in SEATED:
        check_seats_are_free(group, quantity, seat.place, now=now, without=[seat.id])


def _set_units(booking: Booking, quantity: int, now: datetime) -> None:
    event = booking.event
    if quantity > MAX_UNITS:
        raise Invalid.at("quantity", Message("Must be at most %(limit)s.", limit=MAX_UNITS))
    if quantity > 1 and further_resource_events(event):
        raise Invalid.at("quantity", "A booking of several resources takes one unit of each.")
    if quantity < booking.units:
        further = [row.id for row in event.companions.all() if row.is_further_unit]
        Event.objects.filter(id__in=further[quantity - 1 :]).delete()
    elif quantity > booking.units:
        _take_units(booking, quantity - booking.units, now)


def _take_units(booking: Booking, number: int, now: datetime) -> None:
    event = booking.event
    lock_paced_projects([booking])
    capacities = lock_resources([event.resource_id])
    if event.resource_id not in capacities:
        raise ResourceDeleted(booking, CHANGE)
    target = target_of(booking, now)
    target.quantity = number
    time_request = target.time_request(
        event.start,
        event.end,
        blocks=event.busy,
        allow_double_bookings=booking.allow_double_bookings,
        rules=target.conflict_rules if booking.enforce_availability else None,
        event=event,
    )
    if event.busy:
        check_capacity(time_request, capacities.values())
        check_request(time_request, [event.resource_id])
    further = [further_unit_of(event) for _ in range(number)]
    for row in further:
        row.exclusive = time_request.is_guarded
    assign_units(further, capacities)
    insert_rows(further)
