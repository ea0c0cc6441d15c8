"""How staff read states and times."""

from collections.abc import Mapping
from datetime import datetime

from django.utils.dateformat import format as format_date

from apps_config.days import moment_words
from bookings.models import Booking
from bookings.wording import is_ambiguous, known_zone, offset_words
from notifications.models import Delivery
from scheduling.api.instants import zone

# The theme's colours of labels.
STATE_COLOURS: Mapping[str, str] = {
    "initialized": "info",
    "tentative": "warning",
    "confirmed": "success",
    "paid": "success",
    "completed": "primary",
    "declined": "danger",
    "unpaid": "danger",
    "cancelled": "danger",
    "cancelled_by_customer": "danger",
    "cancelled_by_owner": "danger",
}
DELIVERY_COLOURS: Mapping[str, str] = {
    "scheduled": "info",
    "sending": "info",
    "delivered": "success",
    "failed": "danger",
    "expired": "danger",
    "cancelled": "primary",
    "skipped": "warning",
}
DELIVERY_WORDS: Mapping[str, str] = {"email": "e-mail", "webhook": "call", "calendar": "calendar"}
DELIVERY_ICONS: Mapping[str, str] = {"email": "mail", "webhook": "webhook", "calendar": "event"}


def state_words(state: str) -> str:
    """`cancelled by customer`."""
    return state.replace("_", " ")


def booking_words(booking: Booking) -> str:
    """`Marty McFly – Haircut, Mon 23 Nov 2026, 09:00 CET`. Reads event and customers."""
    who = ", ".join(customer.name for customer in booking.customers.all() if customer.name)
    what, when = booking.event.what, moment_words(booking.event.start)
    return f"{who} – {what}, {when}" if who else f"{what}, {when}"


def receiver_words(delivery: Delivery) -> str:
    """`to the customer, ann@example.com`."""
    if delivery.type == Delivery.EMAIL:
        address = delivery.customer.email if delivery.customer else ""
        return f"to the {delivery.recipient}{f', {address}' if address else ''}"
    return f"to {delivery.webhook.url if delivery.webhook else delivery.endpoint}"


def reading_words(moment: datetime, zone_name: str) -> str:
    """`Mon 23 Nov 2026, 09:00`, on the clock of a page that names its zone; with the distance from
    UTC where that clock shows the reading twice."""
    local = moment.astimezone(zone(known_zone(zone_name)))
    tail = f" {offset_words(local)}" if is_ambiguous(local) else ""
    return format_date(local, "D j M Y, H:i") + tail
