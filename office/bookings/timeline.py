"""A booking's timeline: its changes, e-mails, calls and calendar writes, in one order."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from bookings.models import Booking
from notifications.models import Delivery
from notifications.outbox.outdated_reasons import outdated_reason
from office.base.dates import moment_words
from office.base.labels import (
    DELIVERY_COLOURS,
    DELIVERY_ICONS,
    DELIVERY_WORDS,
    STATE_COLOURS,
    receiver_words,
    state_words,
)


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
    for change in booking.logs.all():
        who = " ".join(filter(None, [change.actor, f"({change.source})"]))
        is_move = change.from_state == change.to_state
        yield TimelineEntry(
            at=change.created_at,
            when=moment_words(change.created_at),
            icon="event_repeat" if is_move else "sync_alt",
            heading=state_words(change.action if is_move else change.to_state),
            colour=STATE_COLOURS.get(change.to_state, "info"),
            lines=tuple(filter(None, [f"{state_words(change.action)} by {who}", change.message])),
        )


def _deliveries(booking: Booking) -> Iterator[TimelineEntry]:
    rows = booking.deliveries.select_related("change", "webhook", "customer").defer("body")
    for delivery in rows.prefetch_related("attempts"):
        is_to_come = not delivery.is_final
        at = delivery.due_at if is_to_come else delivery.finished_at or delivery.due_at
        yield TimelineEntry(
            at=at,
            when=moment_words(at),
            icon=DELIVERY_ICONS[delivery.type],
            heading=f"{DELIVERY_WORDS[delivery.type]}: {state_words(delivery.kind)}",
            colour=DELIVERY_COLOURS[delivery.state],
            lines=tuple(_delivery_lines(delivery)),
            delivery=delivery,
            is_to_come=is_to_come,
            is_retry_safe=delivery.is_final and not outdated_reason(delivery),
        )


def _delivery_lines(delivery: Delivery) -> Iterator[str]:
    yield f"{delivery.state} {receiver_words(delivery)}"
    if delivery.reason:
        yield delivery.reason
    for attempt in delivery.attempts.all():
        code = f"{attempt.response_code}, " if attempt.response_code else ""
        outcome = attempt.error or "sent"
        when = moment_words(attempt.at)
        yield f"{when}: {outcome} ({code}{attempt.seconds:.1f} s)"
