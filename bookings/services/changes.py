"""Lead a booking on, move it, complete it, hide it: always under its lock."""

import logging
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, transaction

from apps_config.models import App
from availability.enforcement import taken_meanwhile
from availability.models import Calendar
from availability.placement import (
    Claim,
    NotAvailable,
    SlotTaken,
    block_event,
    free_event,
    guarded_transaction,
    lock_calendars,
    lock_resources,
    move_event,
)
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS
from bookings.models import Booking
from bookings.places import Place
from bookings.services.history import TIMER, Actor, Step, completes_at_of, log_step, tell
from bookings.services.refusals import ActionNotAllowed, PolicyViolated, offer_alternatives
from scheduling.api.durations import elapsed_seconds
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.merging import merge_free

logger = logging.getLogger(__name__)

BATCH = 500
CUSTOMER_SOURCES = frozenset({"widget", "link"})


def lock_booking(app: App, booking_id: uuid.UUID) -> Booking:
    """The app's booking under lock, with its event, resource and project. Raises NotFound.

    Two queries: had the first waited for its lock, rows joined to it would be those of before.
    """
    bookings = Booking.objects.for_app(app)
    locked = bookings.select_for_update(no_key=True).filter(id=booking_id).values_list("id")
    if not locked:
        raise NotFound("Booking")
    return bookings.select_related("event__calendar", "resource", "project", "app").get(
        id=booking_id
    )


def apply_action(
    *,
    app: App,
    booking_id: uuid.UUID,
    action: str,
    actor: Actor,
    now: datetime,
    message: str = "",
) -> Booking:
    """Lead a booking to its next state.

    Raises NotFound, ActionNotAllowed, PolicyViolated; SlotTaken or NotAvailable where the new
    state blocks and the time is gone: the booking stays as it was.
    """
    booking = place = None
    try:
        with guarded_transaction():
            booking = lock_booking(app, booking_id)
            if GRAPHS[booking.graph].next_state(booking.state, action) is None:
                raise ActionNotAllowed(booking, action)
            if action in CUSTOMER_ACTIONS:
                _check_notice(booking, "min_cancel_time", now)
            place = _place_of(booking, now)
            _advance(booking, action, place, actor, now, message)
            return booking
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, _claim_of(booking, place), place)
        raise


def _place_of(booking: Booking, now: datetime, calendar: Calendar | None = None) -> Place:
    """Where the booking is, or would be in another calendar."""
    event = booking.event
    others = [companion.resource_id for companion in event.companions.all()]
    return Place(
        app=booking.app,
        project=booking.project,
        calendar=calendar or event.calendar,
        now=now,
        others=others,
    )


def _claim_of(booking: Booking, place: Place) -> Claim:
    """The booking's own time again, against what others may have taken meanwhile."""
    return place.claim(
        booking.event.start,
        booking.event.end,
        blocks=True,
        allow_double_bookings=booking.allow_double_bookings,
        rules=taken_meanwhile(place.rules) if booking.enforce_availability else None,
    )


def _advance(
    booking: Booking,
    action: str,
    place: Place,
    actor: Actor,
    now: datetime,
    message: str = "",
) -> None:
    """Take or free the time as the next state wants it, and write the state: under lock."""
    graph, from_state = GRAPHS[booking.graph], booking.state
    booking.state = graph.steps[from_state, action]
    blocks = graph.blocks(booking.state, pending_blocks=place.pending_blocks)
    if blocks and not booking.event.busy:
        lock_resources({booking.event.resource_id, *place.others})
        block_event(_claim_of(booking, place), booking.event)
    elif booking.event.busy and not blocks:
        free_event(booking.event)
    booking.completed = graph.is_completed(booking.state)
    booking.completes_at = completes_at_of(graph, booking.state, booking.event.end)
    booking.updated_at = now
    booking.save(update_fields=["state", "completed", "completes_at", "updated_at"])
    tell(Step(booking, log_step(booking, action, from_state, actor, now, message)))


def _check_notice(booking: Booking, policy: str, now: datetime) -> None:
    """Raise PolicyViolated where the project wants more time before the start than is left."""
    limit = booking.project.settings.get(policy) if booking.project else None
    if limit is not None and now > booking.event.start - timedelta(seconds=elapsed_seconds(limit)):
        raise PolicyViolated(policy, limit)


def reschedule(
    *,
    app: App,
    booking_id: uuid.UUID,
    start: datetime,
    end: datetime,
    calendar: Calendar | None,
    actor: Actor,
    now: datetime,
    message: str = "",
) -> Booking:
    """Move a booking to another time, and to another calendar if one is given.

    Checked as at its making, by its own settings. Raises NotFound, ActionNotAllowed (completed),
    PolicyViolated, Invalid (a mutual booking's resources stay); SlotTaken or NotAvailable: the
    old time is kept.
    """
    claim = place = None
    try:
        with guarded_transaction():
            booking = lock_booking(app, booking_id)
            if booking.completed:
                raise ActionNotAllowed(booking, "reschedule")
            if actor.source in CUSTOMER_SOURCES:
                _check_reschedule_policies(booking, now)
            place = _place_of(booking, now, calendar)
            enforced = booking.enforce_availability or actor.source in CUSTOMER_SOURCES
            claim = place.claim(
                start,
                end,
                blocks=booking.event.busy,
                allow_double_bookings=booking.allow_double_bookings,
                rules=place.rules if enforced else None,
            )
            _move(booking, claim, place, actor, now, message)
            return booking
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, claim, place)
        raise


def _check_reschedule_policies(booking: Booking, now: datetime) -> None:
    _check_notice(booking, "min_reschedule_time", now)
    most = booking.project.settings.get("max_reschedules") if booking.project else None
    if most is not None and booking.reschedules >= most:
        raise PolicyViolated("max_reschedules", most)


def _move(
    booking: Booking, claim: Claim, place: Place, actor: Actor, now: datetime, message: str
) -> None:
    event, calendar = booking.event, place.calendar
    if place.others and calendar.id != event.calendar_id:
        raise Invalid.at("resource_id", "The resources of a mutual booking can't be changed.")
    resource_ids = {event.resource_id, calendar.resource_id, *place.others}
    all_there = len(lock_resources(resource_ids)) == len(resource_ids)
    if not all_there or (calendar.id != event.calendar_id and not lock_calendars([calendar])):
        raise Invalid.at("resource_id", "There is no such resource any more.")
    moved_from = (event.start, event.end)
    move_event(claim, event, calendar=calendar)
    booking.resource_id = event.resource_id
    booking.reschedules += 1
    booking.completes_at = completes_at_of(GRAPHS[booking.graph], booking.state, claim.end)
    booking.updated_at = now
    booking.save(update_fields=["resource", "reschedules", "completes_at", "updated_at"])
    change = log_step(booking, "reschedule", booking.state, actor, now, message)
    tell(Step(booking, change, moved_from=moved_from))


def change_meta(
    *, app: App, booking_id: uuid.UUID, meta: Mapping[str, Any], now: datetime
) -> Booking:
    """Merge keys into a booking's meta; null removes a key. Raises NotFound, Invalid (too big)."""
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        booking.meta = merge_free(booking.meta, meta, path="meta")
        booking.updated_at = now
        booking.save(update_fields=["meta", "updated_at"])
    return booking


def delete_booking(*, app: App, booking_id: uuid.UUID, now: datetime) -> None:
    """Hide a completed booking everywhere; its rows stay. Raises NotFound, ActionNotAllowed."""
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if not booking.completed:
            raise ActionNotAllowed(booking, "delete")
        booking.deleted_at = booking.updated_at = now
        booking.save(update_fields=["deleted_at", "updated_at"])


def complete_ended_bookings(*, now: datetime) -> int:
    """Complete live bookings that ended an hour ago, each in a transaction; returns how many.

    Two at once do no harm: what the other has completed is no longer due under the lock. One that
    can't be completed holds up no other.
    """
    due = Booking.objects.filter(completes_at__lte=now, deleted_at=None).order_by("completes_at")
    done = 0
    for booking_id, app in [(row.id, row.app) for row in due.select_related("app")[:BATCH]]:
        try:
            done += _complete(app, booking_id, now)
        except (OperationalError, InterfaceError, SoftTimeLimitExceeded):
            raise  # the database is busy or away, or the task's time over: so it is for the others
        except Exception:
            logger.exception("booking %s can't be completed", booking_id)
    return done


def _complete(app: App, booking_id: uuid.UUID, now: datetime) -> bool:
    """Whether it was still to be completed."""
    with transaction.atomic():
        try:
            booking = lock_booking(app, booking_id)
        except NotFound:
            return False  # completed and hidden since it was listed
        if booking.completes_at is None or booking.completes_at > now:
            return False  # cancelled or moved since then
        _advance(booking, "complete", _place_of(booking, now), TIMER, now)
        return True
