"""Whether what a delivery says still holds."""

from bookings.graphs import GRAPHS
from bookings.models import Booking
from notifications.models import Delivery, Webhook

COMPLETED = "completed"


def outdated_reason(delivery: Delivery) -> str:
    """Why it must not be sent again; empty where it may.

    A webhook call tells a change as it was, so a later one doesn't make it wrong. A write to a
    calendar carries the booking as it is now.
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
    """Of a call to it, or of the mail that it was disabled."""
    if webhook.deleted_at:
        return "The webhook was deleted."
    if delivery.type == Delivery.EMAIL:
        return "The webhook is active again." if webhook.active else ""
    return "" if webhook.active else "The webhook is disabled."


def outdated_reminder_reason(delivery: Delivery, booking: Booking) -> str:
    """A reminder holds for the time it was planned for, while the booking takes place."""
    if reason := _changed_reason(delivery, booking):
        return reason
    takes_place = booking.state == COMPLETED or GRAPHS[booking.graph].is_live(booking.state)
    return "" if takes_place else _state_reason(booking)


def _outdated_mail_reason(delivery: Delivery, booking: Booking) -> str:
    """A mail about a change holds until the next one; that the booking took place is none."""
    if reason := _changed_reason(delivery, booking):
        return reason
    state = delivery.change.to_state if delivery.change else delivery.kind
    took_place = booking.state == COMPLETED and GRAPHS[booking.graph].is_live(state)
    return "" if booking.state == state or took_place else _state_reason(booking)


def _changed_reason(delivery: Delivery, booking: Booking) -> str:
    if booking.deleted_at:
        return "The booking was deleted."
    return "The booking was moved." if booking.reschedules != delivery.version else ""


def _state_reason(booking: Booking) -> str:
    return f"The booking is {booking.state}."
