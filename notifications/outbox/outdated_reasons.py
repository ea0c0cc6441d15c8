"""Whether the content of a delivery still holds."""

from bookings.graphs import GRAPHS
from bookings.models import Booking
from common.messages import Message
from notifications.models import Delivery, Webhook

COMPLETED = "completed"


def outdated_reason(delivery: Delivery) -> str:
    """Return why the delivery must not be sent again; "" if it may.

    A webhook call reports a past change, so later changes do not outdate it. A calendar write
    contains the booking's current data.
    """
    webhook, booking = delivery.webhook, delivery.booking
    if webhook:
        return _outdated_for_webhook_reason(delivery, webhook)
    if booking is None or delivery.type == Delivery.CALENDAR:
        return ""
    if delivery.kind == Delivery.REMINDER:
        return outdated_reminder_reason(delivery, booking)
    return _outdated_mail_reason(delivery, booking)


def _outdated_for_webhook_reason(delivery: Delivery, webhook: Webhook) -> str:
    """Return the reason, or "", for a call to the webhook or the mail about its disabling."""
    if delivery.type == Delivery.EMAIL and not webhook.deleted_at:
        return "The webhook is active again." if webhook.active else ""
    return outdated_call_reason(webhook)


def outdated_call_reason(webhook: Webhook) -> str:
    """Return why the webhook must not be called; "" if it may."""
    if webhook.deleted_at:
        return Message("The webhook was deleted.")
    return "" if webhook.active else Message("The webhook is disabled.")


def outdated_reminder_reason(delivery: Delivery, booking: Booking) -> str:
    """Return the reason, or "": a reminder needs a booking that takes place as planned."""
    if reason := _changed_reason(delivery.version, booking):
        return reason
    takes_place = booking.state == COMPLETED or GRAPHS[booking.graph].is_live(booking.state)
    return "" if takes_place else _state_reason(booking)


def _outdated_mail_reason(delivery: Delivery, booking: Booking) -> str:
    """Return the reason, or "": a mail holds until the next change other than completion."""
    state = delivery.change.to_state if delivery.change else delivery.kind
    return changed_since_reason(booking, state, delivery.version)


def changed_since_reason(booking: Booking, state: str, version: int) -> str:
    """Return why a mail about this state, after so many moves, no longer holds; "" if it does."""
    if reason := _changed_reason(version, booking):
        return reason
    took_place = booking.state == COMPLETED and GRAPHS[booking.graph].is_live(state)
    return "" if booking.state == state or took_place else _state_reason(booking)


def _changed_reason(version: int, booking: Booking) -> str:
    if booking.deleted_at:
        return Message("The booking was deleted.")
    return Message("The booking was moved.") if booking.reschedules != version else ""


def _state_reason(booking: Booking) -> str:
    return f"The booking is {booking.state}."
