"""Texts and colours of states, bookings, deliveries and times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.html import escape
from django.utils.text import capfirst
from django.utils.translation import get_language_info, gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from apps_config.models import App
from bookings.models import Booking
from bookings.pages.formatting import (
    day_and_time,
    first_known_zone,
    is_ambiguous,
    offset_words,
    short_date_words,
    time_words,
)
from common.shipped_languages import shipped_languages
from common.time.instants import find_zone
from notifications.calendar_problems import CALENDAR_PROBLEM, CALENDAR_PROBLEM_EVENT
from notifications.models import Delivery
from notifications.planning import REASSIGNED, UPDATED
from office.base.dates import moment_words
from office.base.lazy_text import LazyText


class LabelledWords(NamedTuple):
    """The value of a column with coloured labels: the key of the colour, and the text."""

    key: str
    words: str

    def __html__(self) -> str:
        """Return the text for pages, whose fields the theme shows without colours."""
        return escape(self.words)


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
    "attended": "success",
    "no_show": "danger",
    "takes_place": "success",
}
# States, outcomes and events; what is missing has a name in the API only.
STATE_WORDS: Mapping[str, LazyText] = {
    "initialized": pgettext_lazy("state of a booking", "new"),
    "tentative": pgettext_lazy("state of a booking", "pending"),
    "confirmed": pgettext_lazy("state of a booking", "confirmed"),
    "paid": pgettext_lazy("state of a booking", "paid"),
    "completed": pgettext_lazy("state of a booking", "completed"),
    "declined": pgettext_lazy("state of a booking", "declined"),
    "unpaid": pgettext_lazy("state of a booking", "not paid in time"),
    "cancelled": pgettext_lazy("state of a booking", "cancelled"),
    "cancelled_by_customer": pgettext_lazy("state of a booking", "cancelled by customer"),
    "cancelled_by_owner": pgettext_lazy("state of a booking", "cancelled by owner"),
    # Translators: state of a class with seats that is not over.
    "takes_place": pgettext_lazy("state of a booking", "takes place"),
    "attended": pgettext_lazy("state of a booking", "attended"),
    "no_show": pgettext_lazy("state of a booking", "no show"),
    "rescheduled": pgettext_lazy("state of a booking", "rescheduled"),
    "updated": pgettext_lazy("state of a booking", "updated"),
    "new_times": pgettext_lazy("state of a booking", "new times offered"),
    "message": pgettext_lazy("state of a booking", "message"),
    "response": pgettext_lazy("state of a booking", "answer to the invitation"),
    "reminder": pgettext_lazy("state of a booking", "reminder"),
    "test": pgettext_lazy("state of a booking", "test"),
    "customer": pgettext_lazy("state of a booking", "customer"),
    "owner": pgettext_lazy("state of a booking", "owner"),
}
# Customers' answers to invitations.
RESPONSE_WORDS: Mapping[str, LazyText] = {
    "accepted": pgettext_lazy("answer to an invitation", "accepted"),
    "tentative": pgettext_lazy("answer to an invitation", "tentatively accepted"),
    "declined": pgettext_lazy("answer to an invitation", "declined"),
}
RESPONSE_SOURCE_WORDS: Mapping[str, LazyText] = {"calendar": _("calendar"), "mail": _("e-mail")}
# States in JSON data whose names in the API are no words for people.
JSON_WORDS = {name: STATE_WORDS[name] for name in ("initialized", "tentative", "unpaid")}
DELIVERY_COLOURS: Mapping[str, str] = {
    "scheduled": "info",
    "sending": "info",
    "delivered": "success",
    "failed": "danger",
    "expired": "danger",
    "cancelled": "primary",
    "skipped": "warning",
}
DELIVERY_WORDS: Mapping[str, LazyText] = {
    "email": _("e-mail"),
    "webhook": pgettext_lazy("of a webhook", "call"),
    "calendar": _("calendar"),
}
DELIVERY_ICONS: Mapping[str, str] = {"email": "mail", "webhook": "webhook", "calendar": "event"}


GRAPH_WORDS: Mapping[str, LazyText] = {
    "instant": _("Confirmed at once"),
    "confirm_decline": _("Needs approval"),
    "instant_payment": _("Pay first"),
    "group_owner": _("Group session"),
    "group_customer": _("Seat in a group session"),
    "group_customer_payment": _("Paid seat in a group session"),
}
# The ways of distributing bookings, in one line of text.
MODE_NAMES: Mapping[str, LazyText] = {
    "roundrobin_random": _("Anyone who is free"),
    "roundrobin_prioritized": _("In order"),
    "roundrobin_fair": _("Fair turns"),
    "mutual": _("Everyone together"),
    "exclusive": _("One of several"),
    "all_free": _("One of several"),
}
RULE_WORDS: Mapping[str, LazyText] = {
    "allow_weekdays": _("Open Mon–Fri"),
    "allow_weekends": _("Open Sat–Sun"),
    "allow_day": _("Open on (day)"),
    "allow_hours": _("Open from – to (hours)"),
    "allow_day_and_time": _("Open on (day, hours)"),
    "allow_period": _("Open only (dates)"),
    "block_weekdays": _("Closed Mon–Fri"),
    "block_weekends": _("Closed Sat–Sun"),
    "block_day": _("Closed on (day)"),
    "block_hours": _("Closed from – to (hours)"),
    "block_day_and_time": _("Closed on (day, hours)"),
    "block_period": _("Closed (dates)"),
    "open_period": _("Extra hours (dates)"),
    "open_recurring": _("Extra hours (repeated)"),
    "block_recurring": _("Closed (repeated)"),
    "replace_day": _("Own hours of a date"),
    "block_holidays": _("Closed on public holidays"),
}


ACTION_WORDS: Mapping[str, LazyText] = {
    "create": _("Create"),
    "confirm": _("Confirm"),
    "decline": _("Decline"),
    "pay": _("Mark as paid"),
    "complete": _("Mark as completed"),
    "cancel": _("Cancel the booking"),
    "cancel_by_customer": _("Cancel on the customer's behalf"),
    "cancel_by_owner": _("Cancel on the owner's behalf"),
}
MAIL_WORDS: Mapping[str, LazyText] = {
    "tentative": _("“Request received” e-mail"),
    "confirmed": _("Confirmation e-mail"),
    "paid": _("Payment confirmation e-mail"),
    "declined": _("“Request declined” e-mail"),
    "cancelled": _("Cancellation e-mail"),
    "cancelled_by_customer": _("Cancellation e-mail"),
    "cancelled_by_owner": _("Cancellation e-mail"),
    "unpaid": _("“Not paid in time” e-mail"),
    "rescheduled": _("Rescheduling e-mail"),
    "reassigned": _("“Resource changed” e-mail"),
    "unassigned": _("“Moved to another resource” e-mail"),
    "updated": _("“Booking changed” e-mail"),
    "new_times": _("“Choose another time” e-mail"),
    "conference": _("“Video call” e-mail"),
    "message": _("Message by e-mail"),
    "reminder": _("Reminder e-mail"),
    "new_key": _("“New key” e-mail"),
    "new_owner": _("“New owner” e-mail"),
    "new_device": _("“New log-in” e-mail"),
    CALENDAR_PROBLEM: _("“Calendar problem” e-mail"),
}
EMAILS_OFF = _("The app's e-mails are off.")
DELIVERY_STATE_WORDS: Mapping[str, LazyText] = {
    "scheduled": pgettext_lazy("state of a delivery", "queued"),
    "sending": pgettext_lazy("state of a delivery", "being sent"),
    "delivered": pgettext_lazy("state of a delivery", "delivered"),
    "failed": pgettext_lazy("state of a delivery", "failed"),
    "expired": pgettext_lazy("state of a delivery", "not sent in time"),
    "cancelled": pgettext_lazy("state of a delivery", "cancelled"),
    "skipped": pgettext_lazy("state of a delivery", "skipped"),
}


def sends_emails(app: App) -> bool:
    return not app.settings.get("disable_emails")


def mail_words(kind: str) -> str:
    """Return `Cancellation e-mail` for the kind of an e-mail."""
    known = MAIL_WORDS.get(kind)
    unknown = gettext("“%(kind)s” e-mail") % {"kind": state_words(kind).capitalize()}
    return str(known or unknown)


def template_words(slug: str) -> str:
    """Return `Confirmation e-mail to the customer` for the name of a template."""
    kind, _, recipient = slug.rpartition("_")
    of = {
        # Translators: the name of an e-mail, such as "Confirmation e-mail to the customer".
        "customer": gettext("%(mail)s to the customer"),
        "owner": gettext("%(mail)s to the owner"),
    }
    words = of[recipient] % {"mail": mail_words(kind)}
    # Translators: who cancelled: "Cancellation e-mail to the customer (you cancelled)".
    if kind == "cancelled":
        return gettext("%(mail)s (you cancelled)") % {"mail": words}
    if kind == "cancelled_by_customer":
        return gettext("%(mail)s (they cancelled)") % {"mail": words}
    return words


OBJECT_WORDS = {
    "resource.created": _("Resource created"),
    "resource.updated": _("Resource changed"),
    "resource.deleted": _("Resource deleted"),
    "project.created": _("Project created"),
    "project.updated": _("Project changed"),
    "project.deleted": _("Project deleted"),
    "delivery.failed": _("Delivery failed"),
}


def kind_words(kind: str) -> str:
    """Return `Cancelled by customer`, `Changed` for the kind of a call."""
    if kind in (CALENDAR_PROBLEM, CALENDAR_PROBLEM_EVENT):
        return gettext("Calendar problem")
    if kind in OBJECT_WORDS:
        return str(OBJECT_WORDS[kind])
    name = kind.removeprefix("booking.")
    if name == REASSIGNED:
        return gettext("Resource changed")
    return gettext("Changed") if name == UPDATED else capfirst(state_words(name))


def language_names() -> dict[str, str]:
    """Return the shipped languages: code -> name."""
    return {code: _language_name(code) for code in shipped_languages()}


def _language_name(code: str) -> str:
    try:
        return str(get_language_info(code.lower())["name_translated"])
    except KeyError:
        return code


def shown_state(booking: Booking) -> str:
    """Return the state, for words and colours: a class that sells its seats waits for nobody."""
    is_open = booking.max_seats is not None and booking.state == "tentative"
    return "takes_place" if is_open else booking.state


def state_words(state: str) -> str:
    """Return `cancelled by customer`, `pending`: of states, outcomes and kinds of messages."""
    return str(STATE_WORDS.get(state) or state.replace("_", " "))


def booking_words(booking: Booking) -> str:
    """Return `Marty McFly – Haircut, Mon 23 Nov 2026, 09:00 CET`. Reads event and customers."""
    title = with_customers(booking, booking.counted(booking.event.what))
    return f"{title}, {moment_words(booking.event.start)}"


def with_customers(booking: Booking, what: str) -> str:
    """Return `Marty McFly – Haircut`. Reads the customers."""
    who = ", ".join(customer.name for customer in booking.customers.all() if customer.name)
    return f"{who} – {what}" if who else what


def delivery_words(delivery: Delivery) -> str:
    """Return `Cancellation e-mail`, `Webhook call: pending`, `Calendar entry: confirmed`."""
    if delivery.type == Delivery.EMAIL:
        return mail_words(delivery.kind)
    is_entry = delivery.type == Delivery.CALENDAR
    words = gettext("Calendar entry: %(state)s") if is_entry else gettext("Webhook call: %(state)s")
    return words % {"state": state_words(delivery.kind)}


def json_words(value: Any, names: Mapping[str, LazyText] = JSON_WORDS) -> str:
    """Return JSON data as lines of text: `Colour: red`; "" if there is none. `names`: words of
    values.
    """
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, dict):
        pairs = (
            (str(key).replace("_", " ").capitalize(), json_words(each, names))
            for key, each in value.items()
        )
        return "\n".join(f"{key}: {words}" for key, words in pairs if words)
    if isinstance(value, list):
        lines = (json_words(each, names).replace("\n", ", ") for each in value)
        return "\n".join(filter(None, lines))
    return str(names.get(str(value), value))


def yes_or_no(value: object) -> str:
    return gettext("yes") if value else gettext("no")


def receiver_words(delivery: Delivery) -> str:
    """Return `to the customer, ann@example.com`."""
    if delivery.type == Delivery.EMAIL:
        address = delivery.customer.email if delivery.customer else ""
        is_owner = delivery.recipient == "owner"
        receiver = gettext("to the owner") if is_owner else gettext("to the customer")
        return f"{receiver}, {address}" if address else receiver
    to = delivery.webhook.url if delivery.webhook else delivery.endpoint
    return gettext("to %(address)s") % {"address": to}


def reading_words(moment: datetime, zone_name: str) -> str:
    """Return `Mon 23 Nov 2026, 09:00` in a zone named on the page; the UTC offset if ambiguous."""
    local = moment.astimezone(find_zone(first_known_zone(zone_name)))
    tail = f" {offset_words(local)}" if is_ambiguous(local) else ""
    return day_and_time(short_date_words(local), time_words(local)) + tail
