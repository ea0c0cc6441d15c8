"""Move bookings to another time: under their locks and those of their resources."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count

from apps_config.models import App
from availability.models import Calendar
from availability.placement import (
    Claim,
    NotAvailable,
    SlotTaken,
    guarded_transaction,
    lock_calendars,
    lock_resources,
)
from bookings.graphs import GRAPHS, OWNER
from bookings.models import Booking, StateChange
from bookings.places import Place
from bookings.services.asking import ask_about, is_asked
from bookings.services.changes import check_notice, places_of, take_all
from bookings.services.history import Actor, Step, completes_at_of, new_change, write_steps
from bookings.services.locks import THIS, lock_booking, lock_seats, lock_together
from bookings.services.refusals import ActionNotAllowed, PolicyViolated, offer_alternatives
from scheduling.api.beforehand import asks_first
from scheduling.api.changes import transaction_start
from scheduling.api.errors import Forbidden, Invalid
from scheduling.api.instants import InstantError, check_year, wall_to_utc_or_gap_end, zone
from scheduling.api.sql import update_rows

CUSTOMER_SOURCES = frozenset({"widget", "link"})
# Where the project does not say: every move is mailed, and a public key must not mail without end.
MOST_BY_CUSTOMERS = 20


@dataclass(frozen=True, slots=True)
class _Move:
    """One booking, where it goes, and what it claims there."""

    booking: Booking
    place: Place
    claim: Claim
    was: tuple[datetime, datetime]

    @property
    def resource_ids(self) -> set[uuid.UUID]:
        event, calendar = self.booking.event, self.place.calendar
        return {event.resource_id, calendar.resource_id, *self.place.others}


@asks_first
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
    scope: str = THIS,
    only_resource: uuid.UUID | None = None,
) -> Booking:
    """Move a booking to another time, and to another calendar if one is given.

    With a wider `scope` its series moves along, by the same difference on the wall clock: all or
    none. Checked as at its making, by its own settings. Raises NotFound, ActionNotAllowed
    (completed), PolicyViolated, Forbidden (a customer moves a group), Invalid (a mutual booking's
    resources stay); SlotTaken or NotAvailable: the old times are kept.
    """
    wanted: list[tuple[Claim, Place]] = []
    try:
        with guarded_transaction():
            bookings = lock_together(app, booking_id, scope=scope, only_resource=only_resource)
            named = next(booking for booking in bookings if booking.id == booking_id)
            _check_may_move(bookings, actor, now)
            places = places_of(bookings, now, calendar)
            moves = [
                _plan_move(booking, times, places[booking.id], actor)
                for booking, times in _targets(named, bookings, start, end)
            ]
            moves = _ask_first(moves)
            _lock_places(moves)
            _take_times(moves, wanted)
            _write(moves, actor, now, message)
            return named
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, *wanted[-1])
        raise


@asks_first
def reschedule_once(
    *,
    app: App,
    booking_id: uuid.UUID,
    start: datetime,
    end: datetime,
    actor: Actor,
    now: datetime,
) -> Booking:
    """The same for a form that may be sent twice: a booking that is there already stays as it is.

    The second of two waits for the lock of the first, and finds it moved.
    """
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if (booking.event.start, booking.event.end) == (start, end):
            return booking
        return reschedule(
            app=app,
            booking_id=booking_id,
            start=start,
            end=end,
            calendar=None,
            actor=actor,
            now=now,
        )


def offers_move(booking: Booking) -> bool:
    """Whether its customer is given a link to move it: a project says by what rules, unless it has
    a page of its own for that. What the time decides is asked when the link is followed."""
    graph, project = GRAPHS[booking.graph], booking.project
    return (
        project is not None
        and not project.booking.get("rescheduling_url")
        and not (graph.is_group or graph.is_seat or graph.is_completed(booking.state))
        and not _without_moves_left([booking])
    )


def check_may_move(booking: Booking, actor: Actor, now: datetime) -> None:
    """Raises ActionNotAllowed, PolicyViolated, Forbidden, as its move would."""
    _check_may_move([booking], actor, now)


def _check_may_move(bookings: Sequence[Booking], actor: Actor, now: datetime) -> None:
    for booking in bookings:
        if booking.completed:
            raise ActionNotAllowed(booking, "reschedule")
        if booking.owner_booking_id:
            raise PolicyViolated("seat_moves_with_its_group", None)
        if actor.source in CUSTOMER_SOURCES:
            if booking.max_seats is not None:
                # Its id is no secret: pages list groups.
                raise Forbidden("A group is moved by its owner.")
            check_notice(booking, "min_reschedule_time", now)
    if actor.source in CUSTOMER_SOURCES and (used_up := _without_moves_left(bookings)):
        raise PolicyViolated("max_reschedules", _most_reschedules(used_up[0]))


def _without_moves_left(bookings: Sequence[Booking]) -> list[Booking]:
    """Those that their customers have moved as often as they may. Moves by staff are free."""
    # The log is read only for those that somebody has moved so often.
    often = [one for one in bookings if one.reschedules >= _most_reschedules(one)]
    if not often:
        return []
    moves = StateChange.objects.filter(
        booking__in=often, action="reschedule", source__in=CUSTOMER_SOURCES
    )
    counts = dict(moves.order_by().values_list("booking").annotate(Count("id")))
    return [one for one in often if counts.get(one.id, 0) >= _most_reschedules(one)]


def _most_reschedules(booking: Booking) -> int:
    most = booking.project.settings.get("max_reschedules") if booking.project else None
    return MOST_BY_CUSTOMERS if most is None else most


def _targets(
    named: Booking, bookings: Sequence[Booking], start: datetime, end: datetime
) -> list[tuple[Booking, tuple[datetime, datetime]]]:
    """The new start and end of each: the others move by the named one's difference on the wall
    clock. Raises Invalid where one would leave the years that the service knows."""
    zone_name = named.resource.timezone
    earlier, later = (_wall(one, zone_name) for one in (named.event.start, named.event.end))
    by_start, by_end = _wall(start, zone_name) - earlier, _wall(end, zone_name) - later
    targets = []
    for booking in bookings:
        if booking is named:
            targets.append((booking, (start, end)))
            continue
        first = _shifted(booking.event.start, by_start, booking.resource.timezone)
        last = _shifted(booking.event.end, by_end, booking.resource.timezone)
        # Both in one gap of the clock: it keeps the length that was asked for.
        targets.append((booking, (first, last if last > first else first + (end - start))))
    return targets


def _wall(instant: datetime, zone_name: str) -> datetime:
    try:
        return instant.astimezone(zone(zone_name)).replace(tzinfo=None)
    except InstantError as error:  # stored past the services
        raise Invalid.at("resource_id", f"The resource's time zone: {error}") from error


def _shifted(instant: datetime, by: timedelta, zone_name: str) -> datetime:
    """A wall time that the clock skips means the end of the gap."""
    try:
        return check_year(wall_to_utc_or_gap_end(_wall(instant, zone_name) + by, zone_name))
    except (InstantError, OverflowError) as error:
        raise Invalid.at("start", "Leads beyond the years 1970 to 2199.") from error


def _plan_move(
    booking: Booking,
    times: tuple[datetime, datetime],
    place: Place,
    actor: Actor,
) -> _Move:
    event = booking.event
    if place.others and place.calendar.id != event.calendar_id:
        raise Invalid.at("resource_id", "The resources of a mutual booking can't be changed.")
    enforced = booking.enforce_availability or actor.source in CUSTOMER_SOURCES
    claim = place.claim(
        *times,
        blocks=event.busy,
        allow_double_bookings=booking.allow_double_bookings,
        rules=place.rules if enforced else None,
    )
    return _Move(booking, place, claim, (event.start, event.end))


def _ask_first(moves: Sequence[_Move]) -> Sequence[_Move]:
    """The moves with what other calendars have at their times; those of one series are all of one
    project."""
    asked = [move for move in moves if is_asked(move.claim, move.place)]
    if not asked:
        return moves
    resource_ids = {
        resource_id
        for move in asked
        for resource_id in (move.place.calendar.resource_id, *move.place.others)
    }
    elsewhere = ask_about([move.claim for move in asked], sorted(resource_ids))
    return [
        replace(move, claim=replace(move.claim, elsewhere=elsewhere))
        if is_asked(move.claim, move.place)
        else move
        for move in moves
    ]


def _lock_places(moves: Sequence[_Move]) -> None:
    resource_ids = set().union(*(move.resource_ids for move in moves))
    all_there = len(lock_resources(resource_ids)) == len(resource_ids)
    calendars = {
        move.place.calendar.id: move.place.calendar
        for move in moves
        if move.place.calendar.id != move.booking.event.calendar_id
    }
    if not all_there or (calendars and not lock_calendars(calendars.values())):
        raise Invalid.at("resource_id", "There is no such resource any more.")


def _take_times(moves: Sequence[_Move], wanted: list[tuple[Claim, Place]]) -> None:
    """None stands in another's way from its old time."""
    for move in moves:
        event, calendar = move.booking.event, move.place.calendar
        event.calendar, event.resource_id = calendar, calendar.resource_id
    take_all([(move.booking.event, move.claim, move.place) for move in moves], wanted=wanted)


def _write(moves: Sequence[_Move], actor: Actor, now: datetime, message: str) -> None:
    """The bookings with their seats, which share the event that has moved."""
    by_id = {move.booking.id: move for move in moves}
    seats = lock_seats([move.booking for move in moves])
    steps = []
    for booking in [*(move.booking for move in moves), *seats]:
        move = by_id[booking.owner_booking_id or booking.id]
        booking.event = move.booking.event
        booking.resource_id = booking.event.resource_id
        booking.reschedules += 1
        booking.completes_at = completes_at_of(
            GRAPHS[booking.graph], booking.state, booking.event.end
        )
        if booking.event.start > now:
            booking.outcome = None  # that was said of its old time
        booking.updated_at = transaction_start()
        change = new_change(booking, "reschedule", booking.state, actor, now, message)
        told = [OWNER] if booking.owner_booking_id else []
        steps.append(Step(booking, change, moved_from=move.was, told=told))
    update_rows(
        [step.booking for step in steps],
        ["resource", "reschedules", "completes_at", "outcome", "updated_at"],
    )
    write_steps(steps)
