"""Texts and colours of states, bookings, deliveries and times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.dateformat import format as format_date

from apps_config.models import App
from bookings.formatting import first_known_zone, is_ambiguous, offset_words
from bookings.models import Booking
from common.instants import find_zone
from common.shipped_languages import shipped_languages
from notifications.models import Delivery
from notifications.planning import UPDATED
from office.base.dates import moment_words

# The theme's label colours.
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
# States whose names in the API are no words for people.
STATE_WORDS: Mapping[str, str] = {
    "initialized": "new",
    "tentative": "pending",
    "unpaid": "not paid in time",
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


GRAPH_WORDS: Mapping[str, str] = {
    "instant": "Confirmed at once",
    "confirm_decline": "Needs approval",
    "instant_payment": "Pay first",
    "group_owner": "Group session",
    "group_customer": "Seat in a group session",
    "group_customer_payment": "Paid seat in a group session",
}
# The ways of distributing bookings, in one line of text.
MODE_NAMES: Mapping[str, str] = {
    "roundrobin_random": "Anyone who is free",
    "roundrobin_prioritized": "In order",
    "roundrobin_fair": "Fair turns",
    "mutual": "Everyone together",
    "exclusive": "One of several",
    "all_free": "One of several",
}
RULE_WORDS: Mapping[str, str] = {
    "allow_weekdays": "Open Mon–Fri",
    "allow_weekends": "Open Sat–Sun",
    "allow_day": "Open on (day)",
    "allow_hours": "Open from – to (hours)",
    "allow_day_and_time": "Open on (day, hours)",
    "allow_period": "Open only (dates)",
    "block_weekdays": "Closed Mon–Fri",
    "block_weekends": "Closed Sat–Sun",
    "block_day": "Closed on (day)",
    "block_hours": "Closed from – to (hours)",
    "block_day_and_time": "Closed on (day, hours)",
    "block_period": "Closed (dates)",
    "open_period": "Extra hours (dates)",
    "open_recurring": "Extra hours (repeated)",
    "block_recurring": "Closed (repeated)",
    "replace_day": "Own hours of a date",
    "block_holidays": "Closed on public holidays",
}


ACTION_WORDS: Mapping[str, str] = {
    "create": "Create",
    "confirm": "Confirm",
    "decline": "Decline",
    "pay": "Mark as paid",
    "complete": "Mark as completed",
    "cancel": "Cancel the booking",
    "cancel_by_customer": "Cancel on the customer's behalf",
    "cancel_by_owner": "Cancel on the owner's behalf",
}
MAIL_WORDS: Mapping[str, str] = {
    "tentative": "“Request received” e-mail",
    "confirmed": "Confirmation e-mail",
    "paid": "Payment confirmation e-mail",
    "declined": "“Request declined” e-mail",
    "cancelled": "Cancellation e-mail",
    "cancelled_by_customer": "Cancellation e-mail",
    "cancelled_by_owner": "Cancellation e-mail",
    "unpaid": "“Not paid in time” e-mail",
    "rescheduled": "Rescheduling e-mail",
    "updated": "“Booking changed” e-mail",
    "reminder": "Reminder e-mail",
}
EMAILS_OFF = "The app's e-mails are off."
DELIVERY_STATE_WORDS: Mapping[str, str] = {
    "scheduled": "queued",
    "sending": "being sent",
    "delivered": "delivered",
    "failed": "failed",
    "expired": "not sent in time",
    "cancelled": "cancelled",
    "skipped": "skipped",
}


def sends_emails(app: App) -> bool:
    return not app.settings.get("disable_emails")


def mail_words(kind: str) -> str:
    """Return `Cancellation e-mail` for the kind of an e-mail."""
    return MAIL_WORDS.get(kind, f"“{state_words(kind).capitalize()}” e-mail")


def template_words(slug: str) -> str:
    """Return `Confirmation e-mail to the customer` for the name of a template."""
    kind, _, recipient = slug.rpartition("_")
    return f"{mail_words(kind)} to the {recipient}"


def kind_words(kind: str) -> str:
    """Return `Cancelled by customer`, `Changed` for the kind of a call."""
    name = kind.removeprefix("booking.")
    return {UPDATED: "Changed"}.get(name) or state_words(name).capitalize()


def language_names() -> dict[str, str]:
    """Return the shipped languages: code -> name."""
    names = {code.lower(): name for code, name in settings.LANGUAGES}
    return {code: names.get(code.lower(), code) for code in shipped_languages()}


def state_words(state: str) -> str:
    """Return `cancelled by customer`, `pending`: of states, outcomes and kinds of messages."""
    return STATE_WORDS.get(state) or state.replace("_", " ")


def booking_words(booking: Booking) -> str:
    """Return `Marty McFly – Haircut, Mon 23 Nov 2026, 09:00 CET`. Reads event and customers."""
    return f"{with_customers(booking, booking.event.what)}, {moment_words(booking.event.start)}"


def with_customers(booking: Booking, what: str) -> str:
    """Return `Marty McFly – Haircut`. Reads the customers."""
    who = ", ".join(customer.name for customer in booking.customers.all() if customer.name)
    return f"{who} – {what}" if who else what


def delivery_words(delivery: Delivery) -> str:
    """Return `Cancellation e-mail`, `Webhook call: pending`, `Calendar entry: confirmed`."""
    if delivery.type == Delivery.EMAIL:
        return mail_words(delivery.kind)
    what = "Calendar entry" if delivery.type == Delivery.CALENDAR else "Webhook call"
    return f"{what}: {state_words(delivery.kind)}"


def json_words(value: Any, names: Mapping[str, str] = STATE_WORDS) -> str:
    """Return JSON data as lines of text: `Colour: red`; "" if there is none. `names`: words of
    values.
    """
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        pairs = (
            (str(key).replace("_", " ").capitalize(), json_words(each, names))
            for key, each in value.items()
        )
        return "\n".join(f"{key}: {words}" for key, words in pairs if words)
    if isinstance(value, list):
        lines = (json_words(each, names).replace("\n", ", ") for each in value)
        return "\n".join(filter(None, lines))
    return names.get(str(value), str(value))


def receiver_words(delivery: Delivery) -> str:
    """Return `to the customer, ann@example.com`."""
    if delivery.type == Delivery.EMAIL:
        address = delivery.customer.email if delivery.customer else ""
        return f"to the {delivery.recipient}{f', {address}' if address else ''}"
    return f"to {delivery.webhook.url if delivery.webhook else delivery.endpoint}"


def reading_words(moment: datetime, zone_name: str) -> str:
    """Return `Mon 23 Nov 2026, 09:00` in a zone named on the page; the UTC offset if ambiguous."""
    local = moment.astimezone(find_zone(first_known_zone(zone_name)))
    tail = f" {offset_words(local)}" if is_ambiguous(local) else ""
    return format_date(local, "D j M Y, H:i") + tail
