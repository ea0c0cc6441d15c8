"""Customers' answers to invitations, as they arrive from a connected calendar or by e-mail."""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from apps_config.models import App
from availability.serializers.projects import CANCEL_DECLINED
from bookings.graphs import GRAPHS
from bookings.models import Booking, Customer, StateChange
from bookings.services.locks import lock_booking
from bookings.services.transition_log import (
    RESCHEDULE,
    RESPONSE,
    Actor,
    Transition,
    new_change,
    write_log_entry,
)
from bookings.services.transitions import apply_action, check_notice
from common.db.sql import update_rows
from common.db.updated_at import transaction_start
from common.errors import NotFound, Refusal
from common.hooks import Hook
from common.messages import Message

CANCEL = "cancel_by_customer"
# Messages in the log. They name nobody: each customer of the booking may export them.
ANSWERS = {
    Customer.ACCEPTED: Message("The customer has accepted the invitation."),
    Customer.TENTATIVE: Message("The customer has tentatively accepted the invitation."),
    Customer.DECLINED: Message("The customer has declined the invitation."),
}
ANSWERS_OF_SEVERAL = {
    Customer.ACCEPTED: Message("One of the customers has accepted the invitation."),
    Customer.TENTATIVE: Message("One of the customers has tentatively accepted the invitation."),
    Customer.DECLINED: Message("One of the customers has declined the invitation."),
}
# Why a declined booking is not cancelled.
TOO_LATE = Message(
    "The customer has declined the invitation. It is too late to cancel the booking."
)
NOT_CANCELLABLE = Message(
    "The customer has declined the invitation. Customers can't cancel the booking in this state."
)
# What became of an answer.
NOTED, CANCELLED, UNCHANGED, OLDER, ENDED = "noted", "cancelled", "unchanged", "older", "ended"

# Called in the transaction with the log entry, for webhooks. It is no transition: the booking is
# unchanged.
on_response = Hook[Callable[[Transition], None]]()


class Answer(NamedTuple):
    """A customer's answer. response: one of Customer.RESPONSES. at: when it was given, or else when
    it was found. may_cancel: whether it is certain that the customer has given it.
    """

    response: str
    at: datetime
    may_cancel: bool = True


class Invitation(NamedTuple):
    """The calendar entry that was answered: its booking, which may be the group of a seat, and its
    SEQUENCE (RFC 5545, 3.8.7.4).
    """

    booking_id: uuid.UUID
    sequence: int


def record_response(
    *,
    app: App,
    customer: Customer,
    answer: Answer,
    actor: Actor,
    now: datetime,
    invitation: Invitation | None = None,
) -> str:
    """Store the answer of a booking's customer; return what became of it (NOTED, ...).

    An answer that is stored already is not stored again. Older ones are ignored: those given
    before the stored one, and those to an `invitation` to a former time (None: to the present one).
    A declined invitation cancels the booking if the project's `guest_declines` says so, for the
    customer and by the customers' policies; if they do not allow it, the log says so. actor: its
    source is one of Customer.RESPONSE_SOURCES. Raises NotFound.
    """
    with transaction.atomic():
        booking = lock_booking(app, customer.booking_id)
        customers = list(booking.customers.all())
        row = next((each for each in customers if each.id == customer.id), None)
        if row is None:
            raise NotFound("Customer")
        if booking.completed:
            return ENDED
        if row.responded_at and answer.at < row.responded_at:
            return OLDER
        if _is_about_former_time(booking, answer, invitation):
            return OLDER
        cancels = answer.may_cancel and _cancels(booking, customers, answer.response)
        obstacle = _obstacle(booking, now) if cancels else None
        is_new = answer.response != row.response
        if is_new:
            row.response, row.responded_at = answer.response, answer.at
            row.response_source = actor.source
            row.save(update_fields=list(Customer.NO_ANSWER))
            sentences = ANSWERS if len(customers) == 1 else ANSWERS_OF_SEVERAL
            message = obstacle or sentences[answer.response]
            _write(booking, new_change(booking, RESPONSE, booking.state, actor, now, message))
        if cancels and not obstacle:
            apply_action(app=app, booking_id=booking.id, action=CANCEL, actor=actor, now=now)
            return CANCELLED
        return NOTED if is_new else UNCHANGED


def reset_responses(bookings: Sequence[Booking]) -> None:
    """Forget the answers of the bookings' customers: they were about another time."""
    if bookings:
        answered = Customer.objects.filter(booking__in=bookings, response__isnull=False)
        answered.update(**Customer.NO_ANSWER)


def _is_about_former_time(booking: Booking, answer: Answer, invitation: Invitation | None) -> bool:
    """Return whether the answer is from before the last move. Of an `invitation`, the SEQUENCE says
    so: that of the e-mails about a move is the number of earlier log entries.
    """
    entry_id = invitation.booking_id if invitation else booking.id
    changes = StateChange.objects.filter(booking=entry_id)
    last_move = changes.filter(action=RESCHEDULE).order_by("id").last()
    if last_move is None:
        return False
    if invitation is None:
        return answer.at < last_move.created_at
    return invitation.sequence < changes.filter(id__lt=last_move.id).count()


def _cancels(booking: Booking, customers: Sequence[Customer], response: str) -> bool:
    """Return whether the answer is meant to cancel the booking. Other customers still come."""
    setting = booking.project.settings.get("guest_declines") if booking.project else None
    is_alone = len(customers) == 1 or GRAPHS[booking.graph].is_seat
    return response == Customer.DECLINED and setting == CANCEL_DECLINED and is_alone


def _obstacle(booking: Booking, now: datetime) -> Message | None:
    """Return why the customer can't cancel the booking, None if the customer can."""
    if GRAPHS[booking.graph].next_state(booking.state, CANCEL) is None:
        return NOT_CANCELLABLE
    try:
        check_notice(booking, "min_cancel_time", now)
    except Refusal:
        return TOO_LATE
    return None


def _write(booking: Booking, change: StateChange) -> None:
    booking.updated_at = transaction_start()
    update_rows([booking], ["updated_at"])
    write_log_entry(change)
    for listener in on_response:
        listener(Transition(booking, change))
