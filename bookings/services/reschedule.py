"""Reschedule bookings, under the locks of the bookings and their resources."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count

from apps_config.models import App
from availability.core.matching import FixedChoice, Requirement
from availability.models import Calendar, Resource
from availability.reserve.checks import find_first_refusal, find_free_resources
from availability.reserve.events import (
    NotAvailable,
    SlotTaken,
    TimeRequest,
    event_with_companions,
    further_resource_events,
    guarded_transaction,
    lock_resources,
    lock_resources_of_calendars,
)
from availability.reserve.policies import first_own_calendars, without_rules
from availability.search.requirements import resource_ids_of_requirements
from availability.serializers.projects import PROJECT_DEFAULTS
from bookings.booking_target import BookingTarget
from bookings.graphs import GRAPHS, OWNER
from bookings.models import Booking, StateChange
from bookings.services.customer_limits import check_moved_bookings
from bookings.services.ended_seats import copy_events_of_ended_seats
from bookings.services.errors import ActionNotAllowed, PolicyViolated, offer_alternatives
from bookings.services.live_check import fetch_live_busy_for, needs_live_check
from bookings.services.locks import (
    THIS,
    lock_booking,
    lock_paced_projects,
    lock_seats,
    lock_together,
)
from bookings.services.responses import reset_responses
from bookings.services.transition_log import (
    OFFER_NEW_TIMES,
    RESCHEDULE,
    Actor,
    Reassignment,
    Transition,
    completes_at_of,
    new_change,
    write_transitions,
)
from bookings.services.transitions import check_notice, reserve_times, targets_of
from bookings.services.where_placeholders import refill_place
from common.db.calls_outside_transaction import with_calls_outside_transaction
from common.db.sql import update_rows
from common.db.updated_at import transaction_start
from common.errors import Forbidden, Invalid
from common.messages import Message
from common.time.instants import InstantError, check_year, wall_time, wall_to_utc_or_gap_end

CUSTOMER_SOURCES = frozenset({"widget", "link"})
# The default of `max_reschedules`: each move sends mails, so a public key needs a limit.
MAX_MOVES_BY_CUSTOMER = PROJECT_DEFAULTS["max_reschedules"]


@dataclass(frozen=True, slots=True)
class _Move:
    """One booking, its target, its time request, its former start and end, and its former resources
    with the main one first.

    named: a calendar whose resource must meet one of the project's requirements. calendars: those
    that the events move to, by resource, where it is not the present one.
    """

    booking: Booking
    target: BookingTarget
    time_request: TimeRequest
    was: tuple[datetime, datetime]
    was_with: Sequence[uuid.UUID]
    named: Calendar | None = None
    calendars: Mapping[uuid.UUID, Calendar] = field(default_factory=dict)

    @property
    def resource_ids(self) -> set[uuid.UUID]:
        event, calendar = self.booking.event, self.target.named_calendar
        old = {row.resource_id for row in event_with_companions(event)}
        return {*old, calendar.resource_id, *self.target.others}


@with_calls_outside_transaction
def reschedule_booking(
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

    Of a project with requirements, the calendar's resource takes the place of the one that meets
    the same requirement. A wider `scope` also moves the booking's series by the same wall-clock
    difference: all or none. Checked like a new booking, by the booking's own settings. Raises
    NotFound, ActionNotAllowed (completed), PolicyViolated, Forbidden (a customer moves a group),
    Invalid (the resources of a mutual booking can't change, the named one meets no requirement);
    SlotTaken or NotAvailable: the old times are kept.
    """
    requested: list[tuple[TimeRequest, BookingTarget]] = []
    try:
        with guarded_transaction():
            bookings = lock_together(app, booking_id, scope=scope, only_resource=only_resource)
            named = next(booking for booking in bookings if booking.id == booking_id)
            _check_may_move(bookings, actor, now)
            by_customer = actor.source in CUSTOMER_SOURCES
            places = targets_of(bookings, now, calendar, is_public=by_customer)
            moves = [
                _plan_move(booking, times, places[booking.id])
                for booking, times in _targets(named, bookings, start, end)
            ]
            moves = _choose_free_resources(_add_live_busy(moves))
            capacities = _lock_resources_and_calendars(moves)
            copy_events_of_ended_seats(bookings)
            _reserve_new_times(moves, capacities, requested)
            _check_customers(moves, now)
            _write(moves, actor, now, message)
            return named
    except (SlotTaken, NotAvailable) as refusal:
        if requested:
            offer_alternatives(refusal, *requested[-1])
        raise


@with_calls_outside_transaction
def reschedule_unless_done(
    *,
    app: App,
    booking_id: uuid.UUID,
    start: datetime,
    end: datetime,
    actor: Actor,
    now: datetime,
) -> Booking:
    """Reschedule for a form that may be submitted twice: no change if the time is already right.

    The second submission waits for the lock of the first and finds the booking moved.
    """
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if (booking.event.start, booking.event.end) == (start, end):
            return booking
        return reschedule_booking(
            app=app,
            booking_id=booking_id,
            start=start,
            end=end,
            calendar=None,
            actor=actor,
            now=now,
        )


def customer_may_move(booking: Booking) -> bool:
    """Return whether the customer gets a link to reschedule.

    The booking needs a project without a `rescheduling_url` and must have reschedules left. Limits
    that depend on the time are checked when the link is followed.
    """
    return bool(movable_bookings([booking]))


def movable_bookings(bookings: Sequence[Booking]) -> list[Booking]:
    """Return the bookings that `customer_may_move` allows, with at most two queries."""
    movable = [booking for booking in bookings if has_move_link(booking)]
    used_up = _without_moves_left(movable)
    return [booking for booking in movable if booking not in used_up]


def has_move_link(booking: Booking) -> bool:
    """Return whether customers can move the booking at all, however often they have."""
    graph, project = GRAPHS[booking.graph], booking.project
    return (
        project is not None
        and not project.booking.get("rescheduling_url")
        and not (graph.is_group or graph.is_seat or graph.is_completed(booking.state))
    )


def check_may_move(booking: Booking, actor: Actor, now: datetime) -> None:
    """Raise the ActionNotAllowed, PolicyViolated or Forbidden that a reschedule would raise."""
    _check_may_move([booking], actor, now)


def _check_may_move(bookings: Sequence[Booking], actor: Actor, now: datetime) -> None:
    for booking in bookings:
        if booking.completed:
            raise ActionNotAllowed(booking, "reschedule")
        if booking.owner_booking_id:
            raise PolicyViolated("seat_moves_with_its_group", None)
        if actor.source in CUSTOMER_SOURCES:
            if booking.max_seats is not None:
                # A group's id is no secret: pages list groups.
                raise Forbidden(Message("Only the owner can move a group."))
            _check_notice_of_move(booking, now)
    if actor.source in CUSTOMER_SOURCES and (used_up := _without_moves_left(bookings)):
        raise PolicyViolated("max_reschedules", _most_reschedules(used_up[0]))


def _check_notice_of_move(booking: Booking, now: datetime) -> None:
    """Raise PolicyViolated, unless the customer is asked to move the booking."""
    try:
        check_notice(booking, "min_reschedule_time", now)
    except PolicyViolated:
        if not _with_open_offer([booking]):
            raise


def _with_open_offer(bookings: Sequence[Booking]) -> set[uuid.UUID]:
    """Return the ids of bookings whose customers were offered new times since the last move."""
    actions = StateChange.objects.filter(
        booking__in=bookings, action__in=(OFFER_NEW_TIMES, RESCHEDULE)
    )
    latest = dict(actions.order_by("id").values_list("booking", "action"))
    return {booking_id for booking_id, action in latest.items() if action == OFFER_NEW_TIMES}


def _without_moves_left(bookings: Sequence[Booking]) -> list[Booking]:
    """Return the bookings without reschedules left for customers; moves by staff do not count."""
    # Query the log only for bookings that were moved often enough at all.
    exhausted = [
        booking for booking in bookings if booking.reschedules >= _most_reschedules(booking)
    ]
    if not exhausted:
        return []
    moves = StateChange.objects.filter(
        booking__in=exhausted, action=RESCHEDULE, source__in=CUSTOMER_SOURCES
    )
    counts = dict(moves.order_by().values_list("booking").annotate(Count("id")))
    used_up = [
        booking for booking in exhausted if counts.get(booking.id, 0) >= _most_reschedules(booking)
    ]
    offered = _with_open_offer(used_up) if used_up else set()
    return [booking for booking in used_up if booking.id not in offered]


def _most_reschedules(booking: Booking) -> int:
    most = booking.project.settings.get("max_reschedules") if booking.project else None
    return MAX_MOVES_BY_CUSTOMER if most is None else most


def _targets(
    named: Booking, bookings: Sequence[Booking], start: datetime, end: datetime
) -> list[tuple[Booking, tuple[datetime, datetime]]]:
    """Return each booking with its new start and end.

    The starts of the others move by the same wall-clock difference, and their lengths, which are
    elapsed time, by the same difference. Raises Invalid if a time leaves the supported years.
    """
    zone_name = named.resource.timezone
    by_start = _resource_wall_time(start, zone_name) - _resource_wall_time(
        named.event.start, zone_name
    )
    by_length = (end - start) - _length(named)
    others = [booking for booking in bookings if booking is not named]
    return [
        (named, (start, end)),
        *((booking, _moved_times(booking, by_start, by_length)) for booking in others),
    ]


def _moved_times(
    booking: Booking, by_start: timedelta, by_length: timedelta
) -> tuple[datetime, datetime]:
    """Return the new times of a booking whose series moves. A start in a gap of the clock becomes
    the gap's end; a length of which nothing would be left stays as it is. Raises Invalid.
    """
    event = booking.event
    length = _length(booking) + by_length
    try:
        start = _shift_on_wall_clock(event.start, by_start, booking.resource.timezone)
        end = start + (length if length > timedelta() else _length(booking))
        return check_year(start), check_year(end)
    except (InstantError, OverflowError) as error:
        raise Invalid.at("start", "Must stay within the years 1970 to 2199.") from error


def _shift_on_wall_clock(instant: datetime, by: timedelta, zone_name: str) -> datetime:
    if not by:  # of two equal readings in autumn, the second one stays
        return instant
    return wall_to_utc_or_gap_end(_resource_wall_time(instant, zone_name) + by, zone_name)


def _length(booking: Booking) -> timedelta:
    return booking.event.end - booking.event.start


def _resource_wall_time(instant: datetime, zone_name: str) -> datetime:
    try:
        return wall_time(instant, zone_name)
    except InstantError as error:  # written without the services
        raise Invalid.at("resource_id", f"The resource's time zone: {error}") from error


def _plan_move(
    booking: Booking,
    times: tuple[datetime, datetime],
    target: BookingTarget,
) -> _Move:
    event, named = booking.event, None
    if target.others and target.named_calendar.id != event.calendar_id:
        if not (booking.project and booking.project.requires):
            raise Invalid.at("resource_id", "The resources of a mutual booking can't be changed.")
        named, target = target.named_calendar, target.at(event.calendar)
    allow_double_bookings = booking.allow_double_bookings
    if target.is_public:
        # The project's rules bind customers, whatever the owner allowed this booking.
        target.check_is_offered()
        allow_double_bookings = allow_double_bookings and target.allows_double_bookings
    time_request = target.time_request(
        *times,
        blocks=event.busy,
        allow_double_bookings=allow_double_bookings,
        rules=target.rules if booking.enforce_availability or target.is_public else None,
        event=event,
    )
    calendars = _replacements_of_deleted_calendars(booking, target)
    was = (event.start, event.end)
    return _Move(booking, target, time_request, was, _event_resource_ids(booking), named, calendars)


def _replacements_of_deleted_calendars(
    booking: Booking, target: BookingTarget
) -> dict[uuid.UUID, Calendar]:
    """A past booking may be in a deleted calendar. Its new time would show nowhere."""
    if target.named_calendar.id != booking.event.calendar_id:
        return {}
    deleted = [
        row.resource_id
        for row in event_with_companions(booking.event)
        if row.calendar.deleted_at is not None
    ]
    return first_own_calendars(deleted) if deleted else {}


def _add_live_busy(moves: list[_Move]) -> list[_Move]:
    """Add the connected calendars' live busy times to the moves, which are of one project."""
    checked = [move for move in moves if needs_live_check(move.time_request, move.target)]
    if not checked:
        return moves
    resource_ids = {
        resource_id
        for move in checked
        for resource_id in (move.target.named_calendar.resource_id, *move.target.others)
    }
    external_busy = fetch_live_busy_for(
        [move.time_request for move in checked], sorted(resource_ids)
    )
    return [
        replace(move, time_request=replace(move.time_request, external_busy=external_busy))
        if needs_live_check(move.time_request, move.target)
        else move
        for move in moves
    ]


def _choose_free_resources(moves: list[_Move]) -> list[_Move]:
    """Give moves of projects with requirements other resources where the present ones are taken,
    and where another one is named.
    """
    own = [row.id for move in moves for row in event_with_companions(move.booking.event)]
    return [
        _choose_other_resources(move, own)
        if move.target.project and move.target.project.requires
        else move
        for move in moves
    ]


def _choose_other_resources(move: _Move, own: Sequence[uuid.UUID]) -> _Move:
    """Return the move with free resources, of which those that are free now are kept.

    The same move if its resources are free, if it has a new calendar already, or if there is no
    choice. Raises Invalid if the named resource meets no requirement.
    """
    old, event = move.target, move.booking.event
    present = move.was_with
    if old.named_calendar.id != event.calendar_id:
        return move
    time_requests = [(move.time_request, old.query_of(move.time_request))]
    if move.named is None and find_first_refusal(time_requests, without=own) is None:
        return move
    new_target = old.at(None, fixed=FixedChoice(anywhere=move.named and move.named.resource_id))
    free = _free_resource_ids(move, new_target, own)
    if move.named:
        chosen = _with_named(new_target.requirements, present, move.named.resource_id)
        if not set(chosen) <= set(free):
            chosen = new_target.choose(free) or chosen  # else refused for the time of the named one
    else:
        chosen = new_target.choose(free) or []
    calendars = _calendars_of(move, chosen)
    if len(chosen) != len(present) or not set(chosen) - set(present) <= calendars.keys():
        return move
    new = old.at(calendars.get(chosen[0], event.calendar), others=chosen[1:])
    is_enforced, buffers = move.time_request.rules is not None, move.time_request.buffers
    rules = new.with_buffers(new.rules, buffers) if is_enforced else None
    return replace(
        move, target=new, time_request=replace(move.time_request, rules=rules), calendars=calendars
    )


def _free_resource_ids(
    move: _Move, target: BookingTarget, own: Sequence[uuid.UUID]
) -> list[uuid.UUID]:
    """Return the resources of all requirements that are free at the new time of the booking."""
    ids = resource_ids_of_requirements(target.requirements)
    rules = target.with_buffers(target.rules_of(ids), move.time_request.buffers)
    if move.time_request.rules is None:
        rules = without_rules(rules)
    free = find_free_resources(replace(move.time_request, holds=own), rules)
    return [resource.id for resource in free]


def _with_named(
    requirements: Sequence[Requirement], present: Sequence[uuid.UUID], named: uuid.UUID
) -> list[uuid.UUID]:
    """Return the present resources with the named one in the place of the first requirement that
    it meets. Raises Invalid.
    """
    if named in present:
        return list(present)
    places = [requirement.ids for requirement in requirements for _ in range(requirement.number)]
    position = next((number for number, ids in enumerate(places) if named in ids), None)
    if position is None or len(places) != len(present):
        raise Invalid.at("resource_id", "Fits no requirement of the project.")
    return [*present[:position], named, *present[position + 1 :]]


def _calendars_of(move: _Move, chosen: Collection[uuid.UUID]) -> dict[uuid.UUID, Calendar]:
    """Return the calendars of the chosen resources that are new, and of those in deleted ones."""
    present = {row.resource_id for row in event_with_companions(move.booking.event)}
    new = first_own_calendars([each for each in chosen if each not in present])
    named = {move.named.resource_id: move.named} if move.named else {}
    calendars = {**move.calendars, **new, **named}
    return {each: calendar for each, calendar in calendars.items() if each in chosen}


def _lock_resources_and_calendars(moves: Sequence[_Move]) -> dict[uuid.UUID, int]:
    """Lock the old and the new resources; return their capacities by id."""
    lock_paced_projects([move.booking for move in moves])
    resource_ids = set().union(*(move.resource_ids for move in moves))
    capacities = lock_resources(resource_ids)
    all_there = len(capacities) == len(resource_ids)
    calendars = {
        calendar.id: calendar
        for move in moves
        for calendar in (move.target.named_calendar, *move.calendars.values())
        if calendar.id != move.booking.event.calendar_id
    }
    if not all_there or (calendars and not lock_resources_of_calendars(calendars.values())):
        raise Invalid.at("resource_id", "The resource no longer exists.")
    return capacities


def _reserve_new_times(
    moves: Sequence[_Move],
    capacities: Mapping[uuid.UUID, int],
    requested: list[tuple[TimeRequest, BookingTarget]],
) -> None:
    """Reserve all new times; the moves ignore each other's old times."""
    for move in moves:
        event, main = move.booking.event, move.target.named_calendar
        event.calendar = move.calendars.get(main.resource_id, main)
        event.resource_id = main.resource_id
        for row, resource_id in zip(
            further_resource_events(event), move.target.others, strict=True
        ):
            if resource_id in move.calendars:
                row.calendar, row.resource_id = move.calendars[resource_id], resource_id
        for row in event.companions.all():
            if row.is_further_unit:
                row.calendar, row.resource_id = event.calendar, event.resource_id
    reserve_times(
        [(move.booking.event, move.time_request, move.target) for move in moves],
        capacities,
        requested=requested,
    )


def _check_customers(moves: Sequence[_Move], now: datetime) -> None:
    """Raise PolicyViolated if a customer would have too many bookings on a day."""
    moved = [move.booking for move in moves if move.time_request.rules]
    if moved:
        check_moved_bookings(moved[0].project, moved, now=now)


def _write(moves: Sequence[_Move], actor: Actor, now: datetime, message: str) -> None:
    """Write the bookings and their seats, which share the moved event."""
    by_id = {move.booking.id: move for move in moves}
    seats = lock_seats([move.booking for move in moves])
    reassignments = _reassignments(moves)
    transitions = []
    for booking in [*(move.booking for move in moves), *seats]:
        move = by_id[booking.owner_booking_id or booking.id]
        booking.event = move.booking.event
        if booking is move.booking:
            refill_place(booking, move.was)
        booking.resource_id = booking.event.resource_id
        booking.reschedules += 1
        booking.completes_at = completes_at_of(
            GRAPHS[booking.graph], booking.state, booking.event.end
        )
        if booking.event.start > now:
            booking.outcome = None  # the outcome referred to the old time
        booking.updated_at = transaction_start()
        change = new_change(booking, RESCHEDULE, booking.state, actor, now, message)
        notified_elsewhere = [OWNER] if booking.owner_booking_id else []
        transitions.append(
            Transition(
                booking,
                change,
                moved_from=move.was,
                reassigned=reassignments.get(move.booking.id),
                notified_elsewhere=notified_elsewhere,
            )
        )
    update_rows(
        [transition.booking for transition in transitions],
        ["resource", "reschedules", "completes_at", "outcome", "updated_at"],
    )
    reset_responses([each.booking for each in transitions if each.has_new_time])
    write_transitions(transitions)


def _event_resource_ids(booking: Booking) -> list[uuid.UUID]:
    event = booking.event
    return [row.resource_id for row in (event, *further_resource_events(event))]


def _reassignments(moves: Sequence[_Move]) -> dict[uuid.UUID, Reassignment]:
    """Return, by booking, the resources before and after, of moves that changed them."""
    changed = {
        move.booking.id: (move.was_with, _event_resource_ids(move.booking))
        for move in moves
        if set(move.was_with) != set(_event_resource_ids(move.booking))
    }
    if not changed:
        return {}
    ids = {each for before, after in changed.values() for each in (*before, *after)}
    resources = Resource.objects.in_bulk(ids)
    return {
        booking_id: Reassignment(
            [resources[each] for each in before], [resources[each] for each in after]
        )
        for booking_id, (before, after) in changed.items()
    }
