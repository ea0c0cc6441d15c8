"""Lead bookings on, complete them, hide them: always under their locks."""

import logging
import uuid
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction

from apps_config.models import App
from availability.batches import find_refusal
from availability.models import Calendar, Event
from availability.placement import (
    Claim,
    NotAvailable,
    SlotTaken,
    free_events,
    guarded_transaction,
    lock_resources,
    with_companions,
    write_claims,
)
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS, OWNER, TIMEOUT
from bookings.models import Booking
from bookings.places import Place
from bookings.services.history import (
    TIMER,
    Actor,
    Step,
    completes_at_of,
    expires_at_of,
    new_change,
    write_steps,
)
from bookings.services.locks import THIS, lock_booking, lock_seats, lock_together
from bookings.services.refusals import ActionNotAllowed, PolicyViolated, offer_alternatives
from scheduling.api.changes import transaction_start
from scheduling.api.durations import DurationError, elapsed_seconds
from scheduling.api.errors import Invalid, NotFound, is_outage
from scheduling.api.sql import update_rows

logger = logging.getLogger(__name__)

BATCH = 500


def apply_action(
    *,
    app: App,
    booking_id: uuid.UUID,
    action: str,
    actor: Actor,
    now: datetime,
    message: str = "",
    scope: str = THIS,
    with_bulk: bool = False,
    only_resource: uuid.UUID | None = None,
) -> Booking:
    """Lead a booking to its next state, and those that go with it: all or none.

    `scope`, `with_bulk`, `only_resource`: as `lock_together`. Raises NotFound, ActionNotAllowed,
    PolicyViolated; SlotTaken or NotAvailable where the new state blocks and the time is gone: the
    bookings stay as they were.
    """
    wanted: list[tuple[Claim, Place]] = []
    try:
        with guarded_transaction():
            bookings = lock_together(
                app, booking_id, scope=scope, with_bulk=with_bulk, only_resource=only_resource
            )
            for booking in bookings:
                if GRAPHS[booking.graph].next_state(booking.state, action) is None:
                    raise ActionNotAllowed(booking, action)
                if action in CUSTOMER_ACTIONS:
                    check_notice(booking, "min_cancel_time", now)
            _lead_on(bookings, action, actor, now, message, wanted=wanted)
            return next(booking for booking in bookings if booking.id == booking_id)
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, *wanted[-1])
        raise


def _lead_on(
    bookings: Sequence[Booking],
    action: str,
    actor: Actor,
    now: datetime,
    message: str = "",
    *,
    wanted: list[tuple[Claim, Place]],
) -> None:
    """Take or free the time as the next state wants it, and write the states: under lock.

    `wanted` is told whose time is being taken.
    """
    places = places_of(bookings, now)
    takers = [booking for booking in bookings if _takes_time(booking, action, places[booking.id])]
    if takers:
        lock_resources(
            {
                resource_id
                for booking in takers
                for resource_id in (booking.event.resource_id, *places[booking.id].others)
            }
        )
        claims = [_claim_of(booking, places[booking.id]) for booking in takers]
        take_all(
            [
                (booking.event, claim, places[booking.id])
                for booking, claim in zip(takers, claims, strict=True)
            ],
            wanted=wanted,
        )
    steps = [_step(booking, action, actor, now, message) for booking in bookings]
    followers = _followers(bookings, action)
    steps += [_step(seat, follow, actor, now, message, told=[OWNER]) for seat, follow in followers]
    free_events(
        [
            booking.event
            for booking in bookings
            if booking.owner_booking_id is None
            and booking.event.busy
            and not _blocks(booking, places[booking.id])
        ]
    )
    update_rows(
        [step.booking for step in steps],
        ["state", "completed", "completes_at", "expires_at", "updated_at"],
    )
    write_steps(steps)


def _blocks(booking: Booking, place: Place) -> bool:
    return GRAPHS[booking.graph].blocks(booking.state, pending_blocks=place.pending_blocks)


def take_all(
    times: Sequence[tuple[Event, Claim, Place]], *, wanted: list[tuple[Claim, Place]]
) -> None:
    """Check the claims of events, in their order, and write their times: all or none.

    The caller holds the locks of the resources. Raises SlotTaken or NotAvailable; `wanted` is told
    whose time is refused.
    """
    own = [row.id for event, _, _ in times for row in with_companions(event)]
    claims = [(claim, place.query_of(claim)) for _, claim, place in times]
    refused = find_refusal(claims, without=own)
    number, refusal = refused or (0, None)
    wanted.append(times[number][1:])
    if refusal:
        raise refusal
    write_claims([(event, claim) for event, claim, _ in times])


def _takes_time(booking: Booking, action: str, place: Place) -> bool:
    graph = GRAPHS[booking.graph]
    blocks = graph.blocks(graph.steps[booking.state, action], pending_blocks=place.pending_blocks)
    return blocks and not booking.event.busy


def _followers(bookings: Sequence[Booking], action: str) -> list[tuple[Booking, str]]:
    """The seats of the groups among the bookings that can do what is theirs to do then."""
    owners = [booking for booking in bookings if GRAPHS[booking.graph].seats_follow.get(action)]
    follows = {owner.id: GRAPHS[owner.graph].seats_follow[action] for owner in owners}
    return [
        (seat, follows[seat.owner_booking_id])
        for seat in lock_seats(owners)
        if GRAPHS[seat.graph].next_state(seat.state, follows[seat.owner_booking_id])
    ]


def _step(
    booking: Booking,
    action: str,
    actor: Actor,
    now: datetime,
    message: str,
    told: Collection[str] = (),
) -> Step:
    """Put the booking into its next state."""
    graph, from_state = GRAPHS[booking.graph], booking.state
    booking.state = graph.steps[from_state, action]
    booking.completed = graph.is_completed(booking.state)
    booking.completes_at = completes_at_of(graph, booking.state, booking.event.end)
    booking.expires_at = expires_at_of(graph, booking.state, now)
    booking.updated_at = transaction_start()
    change = new_change(booking, action, from_state, actor, now, message)
    return Step(booking, change, told=told)


def places_of(
    bookings: Sequence[Booking], now: datetime, calendar: Calendar | None = None
) -> dict[uuid.UUID, Place]:
    """By booking, where it is, or would be in another calendar.

    Those that go to the same resources share a place, whose rules are read once.
    """
    shared: dict[tuple[Any, ...], Place] = {}
    places = {}
    for booking in bookings:
        place = place_of(booking, now, calendar)
        key = (booking.project_id, place.calendar.id, *place.others)
        places[booking.id] = shared.setdefault(key, place)
    return places


def place_of(booking: Booking, now: datetime, calendar: Calendar | None = None) -> Place:
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
        rules=place.meanwhile if booking.enforce_availability else None,
    )


def check_notice(booking: Booking, policy: str, now: datetime) -> None:
    """Raise PolicyViolated where the project, or a seat's group, wants more time before the start
    than is left."""
    own = booking.owner_booking.policies if booking.owner_booking_id else {}
    of_project = booking.project.settings if booking.project else {}
    limit = own.get(policy) or of_project.get(policy)
    if limit is None:
        return
    try:
        notice = timedelta(seconds=elapsed_seconds(limit))
    except DurationError as error:  # stored past the services
        raise Invalid.at(f"settings.{policy}", f"The project's {policy}: {error}") from error
    if now > booking.event.start - notice:
        raise PolicyViolated(policy, limit)


def delete_booking(*, app: App, booking_id: uuid.UUID, now: datetime) -> None:
    """Hide a completed booking everywhere; its rows stay. Raises NotFound, ActionNotAllowed."""
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if not booking.completed:
            raise ActionNotAllowed(booking, "delete")
        booking.deleted_at, booking.updated_at = transaction_start(), transaction_start()
        booking.save(update_fields=["deleted_at", "updated_at"])


def complete_ended_bookings(*, now: datetime) -> int:
    """Complete live bookings that ended an hour ago; returns how many."""
    return _act_when_due("completes_at", "complete", now)


def time_out_payments(*, now: datetime) -> int:
    """Give up bookings whose payment did not come in time; returns how many."""
    return _act_when_due("expires_at", TIMEOUT, now)


def _act_when_due(column: str, action: str, now: datetime) -> int:
    """Lead on the bookings whose time in `column` has come, each in a transaction.

    Two at once do no harm: what the other has led on is no longer due under the lock. One that
    can't be led on holds up no other.
    """
    due = Booking.objects.filter(**{f"{column}__lte": now}, deleted_at=None).order_by(column)
    done = 0
    for booking_id, app in [(row.id, row.app) for row in due.select_related("app")[:BATCH]]:
        try:
            done += _act_if_due(app, booking_id, column, action, now)
        except SoftTimeLimitExceeded:
            raise
        except Exception as error:
            if is_outage(error):
                raise  # so it is for the others
            logger.exception("booking %s can't do %s", booking_id, action)
    return done


def _act_if_due(app: App, booking_id: uuid.UUID, column: str, action: str, now: datetime) -> bool:
    """Whether it was still due."""
    with transaction.atomic():
        try:
            booking = lock_booking(app, booking_id)
        except NotFound:
            return False  # hidden since it was listed
        due_at = getattr(booking, column)
        if due_at is None or due_at > now:
            return False  # paid, cancelled or moved since then
        _lead_on([booking], action, TIMER, now, wanted=[])
        return True
