"""Plan the deliveries of a change of a booking (api.md section 8).

Runs in the transaction of the change and only writes rows. Whether a mail may be sent (the app's
switch, the owner's address, test mode) is checked when it is sent.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q

from apps_config.models import EventNotification
from availability.models import Resource
from bookings.graphs import CUSTOMER, GRAPHS, INITIALIZED, OWNER, STATES
from bookings.models import Booking, Customer, StateChange, UnverifiedBooking
from bookings.pages.formatting import first_known_zone
from bookings.pages.trusted_texts import trusted_text
from bookings.services import (
    Transition,
    on_message_sent,
    on_new_times_offered,
    on_response,
    on_transition,
    on_unverified_booking,
)
from bookings.services.transition_log import REASSIGN, RESPONSE
from common.db.sql import id_param, insert_rows, to_uuid
from common.db.updated_at import transaction_start
from common.hooks import Hook
from common.messages import Message
from common.time.instants import format_instant, wall_time, wall_to_utc_or_gap_end
from notifications.awaited_links import FOLLOWS, AwaitedLinks, FirstMails
from notifications.calendar_problems import CALENDAR_PROBLEM_EVENT
from notifications.merged_mails import MergedMails
from notifications.models import ChangeCalls, Delivery, LaneCheck
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.lanes import delete_checks_of_empty_lanes
from notifications.outbox.queueing import queue_delivery
from notifications.outbox.wakeup import wake_dispatchers_after_commit
from notifications.webhooks.bodies import bodies_of_changes
from notifications.webhooks.object_kinds import OBJECT_KINDS

RESCHEDULED, UPDATED = "rescheduled", "updated"
# Kinds of mails: a move that only changes the resources; what it tells the former resource.
REASSIGNED, UNASSIGNED = "reassigned", "unassigned"
# In the content of a mail to an owner: it is about a further resource of the booking, and goes to
# that one's own address only; the resources whose addresses get another mail about the change.
OF_COMPANION, TOLD_RESOURCES = "of_companion", "told_resource_ids"
# Further resources of a booking get no mail of its making. Those that joined later are told of it,
# and of what changes the entry that they got.
TOLD_TO_COMPANIONS = frozenset(
    {
        *(RESCHEDULED, REASSIGNED, UPDATED),
        *("cancelled", "cancelled_by_owner", "cancelled_by_customer"),
    }
)
# The names of resources in the content of a mail about a move.
RESOURCE_FACTS = ("resources", "old_resources")
# What asks the customers to move a booking, which has not changed.
NEW_TIMES, MESSAGE = "new_times", "message"
VERIFICATION_CODE = "verification_code"
# The link of a video call that earlier e-mails did not have.
LINK = "conference"
# The kinds of webhook calls: about bookings, and all.
KINDS = tuple(f"booking.{event}" for event in (*STATES, RESCHEDULED, REASSIGNED, UPDATED, RESPONSE))
WEBHOOK_KINDS = (*KINDS, CALENDAR_PROBLEM_EVENT, *OBJECT_KINDS)
# Told only to webhooks whose `kinds` name them, as are problems of calendars. Webhooks whose kinds
# do not name REASSIGNED are told of such a move as RESCHEDULED.
ON_REQUEST = (REASSIGNED, UPDATED, RESPONSE)
# Mails per state; the tentative state of payment graphs sends none.
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
    REASSIGNED: (CUSTOMER, OWNER),
    UPDATED: (CUSTOMER, OWNER),
}
# Changed fields that are mailed. So is a new address: it ends the links of all earlier e-mails.
MAILED_CHANGES = frozenset({"what", "where", "quantity"})
PUBLIC_SOURCE = "widget"
CUSTOMERS_LINK = ("link", CUSTOMER)  # source and actor
TENTATIVE_GRAPHS = frozenset({"confirm_decline"})

MAIL_EXPIRES_AFTER = timedelta(hours=72)
CALL_EXPIRES_AFTER = timedelta(hours=76)
# A reminder before the start may be this late.
REMINDER_GRACE = timedelta(minutes=5)

# Return further deliveries per transition, in its transaction: hook for transports of layers above.
delivery_planners = Hook[
    Callable[[Sequence[Transition]], Mapping[Transition, Sequence[Delivery]]]
]()


@on_transition.register
def plan_deliveries(transitions: Sequence[Transition]) -> None:
    """Write the deliveries of the transitions, in the order in which they are to be sent.

    Of the calls to webhooks, it writes what a worker expands to deliveries (`outbox/expansion.py`).
    """
    _cancel_reminders(transitions)
    calls = _calls(transitions)
    further = [planner(transitions) for planner in delivery_planners]
    per_mail = _transitions_per_mail(transitions)
    merged = MergedMails(transitions)
    links, first_mails = AwaitedLinks(transitions), FirstMails(transitions)
    rows: list[Delivery] = []
    for transition in transitions:
        event = event_of(transition)
        mailed_together = per_mail.get(transition.booking.id, [transition])
        own = [
            *merged.merge(_state_mails(transition, event, mailed_together, links), transition),
            *_link_mails(transition, first_mails),
            *_reminders(transition),
        ]
        own += [row for planned in further for row in planned.get(transition, ())]
        for number, row in enumerate(own):
            row.number = number
        if transition in calls:
            calls[transition].first_number = len(own)
        rows += own
    merged.save()
    if rows or calls:
        insert_rows([*calls.values()], rows)
        wake_dispatchers_after_commit(rows, [Delivery.WEBHOOK] if calls else [])


@on_unverified_booking.register
def plan_verification_mail(row: UnverifiedBooking, now: datetime) -> None:
    """Write the delivery of the code; code and address are read when it is sent."""
    queue_delivery(
        app=row.app,
        type=Delivery.EMAIL,
        kind=VERIFICATION_CODE,
        recipient=CUSTOMER,
        content={"reservation_id": str(row.id), "code_number": row.code_number},
        expires_at=row.expires_at,
        now=now,
    )


@on_new_times_offered.register
def plan_new_times_mails(offer: Transition) -> None:
    _plan_customer_mails(offer, NEW_TIMES)


@on_message_sent.register
def plan_message_mails(sent: Transition) -> None:
    _plan_customer_mails(sent, MESSAGE)


@on_response.register
def plan_response_calls(response: Transition) -> None:
    """Write the calls of the webhooks that want answers, for a worker to expand."""
    if calls := _calls([response]):
        insert_rows([*calls.values()])
        wake_dispatchers_after_commit([], [Delivery.WEBHOOK])


def _plan_customer_mails(entry: Transition, kind: str) -> None:
    """Write an e-mail to each customer about an entry of the log that changed nothing."""
    content = _facts(entry, [entry], kind) | _facts_for_customers(entry)
    rows = [
        _new_mail(entry, kind, CUSTOMER, customer=customer, content=content)
        for customer in entry.customers
    ]
    for number, row in enumerate(rows):
        row.number = number
    if rows:
        insert_rows(rows)
        wake_dispatchers_after_commit(rows)


def event_of(transition: Transition) -> str:
    """Return the event name of mails and calls: the new state, `rescheduled` (of every move),
    `updated` or `response`.
    """
    if transition.change.action == RESPONSE:
        return RESPONSE
    if transition.edit:
        return UPDATED
    return RESCHEDULED if transition.moved_from else transition.change.to_state


def new_delivery(transition: Transition, **values: Any) -> Delivery:
    """Return an unsaved delivery of the transition; due now by the database's clock by default."""
    values.setdefault("due_at", transaction_start())
    values.setdefault("next_at", values["due_at"])
    return Delivery(
        app=transition.booking.app,
        booking=transition.booking,
        change=transition.change,
        version=transition.booking.reschedules,
        created_at=transition.change.created_at,
        **values,
    )


def _final(state: str, reason: str, now: datetime) -> dict[str, Any]:
    """Return the fields of a delivery that is not sent."""
    return {"state": state, "reason": reason, "next_at": None, "finished_at": now}


# --- Mails ----------------------------------------------------------------------------------------
def _transitions_per_mail(transitions: Sequence[Transition]) -> dict[UUID, list[Transition]]:
    """Return, by booking, the transitions of a series that share one mail.

    The first booking has all of them, the others have an empty list and send none.
    """
    groups: dict[tuple[UUID, str], list[Transition]] = {}
    for transition in transitions:
        if transition.booking.series_id:
            groups.setdefault((transition.booking.series_id, event_of(transition)), []).append(
                transition
            )
    per_mail: dict[UUID, list[Transition]] = {}
    for mailed_together in groups.values():
        per_mail |= {transition.booking.id: [] for transition in mailed_together}
        per_mail[mailed_together[0].booking.id] = mailed_together
    return per_mail


def mail_recipients(graph: str, kind: str) -> tuple[str, ...]:
    """Return who gets e-mails of the kind: a state that a booking enters, `rescheduled`, ..."""
    if kind == "tentative" and graph not in TENTATIVE_GRAPHS:
        return ()
    return MAILS.get(kind, ())


def _state_mails(
    transition: Transition,
    event: str,
    mailed_together: Sequence[Transition],
    links: AwaitedLinks,
) -> Iterator[Delivery]:
    if transition.change.to_state == INITIALIZED:
        return
    if transition.edit and not _mails_update(transition):
        return
    kind = _kind_of_move(mailed_together) if event == RESCHEDULED else event
    hides_resources = _hides_resources(mailed_together)
    recipients = [
        mail
        for mail in mail_recipients(transition.booking.graph, kind)
        if mailed_together
        and mail not in transition.notified_elsewhere
        and not (mail == CUSTOMER and kind == REASSIGNED and hides_resources)
    ]
    facts = _facts(transition, mailed_together, kind) if recipients else {}
    facts |= links.content(mailed_together)
    shown = {name: facts[name] for name in facts if name not in RESOURCE_FACTS}
    facts_of = {
        OWNER: facts | {"resource_id": str(transition.booking.event.resource_id)},
        CUSTOMER: (shown if hides_resources else facts) | _facts_for_customers(transition),
    }
    for recipient in recipients:
        for customer in _addressees(transition, recipient):
            yield _new_mail(
                transition,
                kind,
                recipient,
                customer=customer,
                content=facts_of[recipient],
                **links.due_times(mailed_together),
            )
    if OWNER in recipients:
        yield from _mails_to_companions(mailed_together, kind)
        yield from _mails_to_former_resources(mailed_together)


def _link_mails(transition: Transition, first_mails: FirstMails) -> Iterator[Delivery]:
    """Yield one e-mail with the new link to each person who may have got an earlier one without it.

    Whether the person did is checked when it is sent: it waits for the earlier one.
    """
    for (recipient, _), mails in first_mails.sent(transition).items():
        first = mails[0]
        together = _with_series(transition, first)
        if together[0].booking.id != first.booking_id:
            continue  # the first of the series does not take place: the others' reminders have it
        told = together[0]
        facts = _facts(told, together, LINK) | {FOLLOWS: [str(mail.id) for mail in mails]}
        facts |= (
            _facts_for_customers(told)
            if recipient == CUSTOMER
            else {"resource_id": str(told.booking.event.resource_id)}
        )
        yield _new_mail(told, LINK, recipient, customer_id=first.customer_id, content=facts)


def _with_series(transition: Transition, first: Delivery) -> list[Transition]:
    """Return the transition; if the first e-mail was about a series, one for each of its bookings
    that take place, that of the e-mail first.
    """
    if "occurrences" not in first.content:
        return [transition]
    series = Booking.objects.filter(series=transition.booking.series_id, deleted_at=None)
    rows = series.select_related("app", "event", "resource", "project").order_by("event__start")
    live = [booking for booking in rows if GRAPHS[booking.graph].is_live(booking.state)]
    live.sort(key=lambda booking: booking.id != first.booking_id)
    return [Transition(booking, transition.change, edit=transition.edit) for booking in live]


def _new_mail(transition: Transition, kind: str, recipient: str, **values: Any) -> Delivery:
    now = transition.change.created_at
    if recipient in transition.suppress_mail_to:
        values |= _final(Delivery.SKIPPED, Message("E-mails are disabled for this booking."), now)
    return new_delivery(
        transition,
        type=Delivery.EMAIL,
        kind=kind,
        recipient=recipient,
        expires_at=now + MAIL_EXPIRES_AFTER,
        **values,
    )


def _kind_of_move(mailed_together: Sequence[Transition]) -> str:
    """Return the kind of mail by what the move changed: the time, the resources only, or nothing
    that is mailed ("").
    """
    if any(transition.has_new_time for transition in mailed_together):
        return RESCHEDULED
    is_reassigned = any(transition.reassigned for transition in mailed_together)
    return REASSIGNED if is_reassigned else ""


def _hides_resources(mailed_together: Sequence[Transition]) -> bool:
    """Return whether the changed resources are none that customers are told of."""
    changes = [each.reassigned for each in mailed_together if each.reassigned]
    return bool(changes) and not any(change.is_shown for change in changes)


def _mails_to_companions(mailed_together: Sequence[Transition], kind: str) -> Iterator[Delivery]:
    """Yield a mail to each further resource that joined bookings, and to those that joined earlier
    if their calendar entry changes; only to an address of its own.
    """
    told = {transition.booking.event.resource_id: None for transition in mailed_together}
    for resource_id, transitions in _transitions_by_mailed_companion(mailed_together, kind).items():
        content = _facts(transitions[0], transitions, kind)
        addressed = {
            "resource_id": str(resource_id),
            OF_COMPANION: True,
            TOLD_RESOURCES: [str(each) for each in told if each != resource_id],
        }
        told[resource_id] = None
        yield _new_mail(transitions[0], kind, OWNER, content=content | addressed)


def _transitions_by_mailed_companion(
    mailed_together: Sequence[Transition], kind: str
) -> dict[UUID, list[Transition]]:
    """Return, by further resource, the transitions that its own e-mail is about."""
    joined: dict[UUID, list[Transition]] = {}
    stayed: dict[UUID, list[Transition]] = {}
    for transition in mailed_together if kind in TOLD_TO_COMPANIONS else ():
        new = {each.id for each in transition.reassigned.joined} if transition.reassigned else set()
        for row in transition.booking.event.companions.all():
            group = joined if row.resource_id in new else stayed
            group.setdefault(row.resource_id, []).append(transition)
    if kind == REASSIGNED or not stayed:
        return joined
    bookings = [transition.booking for transition in mailed_together]
    is_same = Q(booking__in=bookings) | Q(
        booking__series__in={each.series_id for each in bookings} - {None}
    )
    mails = Delivery.objects.filter(
        is_same, type=Delivery.EMAIL, recipient=OWNER, content__has_key=OF_COMPANION
    )
    told = set(mails.values_list("content__resource_id", flat=True))
    return joined | {
        resource_id: transitions
        for resource_id, transitions in stayed.items()
        if str(resource_id) in told and resource_id not in joined
    }


def _mails_to_former_resources(mailed_together: Sequence[Transition]) -> Iterator[Delivery]:
    """Yield a mail to each resource that lost bookings to another one: it takes them back.

    To a further resource only if it has an address of its own.
    """
    transitions_by_pair: dict[tuple[Resource, Resource, bool], list[Transition]] = {}
    for transition in mailed_together:
        if reassigned := transition.reassigned:
            for former, new in reassigned.replaced:
                is_companion = former != reassigned.before[0]
                pair = (former, new, is_companion)
                transitions_by_pair.setdefault(pair, []).append(transition)
    for (former, new, is_companion), transitions in transitions_by_pair.items():
        present = {
            resource.id: None
            for transition in transitions
            if transition.reassigned
            for resource in transition.reassigned.after
        }
        content = _facts(transitions[0], transitions, UNASSIGNED) | {
            "resources": [new.name],
            "old_resources": [former.name],
            "resource_id": str(former.id),
            "new_resource_id": str(new.id),
            TOLD_RESOURCES: [str(each) for each in present],
        }
        if is_companion:
            content[OF_COMPANION] = True
        yield _new_mail(transitions[0], UNASSIGNED, OWNER, content=content)


def _mails_update(transition: Transition) -> bool:
    """Return whether the update is mailed; not for a booking that is over."""
    booking, now = transition.booking, transition.change.created_at
    is_ahead = not booking.completed and booking.event.end > now
    edit = transition.edit
    return is_ahead and edit is not None and bool(edit.readdressed or edit.names & MAILED_CHANGES)


def _addressees(transition: Transition, recipient: str) -> list[Customer | None]:
    """Return the customers to mail; [None] for the owner, whose address is read on sending."""
    return list(transition.customers) if recipient == CUSTOMER else [None]


def _facts_for_customers(transition: Transition) -> dict[str, str]:
    """Return the data that differs for customers: they read no text of a public caller, and no
    reason that another customer gave on the page of a link.
    """
    texts = {name: trusted_text(transition.booking, name) for name in ("what", "where")}
    change = transition.change
    is_hidden = change.source == PUBLIC_SOURCE or (change.source, change.actor) == CUSTOMERS_LINK
    return texts | ({"message": ""} if is_hidden else {})


def _facts(
    transition: Transition, mailed_together: Sequence[Transition], kind: str
) -> dict[str, Any]:
    """Return the data of the mail as of this change; for a former resource, with the old time."""
    event, change = transition.booking.event, transition.change
    start, end = _mailed_times(transition, kind)
    facts: dict[str, Any] = {
        "start": format_instant(start),
        "end": format_instant(end),
        "what": event.what,
        "where": event.where,
        "from_state": change.from_state,
        "message": "" if transition.edit else change.message,
    }
    if transition.moved_from and kind == RESCHEDULED:
        old_start, old_end = transition.moved_from
        facts |= {"old_start": format_instant(old_start), "old_end": format_instant(old_end)}
    facts |= _resources_of_move(mailed_together)
    if len(mailed_together) > 1:
        facts |= _repetition(mailed_together, kind)
    return facts


def _mailed_times(transition: Transition, kind: str) -> tuple[datetime, datetime]:
    if kind == UNASSIGNED and transition.moved_from:
        return transition.moved_from
    return transition.booking.event.start, transition.booking.event.end


def _resources_of_move(mailed_together: Sequence[Transition]) -> dict[str, list[str]]:
    """Return the names of the resources now and of those that left; {} if none has changed."""
    now: dict[UUID, str] = {}
    left: dict[UUID, str] = {}
    for transition in mailed_together:
        if reassigned := transition.reassigned:
            now |= {resource.id: resource.name for resource in reassigned.after}
            left |= {resource.id: resource.name for resource in reassigned.left}
    return {"resources": list(now.values()), "old_resources": list(left.values())} if left else {}


def _repetition(mailed_together: Sequence[Transition], kind: str) -> dict[str, Any]:
    """How often and until when; and those that stand in calendars, or did: entry, start, end, and
    how many changes it had seen before."""
    graph = GRAPHS[mailed_together[0].booking.graph]
    noted = [
        transition
        for transition in mailed_together
        if graph.is_live(transition.change.to_state) or graph.is_live(transition.change.from_state)
    ]
    seen = _count_changes([transition.booking for transition in noted])
    return {
        "times": len(mailed_together),
        "until": format_instant(
            max(_mailed_times(transition, kind)[0] for transition in mailed_together)
        ),
        "occurrences": [
            [
                str(transition.booking.calendar_uid),
                *map(format_instant, _mailed_times(transition, kind)),
                seen[transition.booking.id] - 1,
            ]
            for transition in noted
        ],
    }


def _count_changes(bookings: Sequence[Booking]) -> Counter[UUID]:
    """Count the changes per booking; those of a group's seats count for the group."""
    seen: Counter[UUID] = Counter()
    groups = [booking for booking in bookings if booking.max_seats is not None]
    for column, rows in (("booking", bookings), ("booking__owner_booking", groups)):
        changes = StateChange.objects.filter(**{f"{column}__in": rows}).order_by()
        seen.update(dict(changes.values_list(column).annotate(Count("id"))) if rows else {})
    return seen


# --- Webhooks -------------------------------------------------------------------------------------
class _Subscription(NamedTuple):
    """What an active webhook wants to hear of; ids and texts as the database returns them."""

    id: Any
    graph: str
    states: str
    kinds: str

    def is_called_for(self, transition: Transition) -> bool:
        """Return whether it is called for this change.

        A move is told to those who want the state that the booking is in, and to those who want
        `rescheduled`; updates and answers to those whose `kinds` name them.
        """
        states, kinds = json.loads(self.states), json.loads(self.kinds)
        booking, event = transition.booking, event_of(transition)
        is_wanted = f"booking.{event}" in kinds if kinds else event not in ON_REQUEST
        return (
            self.graph in ("", booking.graph)
            and (not states or bool({event, booking.state} & set(states)))
            and (is_wanted or is_told_as_reassigned(transition.change, kinds))
        )


def is_told_as_reassigned(change: StateChange, kinds: Sequence[str]) -> bool:
    """Return whether a webhook with these `kinds` is told of the change as `booking.reassigned`."""
    return change.action == REASSIGN and f"booking.{REASSIGNED}" in kinds


def _calls(transitions: Sequence[Transition]) -> dict[Transition, ChangeCalls]:
    """Return the calls of the transitions that webhooks want, for a worker to expand.

    One row for all webhooks: this transaction holds the lock of the resource.
    """
    subscriptions = _subscriptions(transitions[0].booking.app_id)
    webhook_events = {
        transition: [
            str(to_uuid(subscription.id))
            for subscription in subscriptions
            if subscription.is_called_for(transition)
        ]
        for transition in (transitions if subscriptions else ())
    }
    webhook_events = {
        transition: webhooks for transition, webhooks in webhook_events.items() if webhooks
    }
    bodies = bodies_of_changes({each: f"booking.{event_of(each)}" for each in webhook_events})
    return {
        transition: ChangeCalls(
            change=transition.change,
            kind=event_of(transition),
            version=transition.booking.reschedules,
            webhooks=webhooks,
            body=bodies[transition],
            first_number=0,
            waiting_since=transaction_start(),
        )
        for transition, webhooks in webhook_events.items()
    }


# Raw SQL: most apps have no webhook, and every booking checks (docs/benchmarks.md, P6).
_SUBSCRIPTIONS = """
SELECT id, graph, states, kinds FROM notifications_webhook
WHERE app_id = %s AND deleted_at IS NULL AND active ORDER BY id
"""


def _subscriptions(app_id: UUID) -> list[_Subscription]:
    with connection.cursor() as cursor:
        cursor.execute(_SUBSCRIPTIONS, [id_param(app_id)])
        return [_Subscription(*row) for row in cursor.fetchall()]


# --- Event notifications --------------------------------------------------------------------------
def _reminders(transition: Transition) -> Iterator[Delivery]:
    """Yield the reminders of a booking that becomes live, or is live and was rescheduled."""
    graph, change = GRAPHS[transition.booking.graph], transition.change
    is_live, was_live = graph.is_live(change.to_state), graph.is_live(change.from_state)
    if is_live and (transition.moved_from or not was_live):
        yield from _planned_reminders(transition)


def _cancel_reminders(transitions: Sequence[Transition]) -> None:
    """Cancel scheduled reminders that no longer hold; workers check those being sent.

    The checks of lanes that are empty then go too: many of them would delay the claims at the time
    of the reminders.
    """
    reasons: dict[str, list[UUID]] = {}
    for transition in transitions:
        if reason := _reason_to_cancel(transition):
            reasons.setdefault(reason, []).append(transition.booking.id)
    for reason, booking_ids in reasons.items():
        reminders = Delivery.objects.filter(
            booking__in=booking_ids, kind=Delivery.REMINDER, state=Delivery.SCHEDULED
        )
        lanes = set(reminders.values_list("type", "endpoint").order_by().distinct())
        if lanes:
            reminders.update(**_final(Delivery.CANCELLED, reason, transitions[0].change.created_at))
            types, endpoints = zip(*lanes, strict=True)
            delete_checks_of_empty_lanes(
                LaneCheck.objects.filter(
                    app=transitions[0].booking.app, type__in=types, endpoint__in=endpoints
                )
            )


def _reason_to_cancel(transition: Transition) -> str:
    graph, change = GRAPHS[transition.booking.graph], transition.change
    is_live, was_live = graph.is_live(change.to_state), graph.is_live(change.from_state)
    if transition.moved_from and is_live:
        return Message("The booking was moved.")
    if was_live and not is_live and change.action != "complete":
        return f"The booking is {change.to_state}."
    return ""


def _planned_reminders(transition: Transition) -> Iterator[Delivery]:
    booking, now = transition.booking, transaction_start()
    start, zone = booking.event.start, first_known_zone(booking.resource.timezone)
    for notification in transition.notifications:
        due_at = due_time(notification, start, zone)
        past = _final(Delivery.SKIPPED, Message("The planned time was already past."), now)
        values = {
            "kind": Delivery.REMINDER,
            "due_at": due_at,
            **(past if due_at < now else {}),
        }
        if notification.type == EventNotification.WEBHOOK:
            yield new_delivery(
                transition,
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
        for customer in _addressees(transition, notification.recipient):
            yield new_delivery(
                transition,
                type=Delivery.EMAIL,
                recipient=notification.recipient,
                customer=customer,
                content={"subject": notification.subject} if notification.subject else {},
                expires_at=_reminder_expiry(notification, due_at, start),
                **values,
            )


def due_time(notification: EventNotification, start: datetime, zone: str) -> datetime:
    """Return when an event notification of a booking with that start is due.

    Days move on the wall clock of the resource's `zone`, as in `from` and `to` (api.md section 1):
    a day before 09:00 is 09:00, also when the clocks change in between. A wall time in a gap moves
    to the gap's end.
    """
    time = notification.when_time
    if notification.when_type == EventNotification.BEFORE:
        time = -time
    if notification.when_unit == EventNotification.DAYS and time:
        return wall_to_utc_or_gap_end(wall_time(start, zone) + timedelta(days=time), zone)
    return start + timedelta(seconds=time * EventNotification.UNIT_SECONDS[notification.when_unit])


def _reminder_expiry(
    notification: EventNotification, due_at: datetime, start: datetime
) -> datetime:
    """An outage never ends in a reminder for a meeting that has begun long ago."""
    if notification.when_type == EventNotification.BEFORE:
        return max(start, due_at + REMINDER_GRACE)
    return due_at + MAIL_EXPIRES_AFTER
