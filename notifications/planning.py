"""From one change of a booking to the deliveries that it causes (api.md section 8).

Runs in the transaction of the change and sends nothing: it writes rows. Whether a mail may go out
(the app's switch, the owner's address, test mode) is asked when it is sent.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from apps_config.models import EventNotification
from bookings.graphs import GRAPHS, INITIALIZED
from bookings.models import Booking, Customer
from bookings.records import INCLUDES, WHOLE, booking_record, with_includes
from bookings.services import Step, listens
from notifications.breaker import endpoint_of
from notifications.models import Delivery, Plan, Webhook
from notifications.waking import wake_after_commit
from scheduling.api.instants import format_instant
from scheduling.api.sql import insert_rows, raw_id

RESCHEDULED = "rescheduled"
CUSTOMER, OWNER = "customer", "owner"
# Whom a state is mailed to; the tentative state of payment graphs says nothing yet.
MAILS: Mapping[str, tuple[str, ...]] = {
    "tentative": (OWNER, CUSTOMER),
    "confirmed": (CUSTOMER, OWNER),
    "paid": (CUSTOMER, OWNER),
    "declined": (CUSTOMER,),
    "cancelled": (CUSTOMER, OWNER),
    "cancelled_by_owner": (CUSTOMER, OWNER),
    "cancelled_by_customer": (OWNER, CUSTOMER),
    "unpaid": (CUSTOMER,),
    RESCHEDULED: (CUSTOMER, OWNER),
}
TENTATIVE_GRAPHS = frozenset({"confirm_decline"})

MAIL_EXPIRES_AFTER = timedelta(hours=72)
CALL_EXPIRES_AFTER = timedelta(hours=76)
# A reminder that could not be sent before the start is late by no more than this.
REMINDER_GRACE = timedelta(minutes=5)


@listens
def plan_deliveries(step: Step) -> None:
    """Write the deliveries of one step, in the order in which they are to leave."""
    event = RESCHEDULED if step.moved_from else step.change.to_state
    rows = [*_state_mails(step, event), *_state_calls(step, event), *_reminders(step)]
    for number, row in enumerate(rows):
        row.number = number
    if rows:
        insert_rows([Plan(change=step.change, planned=len(rows))])
        insert_rows(rows)
        wake_after_commit(rows, now=step.change.created_at)


def _delivery(step: Step, **values: Any) -> Delivery:
    now = step.change.created_at
    values.setdefault("due_at", now)
    values.setdefault("next_at", values["due_at"])
    return Delivery(
        app=step.booking.app,
        booking=step.booking,
        change=step.change,
        version=step.booking.reschedules,
        created_at=now,
        **values,
    )


def _final(state: str, reason: str, now: datetime) -> dict[str, Any]:
    """What a delivery says that is not to be sent at all."""
    return {"state": state, "reason": reason, "next_at": None, "finished_at": now}


# --- Mails ----------------------------------------------------------------------------------------
def _state_mails(step: Step, event: str) -> Iterator[Delivery]:
    graph = step.booking.graph
    is_draft = step.change.to_state == INITIALIZED
    if is_draft or (event == "tentative" and graph not in TENTATIVE_GRAPHS):
        return
    facts = _facts(step)
    now = step.change.created_at
    for recipient in MAILS.get(event, ()):
        for customer in _addressees(step, recipient):
            switched_off = _final(Delivery.SKIPPED, "Switched off for this booking.", now)
            yield _delivery(
                step,
                type=Delivery.EMAIL,
                kind=event,
                recipient=recipient,
                customer=customer,
                content=facts,
                expires_at=now + MAIL_EXPIRES_AFTER,
                **(switched_off if recipient in step.unmailed else {}),
            )


def _addressees(step: Step, recipient: str) -> list[Customer | None]:
    """Each customer gets a mail; the owner, whose address is looked up when it is sent, one."""
    return list(step.customers) if recipient == CUSTOMER else [None]


def _facts(step: Step) -> dict[str, Any]:
    """The change as a mail tells it, however the booking goes on."""
    event, change = step.booking.event, step.change
    facts = {
        "start": format_instant(event.start),
        "end": format_instant(event.end),
        "what": event.what,
        "where": event.where,
        "from_state": change.from_state,
        "message": change.message,
    }
    if step.moved_from:
        old_start, old_end = step.moved_from
        facts |= {"old_start": format_instant(old_start), "old_end": format_instant(old_end)}
    return facts


# --- Webhooks -------------------------------------------------------------------------------------
def _state_calls(step: Step, event: str) -> list[Delivery]:
    """One call for each subscription to the booking's graph and state.

    A move is told to those who want the state that the booking is in, and to those who want
    `rescheduled`.
    """
    booking, now = step.booking, step.change.created_at
    if not _has_webhooks(booking.app_id):
        return []
    wanted = {event, booking.state}
    webhooks = [
        webhook
        for webhook in Webhook.objects.for_app(booking.app)
        .filter(Q(graph="") | Q(graph=booking.graph), active=True)
        .order_by("id")
        if not webhook.states or wanted & set(webhook.states)
    ]
    body = render_body(booking) if webhooks else ""
    return [
        _delivery(
            step,
            type=Delivery.WEBHOOK,
            kind=event,
            webhook=webhook,
            body=body,
            endpoint=endpoint_of(webhook.url),
            expires_at=now + CALL_EXPIRES_AFTER,
        )
        for webhook in webhooks
    ]


# By hand, because most apps have none and every booking asks (docs/benchmarks.md, P6).
_ANY_WEBHOOK = (
    "SELECT 1 FROM notifications_webhook WHERE app_id = %s AND deleted_at IS NULL LIMIT 1"
)


def _has_webhooks(app_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_ANY_WEBHOOK, [raw_id(app_id)])
        return cursor.fetchone() is not None


def render_body(booking: Booking) -> str:
    """The record of GET /bookings/:id, without its wrapper, as it is now; times in UTC."""
    includes = [INCLUDES[name] for name in WHOLE]
    return render_record(with_includes(Booking.objects.all(), includes).get(id=booking.id))


def render_record(booking: Booking) -> str:
    """The same of a booking that was read with its includes."""
    record = booking_record(booking, [INCLUDES[name] for name in WHOLE], "UTC")
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


# --- Event notifications --------------------------------------------------------------------------
def _reminders(step: Step) -> Iterator[Delivery]:
    """Those that the change plans, after it has called off those that no longer hold."""
    graph, change = GRAPHS[step.booking.graph], step.change
    is_live, was_live = graph.is_live(change.to_state), graph.is_live(change.from_state)
    if step.moved_from:
        if is_live:
            _call_off(step, "The booking was moved.")
            yield from _planned_reminders(step)
    elif is_live and not was_live:
        yield from _planned_reminders(step)
    elif was_live and not is_live and change.action != "complete":
        _call_off(step, f"The booking is {change.to_state}.")


def _call_off(step: Step, reason: str) -> None:
    """What is in a worker's hands this moment is looked at there again before it is sent."""
    Delivery.objects.filter(
        booking=step.booking, kind=Delivery.REMINDER, state=Delivery.SCHEDULED
    ).update(**_final(Delivery.CANCELLED, reason, step.change.created_at))


def _planned_reminders(step: Step) -> Iterator[Delivery]:
    now, start = step.change.created_at, step.booking.event.start
    for notification in step.notifications:
        due_at = due_time(notification, start)
        past = _final(Delivery.SKIPPED, "Its time had passed already.", now)
        values = {
            "kind": Delivery.REMINDER,
            "due_at": due_at,
            **(past if due_at < now else {}),
        }
        if notification.type == EventNotification.WEBHOOK:
            yield _delivery(
                step,
                type=Delivery.WEBHOOK,
                content={
                    "url": notification.url,
                    "method": notification.method or "post",
                    "expected_response_code": notification.expected_response_code,
                },
                endpoint=endpoint_of(notification.url),
                expires_at=due_at + CALL_EXPIRES_AFTER,
                **values,
            )
            continue
        for customer in _addressees(step, notification.recipient):
            yield _delivery(
                step,
                type=Delivery.EMAIL,
                recipient=notification.recipient,
                customer=customer,
                content={"subject": notification.subject} if notification.subject else {},
                expires_at=_reminder_expiry(notification, due_at, start),
                **values,
            )


def due_time(notification: EventNotification, start: datetime) -> datetime:
    """The second at which an event notification of a booking with that start is due."""
    seconds = notification.when_time * EventNotification.UNIT_SECONDS[notification.when_unit]
    before = notification.when_type == EventNotification.BEFORE
    return start - timedelta(seconds=seconds) if before else start + timedelta(seconds=seconds)


def _reminder_expiry(
    notification: EventNotification, due_at: datetime, start: datetime
) -> datetime:
    """An outage never ends in a reminder for a meeting that has begun long ago."""
    if notification.when_type == EventNotification.BEFORE:
        return max(start, due_at + REMINDER_GRACE)
    return due_at + MAIL_EXPIRES_AFTER
