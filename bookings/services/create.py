"""Create a booking and reserve its time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from availability.models import Event
from availability.reserve.events import EventDetails, write_events
from bookings.booking_target import BookingTarget
from bookings.graphs import INITIALIZED, WEBHOOK, Graph
from bookings.models import Booking, BookingNotification, Bulk, Customer
from bookings.public_booking_checks import count_public_booking
from bookings.services.conference_links import make_links
from bookings.services.customer_limits import check_new_bookings
from bookings.services.resource_assignment import find_candidates, reserve_time, with_live_busy
from bookings.services.transition_log import (
    Actor,
    Transition,
    completes_at_of,
    expires_at_of,
    new_change,
    write_first_transitions,
)
from bookings.services.where_placeholders import fill_places
from common.db.sql import insert_rows
from common.db.updated_at import transaction_start
from common.errors import taken_external_id_is_refused


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingDraft:
    """The fields of every new booking except its time: shapes checked, ids resolved.

    notifications: fields of EventNotification; None: the project's or the app's list.
    suppress_mail_to: recipients that get no mail about the creation. untrusted_texts: the texts of
    the event that a public caller wrote; None: no public caller makes the booking. max_seats,
    places, policies: for a group's owner. bulk: shared by the related bookings of a bulk request.
    message: for the log and the e-mails about the creation.
    """

    graph: Graph
    action: str
    customers: Sequence[Mapping[str, Any]]
    notifications: Sequence[Mapping[str, Any]] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    external_id: str | None = None
    note: str | None = None
    suppress_mail_to: Collection[str] = ()
    untrusted_texts: Sequence[str] | None = None
    max_seats: int | None = None
    places: Mapping[str, int] | None = None
    policies: Mapping[str, str] = field(default_factory=dict)
    bulk: Bulk | None = None
    message: str = ""

    @property
    def state(self) -> str:
        return self.graph.steps[INITIALIZED, self.action]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBooking(BookingDraft):
    start: datetime
    end: datetime
    details: EventDetails
    allow_double_bookings: bool = False
    enforce_availability: bool = False


def create_booking(
    new: NewBooking, *, target: BookingTarget, actor: Actor, now: datetime
) -> Booking:
    """Create a booking and reserve its time in one transaction.

    Raises SlotTaken or NotAvailable, with alternatives that were free after the rollback;
    PolicyViolated for a limit of the customer's bookings.
    """
    time_request = target.time_request(
        new.start,
        new.end,
        blocks=new.graph.blocks(new.state, pending_blocks=target.pending_blocks),
        allow_double_bookings=new.allow_double_bookings,
        rules=target.policies if new.enforce_availability else None,
    )
    candidates = find_candidates(time_request, target)
    time_request = with_live_busy(time_request, target, candidates)
    with reserve_time(time_request, target, candidates) as places:
        (event,) = write_events(
            [time_request], places=places, details=new.details, project=target.project
        )
        booking = new_row(
            new,
            event,
            target=target,
            now=now,
            end=new.end,
            allow_double_bookings=new.allow_double_bookings,
            enforce_availability=new.enforce_availability,
        )
        write_bookings([booking], new, target=target, actor=actor, now=now)
    return booking


def new_row(
    new: BookingDraft,
    event: Event,
    *,
    target: BookingTarget,
    now: datetime,
    end: datetime,
    **more: Any,
) -> Booking:
    """Return an unsaved booking in its first state; `end` is the end of its event."""
    return Booking(
        app=target.app,
        project=target.project,
        resource=event.resource,
        event=event,
        graph=new.graph.name,
        state=new.state,
        completed=new.graph.is_completed(new.state),
        completes_at=completes_at_of(new.graph, new.state, end),
        expires_at=expires_at_of(new.graph, new.state, target.project, transaction_start()),
        meta=dict(new.meta),
        external_id=new.external_id,
        note=new.note,
        requires=target.requires,
        visit=target.steps,
        untrusted_texts=None if new.untrusted_texts is None else list(new.untrusted_texts),
        max_seats=new.max_seats,
        places=None if new.places is None else dict(new.places),
        quantity=None if target.quantity == 1 else target.quantity,
        party_size=target.party_size,
        policies=dict(new.policies),
        bulk=new.bulk,
        created_at=now,
        updated_at=transaction_start(),
        **more,
    )


def write_bookings(
    bookings: Sequence[Booking],
    new: BookingDraft,
    *,
    target: BookingTarget,
    actor: Actor,
    now: datetime,
) -> None:
    """Insert new bookings of one draft with their customers, notifications and log entries.

    Raises PolicyViolated for more bookings of a customer than the project allows, LimitReached for
    more than a public caller may make, AlreadyExists for a taken external id.
    """
    with taken_external_id_is_refused("booking"):
        insert_rows(bookings)
    fill_places(bookings)
    make_links(bookings)
    notifications = _notifications_of(new, target)
    transitions = [
        Transition(
            booking,
            new_change(booking, new.action, INITIALIZED, actor, now, new.message),
            suppress_mail_to=new.suppress_mail_to,
            customers=[
                Customer(app_id=booking.app_id, booking=booking, position=position, **customer)
                for position, customer in enumerate(new.customers)
            ],
            notifications=[
                BookingNotification(booking=booking, **values) for values in notifications
            ],
        )
        for booking in bookings
    ]
    write_first_transitions(transitions)
    if all(booking.enforce_availability or booking.owner_booking_id for booking in bookings):
        emails = [customer["email"] for customer in new.customers]
        check_new_bookings(target.project, bookings, emails, now=now)
    if target.public_request:
        count_public_booking(target.app, target.public_request, quantity=target.quantity, now=now)


def _notifications_of(new: BookingDraft, target: BookingTarget) -> list[Mapping[str, Any]]:
    """Return the booking's own list, else the project's, else the app's.

    Contains only notifications to recipients that the graph reminds.
    """
    notifications = new.notifications
    if notifications is None:
        project = target.project
        owner = project if project and project.replaces_notifications else target.app
        notifications = [notification.values() for notification in owner.event_notifications.all()]
    return [
        notification
        for notification in notifications
        if (notification.get("recipient") or WEBHOOK) in new.graph.reminds
    ]
