"""The only doors through which a booking's state changes: create, apply an action, reschedule.

Each is one transaction: lock (the booking first, then its resources in the order of their ids),
check, write the event, the booking and the line of its history.
"""

from bookings.services.changes import (
    BATCH,
    apply_action,
    change_meta,
    complete_ended_bookings,
    delete_booking,
    reschedule,
)
from bookings.services.create import NewBooking, create_booking
from bookings.services.history import COMPLETES_AFTER, Actor, Step, listens
from bookings.services.refusals import ActionNotAllowed, PolicyViolated

__all__ = [
    "BATCH",
    "COMPLETES_AFTER",
    "ActionNotAllowed",
    "Actor",
    "NewBooking",
    "PolicyViolated",
    "Step",
    "apply_action",
    "change_meta",
    "complete_ended_bookings",
    "create_booking",
    "delete_booking",
    "listens",
    "reschedule",
]
