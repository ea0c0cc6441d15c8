"""The entry points that change a booking's state: create, apply an action, reschedule.

Each runs one transaction: lock the bookings, then their resources, each in order of id; check;
write the events, the bookings and their log entries.
"""

from datetime import datetime

from bookings.booking_target import BookingTarget
from bookings.models import Booking
from bookings.services.conference_links import CONFERENCE, store_conference_link
from bookings.services.create import NewBooking, create_booking
from bookings.services.create_seat import NewSeat, create_seat
from bookings.services.create_series import ON_CONFLICT, NewSeries, create_series
from bookings.services.create_visit_series import create_visit_series
from bookings.services.edit_fields import change_booking, end_links
from bookings.services.errors import ActionNotAllowed, PolicyViolated
from bookings.services.hold import NewHold, extend_public_hold, hold_time
from bookings.services.hold_seats import NewSeatHold, hold_seats
from bookings.services.locks import SCOPES, THIS
from bookings.services.offer_new_times import offer_new_times, on_new_times_offered
from bookings.services.reschedule import (
    StepStart,
    check_may_move,
    customer_may_move,
    movable_bookings,
    reschedule_booking,
    reschedule_unless_done,
)
from bookings.services.responses import Answer, on_response, record_response
from bookings.services.seat_counts import held_seats_column
from bookings.services.send_message import on_message_sent, send_message
from bookings.services.transition_log import (
    COMPLETES_AFTER,
    Actor,
    Edit,
    Reassignment,
    Transition,
    on_transition,
)
from bookings.services.transitions import (
    apply_action,
    complete_ended,
    delete_completed_booking,
    expire_bookings,
    target_of,
)
from bookings.services.verification import (
    check_code,
    code_of,
    empty_rows,
    end_hold,
    find_verified,
    hold_until_verified,
    make_verified,
    needs_verification,
    on_unverified_booking,
    send_new_code,
)

__all__ = [
    "COMPLETES_AFTER",
    "CONFERENCE",
    "ON_CONFLICT",
    "SCOPES",
    "THIS",
    "ActionNotAllowed",
    "Actor",
    "Answer",
    "Edit",
    "NewBooking",
    "NewHold",
    "NewSeat",
    "NewSeatHold",
    "NewSeries",
    "PolicyViolated",
    "Reassignment",
    "StepStart",
    "Transition",
    "apply_action",
    "change_booking",
    "check_code",
    "check_may_move",
    "code_of",
    "complete_ended",
    "create_booking",
    "create_seat",
    "create_series",
    "create_visit_series",
    "customer_may_move",
    "delete_completed_booking",
    "empty_rows",
    "end_hold",
    "end_links",
    "expire_bookings",
    "extend_public_hold",
    "find_verified",
    "held_seats_column",
    "hold_seats",
    "hold_time",
    "hold_until_verified",
    "make_booking",
    "make_verified",
    "movable_bookings",
    "needs_verification",
    "offer_new_times",
    "on_message_sent",
    "on_new_times_offered",
    "on_response",
    "on_transition",
    "on_unverified_booking",
    "record_response",
    "reschedule_booking",
    "reschedule_unless_done",
    "send_message",
    "send_new_code",
    "store_conference_link",
    "target_of",
]


def make_booking(
    new: NewBooking | NewSeat, *, target: BookingTarget, actor: Actor, now: datetime
) -> Booking:
    """Make a booking, a series or a seat, depending on the type of `new`.

    Raises what `create_booking`, `create_series` and `create_seat` raise; then nothing is written.
    """
    if isinstance(new, NewSeat):
        return create_seat(new, target=target, actor=actor, now=now)
    if isinstance(new, NewSeries):
        create = create_visit_series if target.visit else create_series
        return create(new, target=target, actor=actor, now=now)
    return create_booking(new, target=target, actor=actor, now=now)
