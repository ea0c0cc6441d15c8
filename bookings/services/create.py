"""Make a booking and take its time."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from availability.enforcement import first_calendars
from availability.models import Calendar
from availability.placement import (
    Claim,
    Details,
    NotAvailable,
    SlotTaken,
    choose_free,
    guarded_transaction,
    keep_project,
    lock_calendars,
    place_event,
)
from availability.search import Bookable
from bookings.graphs import INITIALIZED, Graph
from bookings.models import Booking, BookingNotification, Customer
from bookings.places import Place
from bookings.services.history import Actor, Step, completes_at_of, log_step, tell
from bookings.services.refusals import offer_alternatives
from scheduling.api.errors import Invalid
from scheduling.api.sql import insert_rows


@dataclass(frozen=True, slots=True)
class NewBooking:
    """A booking to be made: shapes are checked, ids resolved within the app.

    notifications: fields of EventNotification; None for the project's or the app's. unmailed: the
    recipients that get no mail about its making.
    """

    start: datetime
    end: datetime
    details: Details
    graph: Graph
    action: str
    customers: Sequence[Mapping[str, Any]]
    allow_double_bookings: bool = False
    enforce_availability: bool = False
    notifications: Sequence[Mapping[str, Any]] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    unmailed: Collection[str] = ()

    @property
    def state(self) -> str:
        return self.graph.steps[INITIALIZED, self.action]


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
    try:
        with guarded_transaction():
            if place.project and not keep_project(place.project.id):
                raise Invalid.at("project_id", "There is no such project any more.")
            if place.calendar:
                return _create_in([place.calendar], new, place, claim, actor, now)
            choices = place.choices(enforced=new.enforce_availability)
            if place.mode == "mutual" and choices.resources:
                calendars = _calendars_of(choices.resources)
                return _create_in(calendars, new, place, claim, actor, now)
            free = choose_free(claim, choices)
            return _create_in_one_of(free, new, place, claim, actor, now)
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, claim, place)
        raise


def _calendars_of(resources: Sequence[Bookable]) -> list[Calendar]:
    calendars = first_calendars([resource.id for resource in resources])
    return [calendars[resource.id] for resource in resources if resource.id in calendars]


def _create_in_one_of(
    free: list[Bookable], new: NewBooking, place: Place, claim: Claim, actor: Actor, now: datetime
) -> Booking:
    """Take the first resource, by the project's mode, that is still free once it is locked."""
    if place.mode == "roundrobin_random":
        free = random.sample(free, len(free))
    *calendars, last = _calendars_of(free)
    for calendar in calendars:
        try:
            # A refused try rolls back to its savepoint, which gives its lock back: no resource is
            # waited for while another is held.
            with transaction.atomic():
                return _create_in([calendar], new, place, claim, actor, now)
        except (SlotTaken, NotAvailable, Invalid):
            continue
    return _create_in([last], new, place, claim, actor, now)


def _create_in(
    calendars: Sequence[Calendar],
    new: NewBooking,
    place: Place,
    claim: Claim,
    actor: Actor,
    now: datetime,
) -> Booking:
    """Lock the calendars' resources, check, write. The first calendar is the booking's."""
    if not calendars or not lock_calendars(calendars):
        raise Invalid.at("resource_id", "There is no such resource any more.")
    event = place_event(
        claim,
        calendars=calendars,
        details=new.details,
        project_id=place.project.id if place.project else None,
    )
    booking = Booking(
        app=place.app,
        project=place.project,
        resource_id=event.resource_id,
        event=event,
        graph=new.graph.name,
        state=new.state,
        completed=new.graph.is_completed(new.state),
        completes_at=completes_at_of(new.graph, new.state, new.end),
        allow_double_bookings=new.allow_double_bookings,
        enforce_availability=new.enforce_availability,
        meta=dict(new.meta),
        created_at=now,
        updated_at=now,
    )
    insert_rows([booking])
    customers = [
        Customer(booking=booking, position=position, **customer)
        for position, customer in enumerate(new.customers)
    ]
    insert_rows(customers)
    notifications = [
        BookingNotification(booking=booking, **values) for values in _notifications_of(new, place)
    ]
    insert_rows(notifications)
    change = log_step(booking, new.action, INITIALIZED, actor, now)
    tell(
        Step(
            booking,
            change,
            unmailed=new.unmailed,
            customers=customers,
            notifications=notifications,
        )
    )
    return booking


def _notifications_of(new: NewBooking, place: Place) -> list[Mapping[str, Any]]:
    """The booking's own list, which replaces the project's, which replaces the app's."""
    if new.notifications is not None:
        return list(new.notifications)
    owner = place.project if place.project and place.project.replaces_notifications else place.app
    return [notification.values() for notification in owner.event_notifications.all()]
