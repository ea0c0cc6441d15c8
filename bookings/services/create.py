"""Make a booking and take its time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from availability.models import Calendar, Event
from availability.placement import Claim, Details, place_event
from bookings.graphs import INITIALIZED, WEBHOOK, Graph
from bookings.models import Booking, BookingNotification, Bulk, Customer
from bookings.places import Place
from bookings.services.asking import ask_for
from bookings.services.history import (
    Actor,
    Step,
    completes_at_of,
    expires_at_of,
    new_change,
    write_steps,
)
from bookings.services.taking import take_time
from scheduling.api.changes import transaction_start
from scheduling.api.sql import insert_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What every new booking says, whatever its time: shapes are checked, ids resolved.

    notifications: fields of EventNotification; None for the project's or the app's. unmailed: the
    recipients that get no mail about its making. max_seats, policies: of a group's owner. bulk:
    what it shares with the others of its request.
    """

    graph: Graph
    action: str
    customers: Sequence[Mapping[str, Any]]
    notifications: Sequence[Mapping[str, Any]] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    unmailed: Collection[str] = ()
    max_seats: int | None = None
    policies: Mapping[str, str] = field(default_factory=dict)
    bulk: Bulk | None = None

    @property
    def state(self) -> str:
        return self.graph.steps[INITIALIZED, self.action]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBooking(Agreement):
    """A booking to be made that takes a time of its own."""

    start: datetime
    end: datetime
    details: Details
    allow_double_bookings: bool = False
    enforce_availability: bool = False


def create_booking(new: NewBooking, *, place: Place, actor: Actor, now: datetime) -> Booking:
    """Make a booking and take its time, or leave nothing behind.

    Raises SlotTaken or NotAvailable, with alternatives that were free after the rollback.
    """
    claim = place.claim(
        new.start,
        new.end,
        blocks=new.graph.blocks(new.state, pending_blocks=place.pending_blocks),
        allow_double_bookings=new.allow_double_bookings,
        rules=place.rules if new.enforce_availability else None,
    )
    claim = ask_for(claim, place)
    return take_time(
        place, claim, lambda calendars: _create_in(calendars, new, place, claim, actor, now)
    )


def _create_in(
    calendars: Sequence[Calendar],
    new: NewBooking,
    place: Place,
    claim: Claim,
    actor: Actor,
    now: datetime,
) -> Booking:
    """Check and write: the resources are locked. The first calendar is the booking's."""
    event = place_event(
        claim,
        calendars=calendars,
        details=new.details,
        project_id=place.project.id if place.project else None,
    )
    booking = new_row(
        new,
        event,
        place=place,
        now=now,
        end=new.end,
        allow_double_bookings=new.allow_double_bookings,
        enforce_availability=new.enforce_availability,
    )
    write_bookings([booking], new, place=place, actor=actor, now=now)
    return booking


def new_row(
    new: Agreement, event: Event, *, place: Place, now: datetime, end: datetime, **more: Any
) -> Booking:
    """The booking in its first state, not written yet; its event ends at `end`."""
    return Booking(
        app=place.app,
        project=place.project,
        resource_id=event.resource_id,
        event=event,
        graph=new.graph.name,
        state=new.state,
        completed=new.graph.is_completed(new.state),
        completes_at=completes_at_of(new.graph, new.state, end),
        expires_at=expires_at_of(new.graph, new.state, now),
        meta=dict(new.meta),
        max_seats=new.max_seats,
        policies=dict(new.policies),
        bulk=new.bulk,
        created_at=now,
        updated_at=transaction_start(),
        **more,
    )


def write_bookings(
    bookings: Sequence[Booking], new: Agreement, *, place: Place, actor: Actor, now: datetime
) -> None:
    """Write new bookings of one agreement, with everything that belongs to them."""
    insert_rows(bookings)
    customers = {
        booking.id: [
            Customer(booking=booking, position=position, **customer)
            for position, customer in enumerate(new.customers)
        ]
        for booking in bookings
    }
    insert_rows([customer for rows in customers.values() for customer in rows])
    wanted = _notifications_of(new, place)
    notifications = {
        booking.id: [BookingNotification(booking=booking, **values) for values in wanted]
        for booking in bookings
    }
    insert_rows([notification for rows in notifications.values() for notification in rows])
    write_steps(
        [
            Step(
                booking,
                new_change(booking, new.action, INITIALIZED, actor, now),
                unmailed=new.unmailed,
                customers=customers[booking.id],
                notifications=notifications[booking.id],
            )
            for booking in bookings
        ]
    )


def _notifications_of(new: Agreement, place: Place) -> list[Mapping[str, Any]]:
    """The booking's own list, which replaces the project's, which replaces the app's.

    Of it those that bookings of this graph send.
    """
    wanted = new.notifications
    if wanted is None:
        by_project = place.project and place.project.replaces_notifications
        rows = (place.project if by_project else place.app).event_notifications.all()
        wanted = [notification.values() for notification in rows]
    return [one for one in wanted if (one.get("recipient") or WEBHOOK) in new.graph.reminds]
