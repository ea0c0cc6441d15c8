"""The only doors through which a booking's state changes: create, apply an action, reschedule.

Each is one transaction: lock (bookings first, then their resources, each in the order of their
ids), check, write the events, the bookings and the lines of their history.
"""

from bookings.services.changes import (
    BATCH,
    apply_action,
    complete_ended_bookings,
    delete_booking,
    place_of,
    time_out_payments,
)
from bookings.services.create import NewBooking, create_booking
from bookings.services.edit import change_booking
from bookings.services.history import COMPLETES_AFTER, Actor, Edit, Step, listens
from bookings.services.locks import SCOPES, THIS
from bookings.services.making import make_booking
from bookings.services.moving import check_may_move, offers_move, reschedule, reschedule_once
from bookings.services.refusals import ActionNotAllowed, PolicyViolated
from bookings.services.reserve import NewHold, reserve_time
from bookings.services.seats import NewSeat, create_seat
from bookings.services.series import ON_CONFLICT, NewSeries, create_series

__all__ = [
    "BATCH",
    "COMPLETES_AFTER",
    "ON_CONFLICT",
    "SCOPES",
    "THIS",
    "ActionNotAllowed",
    "Actor",
    "Edit",
    "NewBooking",
    "NewHold",
    "NewSeat",
    "NewSeries",
    "PolicyViolated",
    "Step",
    "apply_action",
    "change_booking",
    "check_may_move",
    "complete_ended_bookings",
    "create_booking",
    "create_seat",
    "create_series",
    "delete_booking",
    "listens",
    "make_booking",
    "offers_move",
    "place_of",
    "reschedule",
    "reschedule_once",
    "reserve_time",
    "time_out_payments",
]
