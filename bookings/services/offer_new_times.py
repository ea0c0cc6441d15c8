"""Offer new times: ask the customers by e-mail to move a booking, which stays as it is."""

import uuid
from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from apps_config.models import App
from bookings.models import Booking
from bookings.services.errors import ActionNotAllowed
from bookings.services.locks import lock_booking
from bookings.services.reschedule import has_move_link
from bookings.services.transition_log import OFFER_NEW_TIMES, Actor, Transition, new_change
from common.db.sql import insert_rows
from common.errors import Forbidden
from common.hooks import Hook
from common.messages import Message

NO_MOVE_LINK = Message("Customers can't move this booking by a link.")

# Called in the transaction with the offer, to mail it. It is no transition: nothing has changed.
on_new_times_offered = Hook[Callable[[Transition], None]]()


def offer_new_times(
    *, app: App, booking_id: uuid.UUID, actor: Actor, now: datetime, message: str = ""
) -> Booking:
    """Mail the booking's customers the link to move it.

    Until the next move the customers may use it whatever notice and number of moves the project
    allows. Raises NotFound; ActionNotAllowed if the booking is completed, Forbidden if it has no
    such link.
    """
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if booking.completed:
            raise ActionNotAllowed(booking, OFFER_NEW_TIMES)
        if not has_move_link(booking):
            raise Forbidden(NO_MOVE_LINK)
        change = new_change(booking, OFFER_NEW_TIMES, booking.state, actor, now, message)
        insert_rows([change])
        for listener in on_new_times_offered:
            listener(Transition(booking, change))
    return booking
