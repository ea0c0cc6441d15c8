"""A booking's timeline: its changes, e-mails, calls and calendar writes, in one order."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q
from django.utils.formats import number_format
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from apps_config.models import Credential
from bookings.graphs import INITIALIZED
from bookings.models import Booking, StateChange
from bookings.services.transition_log import MESSAGE, OFFER_NEW_TIMES, RESPONSE, UPDATE
from common.messages import Message
from notifications.models import Delivery
from office.base.dates import moment_words
from office.base.history import KEY
from office.base.labels import (
    DELIVERY_COLOURS,
    DELIVERY_ICONS,
    DELIVERY_STATE_WORDS,
    STATE_COLOURS,
    mail_words,
    state_words,
)
from office.base.lazy_text import LazyText
from office.base.message_translations import translate_message
from office.notifications.deliveries import refusal_to_send

# action -> what was done.
DONE_WORDS: Mapping[str, LazyText] = {
    # Translators: this and the next ones: what was done with a booking, in "Confirmed via API".
    "confirm": pgettext_lazy("booking", "Confirmed"),
    "decline": pgettext_lazy("booking", "Declined"),
    "pay": pgettext_lazy("booking", "Marked as paid"),
    "timeout": pgettext_lazy("booking", "Marked as unpaid"),
    "complete": pgettext_lazy("booking", "Completed"),
    "cancel": pgettext_lazy("booking", "Cancelled"),
    "cancel_by_customer": _("Cancelled for the customer"),
    "cancel_by_owner": _("Cancelled for the owner"),
    "reschedule": pgettext_lazy("booking", "Rescheduled"),
    OFFER_NEW_TIMES: pgettext_lazy("booking", "New times offered"),
    MESSAGE: pgettext_lazy("booking", "Message sent"),
    RESPONSE: pgettext_lazy("booking", "Invitation answered"),
    "update": pgettext_lazy("booking", "Changed"),
}
# The first change of a booking creates it.
CREATED = pgettext_lazy("booking", "Created")
# Translators: change: what was done with the booking, such as "Created" or "Confirmed".
VIA_API = _("%(change)s via API")
VIA_API_BY = _("%(change)s via API by %(actor)s")
# Translators: key: the description of an API key.
VIA_API_KEY = _("%(change)s via API (key “%(key)s”)")
CHANGE_SENTENCES: Mapping[str, LazyText] = {
    "timer": _("%(change)s automatically"),
    # Translators: actor: the e-mail address of who changed the booking.
    "admin": _("%(change)s by %(actor)s in the back office"),
    # Translators: actor: the name of a connected calendar.
    "calendar": _("%(change)s in the connected calendar “%(actor)s”"),
    "widget": _("%(change)s by the customer on a booking page"),
    "mail": _("%(change)s by the customer by e-mail"),
    # Translators: actor: the name of the key or the e-mail address for which a program acted.
    "mcp": _("%(change)s by an agent (%(actor)s)"),
}
# actor -> sentence of a change by the link in an e-mail.
LINK_SENTENCES: Mapping[str, LazyText] = {
    "customer": _("%(change)s by the customer with the link in an e-mail"),
    "owner": _("%(change)s by the owner with the link in an e-mail"),
}
# recipient -> sentence of an e-mail.
EMAIL_SENTENCES: Mapping[str, LazyText] = {
    # Translators: mail: such as "Confirmation e-mail"; state: such as "queued" or "delivered".
    "customer": _("%(mail)s to the customer, %(state)s"),
    "owner": _("%(mail)s to the owner, %(state)s"),
}


class TimelineEntry(NamedTuple):
    """One entry. `is_to_come`: planned, not sent yet; `is_retry_safe`: can be sent again."""

    at: datetime
    when: str
    icon: str
    heading: str
    colour: str
    lines: tuple[str, ...]
    delivery: Delivery | None = None
    is_to_come: bool = False
    is_retry_safe: bool = False


def booking_timeline(booking: Booking) -> list[TimelineEntry]:
    """Return the entries, the oldest first; planned ones last."""
    entries = [*_changes(booking), *_deliveries(booking)]
    return sorted(entries, key=lambda entry: (entry.is_to_come, entry.at))


def _changes(booking: Booking) -> Iterator[TimelineEntry]:
    changes = list(booking.logs.all())
    keys = _key_descriptions(booking.app_id, changes)
    for change in changes:
        is_move = change.from_state == change.to_state
        yield TimelineEntry(
            at=change.created_at,
            when=moment_words(change.created_at),
            icon="event_repeat" if is_move else "sync_alt",
            heading=change_words(change, keys),
            colour=STATE_COLOURS.get(change.to_state, "info"),
            lines=tuple(filter(None, [_message_words(change)])),
        )


def _message_words(change: StateChange) -> str:
    """Return the message; the service writes that of an update or an answer."""
    is_own = change.action in (UPDATE, RESPONSE)
    return translate_message(Message(change.message)) if is_own else change.message


def change_words(change: StateChange, keys: Mapping[str, str]) -> str:
    """Return `Created via API (key “demo”)`. keys: beginning of a key's id -> description."""
    done = CREATED if change.from_state == INITIALIZED else DONE_WORDS.get(change.action)
    given = {"change": done or state_words(change.action).capitalize(), "actor": change.actor}
    if change.source == "link" and change.actor in LINK_SENTENCES:
        return LINK_SENTENCES[change.actor] % given
    if change.source in CHANGE_SENTENCES:
        return CHANGE_SENTENCES[change.source] % given
    matched = KEY.fullmatch(change.actor)
    if matched is None:
        return (VIA_API_BY if change.actor else VIA_API) % given
    description = keys.get(matched[2])
    return (VIA_API_KEY if description else VIA_API) % {**given, "key": description}


def _key_descriptions(app_id: uuid.UUID, changes: Sequence[StateChange]) -> dict[str, str]:
    """Return the descriptions of the keys by the beginnings of their ids."""
    starts = {matched[2] for change in changes if (matched := KEY.fullmatch(change.actor))}
    condition = Q(pk__in=[])
    for start in starts:
        condition |= Q(id__range=(uuid.UUID(start + "0" * 24), uuid.UUID(start + "f" * 24)))
    rows = Credential.objects.filter(condition, app=app_id) if starts else ()
    return {str(row.id)[:8]: row.description for row in rows}


def _deliveries(booking: Booking) -> Iterator[TimelineEntry]:
    rows = booking.deliveries.select_related("change", "webhook", "customer").defer("body")
    for delivery in rows.prefetch_related("attempts"):
        delivery.app = booking.app
        is_to_come = not delivery.is_final
        at = delivery.due_at if is_to_come else delivery.finished_at or delivery.due_at
        yield TimelineEntry(
            at=at,
            when=moment_words(at),
            icon=DELIVERY_ICONS[delivery.type],
            heading=delivery_sentence(delivery),
            colour=DELIVERY_COLOURS[delivery.state],
            lines=tuple(_delivery_lines(delivery)),
            delivery=delivery,
            is_to_come=is_to_come,
            is_retry_safe=delivery.is_final and not refusal_to_send(delivery),
        )


def delivery_sentence(delivery: Delivery) -> str:
    """Return `Cancellation e-mail to the owner, queued`."""
    state = DELIVERY_STATE_WORDS.get(delivery.state, delivery.state)
    if delivery.type == Delivery.EMAIL:
        given = {"mail": mail_words(delivery.kind), "state": state}
        return EMAIL_SENTENCES[delivery.recipient] % given
    given = {
        "event": state_words(delivery.kind),
        "address": delivery.webhook.url if delivery.webhook else delivery.endpoint,
        "state": state,
    }
    if delivery.type == Delivery.CALENDAR:
        # Translators: event: such as "confirmed"; state: such as "queued" or "delivered".
        return gettext("Calendar entry (%(event)s) to %(address)s, %(state)s") % given
    # Translators: event: such as "confirmed"; state: such as "queued" or "delivered".
    return gettext("Webhook call (%(event)s) to %(address)s, %(state)s") % given


def _delivery_lines(delivery: Delivery) -> Iterator[str]:
    if delivery.customer and delivery.customer.email:
        yield delivery.customer.email
    if delivery.reason:
        yield translate_message(delivery.reason)
    for attempt in delivery.attempts.all():
        given = {
            "when": moment_words(attempt.at),
            # Translators: an attempt to send a message succeeded.
            "outcome": translate_message(attempt.error) or gettext("sent"),
            "code": attempt.response_code,
            "seconds": number_format(f"{attempt.seconds:.1f}"),
        }
        # Translators: code: an HTTP status or SMTP reply code, such as 250; s: seconds.
        with_code = gettext("%(when)s: %(outcome)s (%(code)s, %(seconds)s s)")
        yield (
            with_code if attempt.response_code else gettext("%(when)s: %(outcome)s (%(seconds)s s)")
        ) % given
