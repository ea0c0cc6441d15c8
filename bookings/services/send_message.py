"""Send a message: an e-mail to the customers of a booking, which stays as it is."""

import uuid
from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from apps_config.models import App
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.services.errors import ActionNotAllowed
from bookings.services.locks import lock_booking
from bookings.services.transition_log import MESSAGE, Actor, Transition, new_change
from common.db.sql import insert_rows
from common.errors import Invalid
from common.hooks import Hook

# Called in the transaction with the log entry, to mail the message. It is no transition: nothing
# has changed.
on_message_sent = Hook[Callable[[Transition], None]]()


def send_message(
    *, app: App, booking_id: uuid.UUID, actor: Actor, now: datetime, message: str
) -> Booking:
    """Mail the message to the booking's customers, and keep it in the log.

    Raises NotFound; ActionNotAllowed for a booking that was called off, Invalid without a text.
    """
    if not message.strip():
        raise Invalid.at("message", "This field may not be blank.")
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if booking.completed and not GRAPHS[booking.graph].takes_place(booking.state):
            raise ActionNotAllowed(booking, MESSAGE)
        change = new_change(booking, MESSAGE, booking.state, actor, now, message)
        insert_rows([change])
        for listener in on_message_sent:
            listener(Transition(booking, change))
    return booking
