"""From one change of a booking to the deliveries that it causes (api.md section 8).

Runs in the transaction of the change and sends nothing: it writes rows. Whether a mail may go out
(the app's switch, the owner's address, test mode) is asked when it is sent.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count

from apps_config.models import EventNotification
from bookings.graphs import CUSTOMER, GRAPHS, INITIALIZED, OWNER, STATES
from bookings.models import Booking, Customer, StateChange
from bookings.records import INCLUDES, WHOLE, booking_record, with_includes
from bookings.services import Step, listens
from notifications.breaker import endpoint_of
from notifications.models import Delivery, Plan, Webhook
from notifications.waking import wake_after_commit
from scheduling.api.instants import format_instant
from scheduling.api.sql import insert_rows, raw_id

RESCHEDULED, UPDATED = "rescheduled", "updated"
# What a webhook can be told, as its calls name it.
KINDS = tuple(f"booking.{event}" for event in (*STATES, RESCHEDULED, UPDATED))
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
    UPDATED: (CUSTOMER, OWNER),
}
# Of an update these are mailed to all, and a new address to whom it belongs.
MAILED_CHANGES = frozenset({"what", "where"})
TENTATIVE_GRAPHS = frozenset({"confirm_decline"})

MAIL_EXPIRES_AFTER = timedelta(hours=72)
CALL_EXPIRES_AFTER = timedelta(hours=76)
# A reminder that could not be sent before the start is late by no more than this.
REMINDER_GRACE = timedelta(minutes=5)


Planner = Callable[[Sequence[Step]], Mapping[Step, Sequence[Delivery]]]
PLANNERS: list[Planner] = []


def plans(planner: Planner) -> Planner:
    """Have the function asked which deliveries each step causes beside those below: the rooms above
    have transports of their own. Runs in the steps' transaction."""
    PLANNERS.append(planner)
    return planner


@listens
def plan_deliveries(steps: Sequence[Step]) -> None:
    """Write the deliveries of the steps, each step's in the order in which they are to leave."""
    _call_off(steps)
    calls = _Calls(steps)
    further = [planner(steps) for planner in PLANNERS]
    companies = _companies(steps)
    plans, rows = [], []
    for step in steps:
        event = event_of(step)
        company = companies.get(step.booking.id, [step])
        own = [*_state_mails(step, event, company), *calls.of(step, event), *_reminders(step)]
        own += [row for planned in further for row in planned.get(step, ())]
        for number, row in enumerate(own):
            row.number = number
        if own:
            plans.append(Plan(change=step.change, planned=len(own)))
            rows += own
    if rows:
        insert_rows(plans)
        insert_rows(rows)
        wake_after_commit(rows, now=steps[0].change.created_at)


def event_of(step: Step) -> str:
    """What happened, as mails and calls name it: the new state, or that the booking was moved or
    changed otherwise."""
    if step.edit:
        return UPDATED
    return RESCHEDULED if step.moved_from else step.change.to_state


def new_delivery(step: Step, **values: Any) -> Delivery:
    """Caused by the step, due at once unless `due_at` says otherwise; not written yet."""
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
def _companies(steps: Sequence[Step]) -> dict[UUID, list[Step]]:
    """By booking: the steps that are mailed as one, of a series that does the same at once.

    The mails are those of the first; the others have an empty list, as nothing is left to tell.
    """
    alike: dict[tuple[UUID, str], list[Step]] = {}
    for step in steps:
        if step.booking.series_id:
            alike.setdefault((step.booking.series_id, event_of(step)), []).append(step)
    companies: dict[UUID, list[Step]] = {}
    for company in alike.values():
        companies |= {step.booking.id: [] for step in company}
        companies[company[0].booking.id] = company
    return companies


def _state_mails(step: Step, event: str, company: Sequence[Step]) -> Iterator[Delivery]:
    graph = step.booking.graph
    is_draft = step.change.to_state == INITIALIZED
    if step.edit and not _mails_update(step):
        return
    if is_draft or (event == "tentative" and graph not in TENTATIVE_GRAPHS):
        return
    recipients = [one for one in MAILS.get(event, ()) if company and one not in step.told]
    facts = _facts(step, company) if recipients else {}
    now = step.change.created_at
    for recipient in recipients:
        for customer in _addressees(step, recipient):
            switched_off = _final(Delivery.SKIPPED, "Switched off for this booking.", now)
            yield new_delivery(
                step,
                type=Delivery.EMAIL,
                kind=event,
                recipient=recipient,
                customer=customer,
                content=facts,
                expires_at=now + MAIL_EXPIRES_AFTER,
                **(switched_off if recipient in step.unmailed else {}),
            )


def _mails_update(step: Step) -> bool:
    """What is over is nobody's news."""
    booking, now = step.booking, step.change.created_at
    is_ahead = not booking.completed and booking.event.end > now
    return is_ahead and bool(step.edit.readdressed or step.edit.names & MAILED_CHANGES)


def _addressees(step: Step, recipient: str) -> list[Customer | None]:
    """Each customer gets a mail; the owner, whose address is looked up when it is sent, one. Where
    only addresses have changed, nobody else's entry has."""
    if recipient != CUSTOMER:
        return [None]
    if step.edit and step.edit.names.isdisjoint(MAILED_CHANGES):
        return [one for one in step.customers if one.id in step.edit.readdressed]
    return list(step.customers)


def _facts(step: Step, company: Sequence[Step]) -> dict[str, Any]:
    """The change as a mail tells it, however the booking goes on."""
    event, change = step.booking.event, step.change
    facts = {
        "start": format_instant(event.start),
        "end": format_instant(event.end),
        "what": event.what,
        "where": event.where,
        "from_state": change.from_state,
        "message": "" if step.edit else change.message,
    }
    if step.moved_from:
        old_start, old_end = step.moved_from
        facts |= {"old_start": format_instant(old_start), "old_end": format_instant(old_end)}
    if len(company) > 1:
        facts |= _repetition(company)
    if OWNER not in step.told and step.booking.owner_booking:
        # The owner's calendar has one entry for the whole group.
        facts["group_sequence"] = step.booking.owner_booking.reschedules
    return facts


def _repetition(company: Sequence[Step]) -> dict[str, Any]:
    """How often and until when; and those that stand in calendars, or did: booking, start, end,
    and how many changes it had seen before."""
    graph = GRAPHS[company[0].booking.graph]
    noted = [
        step.booking
        for step in company
        if graph.is_live(step.change.to_state) or graph.is_live(step.change.from_state)
    ]
    changes = StateChange.objects.filter(booking__in=noted).order_by()
    seen = dict(changes.values_list("booking").annotate(Count("id")))
    return {
        "times": len(company),
        "until": format_instant(max(step.booking.event.start for step in company)),
        "occurrences": [
            [
                str(booking.id),
                format_instant(booking.event.start),
                format_instant(booking.event.end),
                seen[booking.id] - 1,
            ]
            for booking in noted
        ],
    }


# --- Webhooks -------------------------------------------------------------------------------------
class _Calls:
    """One call of each step for each subscription to its booking's graph and state.

    A move is told to those who want the state that the booking is in, and to those who want
    `rescheduled`; an update to those whose `kinds` name it. What is needed is read once for all
    steps.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        app = steps[0].booking.app
        self.webhooks: list[Webhook] = []
        if _has_webhooks(app.id):
            self.webhooks = list(Webhook.objects.for_app(app).filter(active=True).order_by("id"))
        told = [step.booking.id for step in steps if self._webhooks_of(step, event_of(step))]
        self.bodies = render_bodies(told) if told else {}

    def _webhooks_of(self, step: Step, event: str) -> list[Webhook]:
        booking = step.booking
        wanted = {event, booking.state}
        return [
            webhook
            for webhook in self.webhooks
            if webhook.graph in ("", booking.graph)
            and (not webhook.states or wanted & set(webhook.states))
            and (f"booking.{event}" in webhook.kinds if webhook.kinds else event != UPDATED)
        ]

    def of(self, step: Step, event: str) -> list[Delivery]:
        return [
            new_delivery(
                step,
                type=Delivery.WEBHOOK,
                kind=event,
                webhook=webhook,
                body=self.bodies[step.booking.id],
                endpoint=endpoint_of(webhook.url),
                expires_at=step.change.created_at + CALL_EXPIRES_AFTER,
            )
            for webhook in self._webhooks_of(step, event)
        ]


# By hand, because most apps have none and every booking asks (docs/benchmarks.md, P6).
_ANY_WEBHOOK = (
    "SELECT 1 FROM notifications_webhook WHERE app_id = %s AND deleted_at IS NULL LIMIT 1"
)


def _has_webhooks(app_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_ANY_WEBHOOK, [raw_id(app_id)])
        return cursor.fetchone() is not None


def render_bodies(booking_ids: Sequence[UUID]) -> dict[UUID, str]:
    """By booking: the record of GET /bookings/:id, without its wrapper, as it is now; in UTC."""
    includes = [INCLUDES[name] for name in WHOLE]
    bookings = with_includes(Booking.objects.filter(id__in=booking_ids), includes)
    return {booking.id: render_record(booking) for booking in bookings}


def render_record(booking: Booking) -> str:
    """The same of a booking that was read with its includes."""
    record = booking_record(booking, [INCLUDES[name] for name in WHOLE], "UTC")
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


# --- Event notifications --------------------------------------------------------------------------
def _reminders(step: Step) -> Iterator[Delivery]:
    """Those that the step plans: of a booking that becomes live, or is and was moved."""
    graph, change = GRAPHS[step.booking.graph], step.change
    is_live, was_live = graph.is_live(change.to_state), graph.is_live(change.from_state)
    if is_live and (step.moved_from or not was_live):
        yield from _planned_reminders(step)


def _call_off(steps: Sequence[Step]) -> None:
    """End those that no longer hold.

    What is in a worker's hands this moment is looked at there again before it is sent.
    """
    reasons: dict[str, list[UUID]] = {}
    for step in steps:
        if reason := _reason_to_call_off(step):
            reasons.setdefault(reason, []).append(step.booking.id)
    for reason, booking_ids in reasons.items():
        Delivery.objects.filter(
            booking__in=booking_ids, kind=Delivery.REMINDER, state=Delivery.SCHEDULED
        ).update(**_final(Delivery.CANCELLED, reason, steps[0].change.created_at))


def _reason_to_call_off(step: Step) -> str:
    graph, change = GRAPHS[step.booking.graph], step.change
    is_live, was_live = graph.is_live(change.to_state), graph.is_live(change.from_state)
    if step.moved_from and is_live:
        return "The booking was moved."
    if was_live and not is_live and change.action != "complete":
        return f"The booking is {change.to_state}."
    return ""


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
            yield new_delivery(
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
            yield new_delivery(
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
