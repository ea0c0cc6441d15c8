"""A booking's timeline: its changes, e-mails, calls and calendar writes, in one order."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from apps_config.models import Credential
from bookings.graphs import INITIALIZED
from bookings.models import Booking, StateChange
from notifications.models import Delivery
from office.base.dates import moment_words
from office.base.history import KEY
from office.base.labels import (
    DELIVERY_COLOURS,
    DELIVERY_ICONS,
    DELIVERY_STATE_WORDS,
    STATE_COLOURS,
    mail_words,
    receiver_words,
    state_words,
)
from office.notifications.deliveries import refusal_to_send

# action -> what was done; the first change of a booking creates it.
DONE_WORDS: Mapping[str, str] = {
    "confirm": "Confirmed",
    "decline": "Declined",
    "pay": "Marked as paid",
    "timeout": "Marked as unpaid",
    "complete": "Completed",
    "cancel": "Cancelled",
    "cancel_by_customer": "Cancelled for the customer",
    "cancel_by_owner": "Cancelled for the owner",
    "reschedule": "Rescheduled",
    "update": "Changed",
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
            lines=tuple(filter(None, [change.message])),
        )


def change_words(change: StateChange, keys: Mapping[str, str]) -> str:
    """Return `Created via API (key “demo”)`. keys: beginning of a key's id -> description."""
    done = "Created" if change.from_state == INITIALIZED else DONE_WORDS.get(change.action)
    return f"{done or state_words(change.action).capitalize()} {_actor_words(change, keys)}".strip()


def _actor_words(change: StateChange, keys: Mapping[str, str]) -> str:
    actor, source = change.actor, change.source
    if source == "timer":
        return "automatically"
    if source == "admin":
        return f"by {actor} in the back office"
    if source == "link":
        return f"by the {actor} with the link in an e-mail"
    if source == "calendar":
        return f"in the connected calendar “{actor}”"
    if source == "widget":
        return "by the customer on a booking page"
    matched = KEY.fullmatch(actor)
    if matched is None:
        return f"via API by {actor}" if actor else "via API"
    description = keys.get(matched[2])
    return f"via API (key “{description}”)" if description else "via API"


def _key_descriptions(app_id: uuid.UUID, changes: Sequence[StateChange]) -> dict[str, str]:
    """Return the descriptions of the keys by the beginnings of their ids."""
    starts = {matched[2] for change in changes if (matched := KEY.fullmatch(change.actor))}
    wanted = Q(pk__in=[])
    for start in starts:
        wanted |= Q(id__range=(uuid.UUID(start + "0" * 24), uuid.UUID(start + "f" * 24)))
    rows = Credential.objects.filter(wanted, app=app_id) if starts else ()
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
        return f"{mail_words(delivery.kind)} to the {delivery.recipient}, {state}"
    what = "Calendar entry" if delivery.type == Delivery.CALENDAR else "Webhook call"
    return f"{what} ({state_words(delivery.kind)}) {receiver_words(delivery)}, {state}"


def _delivery_lines(delivery: Delivery) -> Iterator[str]:
    if delivery.customer and delivery.customer.email:
        yield delivery.customer.email
    if delivery.reason:
        yield delivery.reason
    for attempt in delivery.attempts.all():
        code = f"{attempt.response_code}, " if attempt.response_code else ""
        outcome = attempt.error or "sent"
        when = moment_words(attempt.at)
        yield f"{when}: {outcome} ({code}{attempt.seconds:.1f} s)"
