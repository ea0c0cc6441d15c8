"""Reschedule bookings, under the locks of the bookings and their resources."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count

from apps_config.models import App
from availability.core.matching import (
    NOTHING_FIXED,
    Alternatives,
    FixedChoice,
    Requirement,
    Stretch,
    choose,
)
from availability.models import Calendar, Event, Resource
from availability.reserve.checks import (
    check_party,
    find_first_refusal,
    find_free_for_requirements,
    requests_of_event,
)
from availability.reserve.events import (
    NotAvailable,
    SlotTaken,
    Stretches,
    TimeRequest,
    event_with_companions,
    further_resource_events,
    guarded_transaction,
    lock_resources,
    lock_resources_of_calendars,
    takes_time,
)
from availability.reserve.policies import first_own_calendars, without_rules
from availability.search.availability_query import SearchResource
from availability.search.fair_turns import with_costs
from availability.search.requirements import (
    check_fixed,
    requirements_for_party,
    resource_ids_of_requirements,
    stretches_of,
)
from availability.search.visits import requirements_of
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
    REASSIGN,
    RESCHEDULE,
    Actor,
    Reassignment,
    Transition,
    completes_at_of,
    new_change,
    write_transitions,
)
from bookings.services.transitions import check_notice, reserve_times, targets_of
from bookings.services.visit_moves import (
    VisitMove,
    arrange_step,
    arrange_visit,
    is_visit,
    span_with_step,
)
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


class StepStart(NamedTuple):
    """A step of a visit, and its new start; None: the same."""

    name: str
    start: datetime | None


NamedResources = Mapping[str, tuple[uuid.UUID, ...]]
NO_RESOURCES: NamedResources = {}


@dataclass(frozen=True, slots=True)
class _Move:
    """One booking, its target, its time request, its former start and end, and its former resources
    with the main one first, and the names of the requirements that they met.

    fixed: resources that must meet the requirements; named: a calendar of one of them. calendars:
    those that the events move to, by resource, where it is not the present one. stretches: new ones
    of the steps of a visit.
    """

    booking: Booking
    target: BookingTarget
    time_request: TimeRequest
    was: tuple[datetime, datetime]
    was_with: Sequence[uuid.UUID]
    was_for: Sequence[str | None]
    named: Calendar | None = None
    fixed: FixedChoice = NOTHING_FIXED
    calendars: Mapping[uuid.UUID, Calendar] = field(default_factory=dict)
    stretches: Stretches = field(default_factory=dict)

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
    resources: NamedResources = NO_RESOURCES,
    step: StepStart | None = None,
) -> Booking:
    """Move a booking to another time, to another calendar if one is given, or to other resources.

    step: moves this step of a visit alone; start and end do not count. resources: by the name of
    their requirement; without requirements, by the id of the present resource. Only what is named
    changes; the others stay where they are free. With requirements, the calendar's resource takes
    the place of the one that meets the same requirement. A wider `scope` also moves the booking's
    series by the same wall-clock difference: all or none. Checked like a new booking, by the
    booking's own settings. Raises NotFound, ActionNotAllowed (completed), PolicyViolated, Forbidden
    (a customer moves a group), Invalid (a named resource meets no requirement, a calendar for a
    mutual booking); SlotTaken or NotAvailable: the old times are kept.
    """
    requested: list[tuple[TimeRequest, BookingTarget]] = []
    try:
        with guarded_transaction():
            bookings = lock_together(app, booking_id, scope=scope, only_resource=only_resource)
            named = next(booking for booking in bookings if booking.id == booking_id)
            _check_may_move(bookings, actor, now)
            by_customer = actor.source in CUSTOMER_SOURCES
            if step:
                _check_step(named, scope)
                start, end = span_with_step(named, step.name, step.start)
            places = targets_of(bookings, now, calendar, is_public=by_customer)
            moves = [
                _plan_move(booking, times, places[booking.id], resources)
                for booking, times in _targets(named, bookings, start, end)
            ]
            moves = _choose_free_resources(_add_live_busy(moves), step)
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
    resources: NamedResources,
) -> _Move:
    event, named, fixed = booking.event, None, NOTHING_FIXED
    if target.others and target.named_calendar.id != event.calendar_id:
        if not (target.has_requirements or is_visit(booking)):
            raise Invalid.at("resource_id", "The resources of a mutual booking can't be changed.")
        named, target = target.named_calendar, target.at(event.calendar)
    if target.has_requirements or is_visit(booking):
        fixed = FixedChoice(resources, named and named.resource_id)
        resources = {}
    calendars = _replacements_of_deleted_calendars(booking, target)
    if resources:
        replaced = _replacements(booking, resources)
        calendars |= {new.resource_id: new for new in replaced.values()}
        main, *others = [
            replaced[each].resource_id if each in replaced else each
            for each in _event_resource_ids(booking)
        ]
        target = target.at(calendars.get(main, target.named_calendar), others=others)
    allow_double_bookings = booking.allow_double_bookings
    if target.is_public:
        # The project's rules bind customers, whatever the owner allowed this booking.
        target.check_is_offered()
        allow_double_bookings = allow_double_bookings and target.allows_double_bookings
    time_request = target.time_request(
        *times,
        blocks=takes_time(event),
        allow_double_bookings=allow_double_bookings,
        rules=target.rules if booking.enforce_availability or target.is_public else None,
        event=event,
    )
    was, was_with = (event.start, event.end), _event_resource_ids(booking)
    was_for = _requirement_names(booking)
    return _Move(booking, target, time_request, was, was_with, was_for, named, fixed, calendars)


def _replacements(booking: Booking, resources: NamedResources) -> dict[uuid.UUID, Calendar]:
    """Return the calendars of the resources that replace present ones, by these. Raises Invalid."""
    present = _event_resource_ids(booking)
    ids = {new_id for new_ids in resources.values() for new_id in new_ids}
    own = Resource.objects.for_app(booking.app_id).filter(id__in=ids)
    calendars = first_own_calendars(own.values_list("id", flat=True))
    replaced: dict[uuid.UUID, Calendar] = {}
    for name, new_ids in resources.items():
        path, known = f"resources.{name}", {str(each): each for each in present}
        if name not in known:
            raise Invalid.at(path, "The booking has no such resource.")
        if len(new_ids) != 1 or new_ids[0] not in calendars:
            raise Invalid.at(path, "There is no such resource.")
        if new_ids[0] in present or calendars[new_ids[0]] in replaced.values():
            raise Invalid.at(path, "The booking has this resource already.")
        replaced[known[name]] = calendars[new_ids[0]]
    return replaced


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


def _choose_free_resources(moves: list[_Move], step: StepStart | None) -> list[_Move]:
    """Give moves of bookings with requirements other resources where the present ones are taken,
    and where others are named; arrange the steps of visits.
    """
    own = [row.id for move in moves for row in event_with_companions(move.booking.event)]
    return [
        _arrange_visit(move, own, step)
        if is_visit(move.booking)
        else _choose_other_resources(move, own)
        if move.target.has_requirements
        else move
        for move in moves
    ]


def _check_step(booking: Booking, scope: str) -> None:
    """Raise Invalid unless the booking is a visit that is moved alone."""
    if not is_visit(booking):
        raise Invalid.at("step", "The booking has no steps.")
    if scope != THIS:
        raise Invalid.at("scope", "A step is moved alone.")


def _arrange_visit(move: _Move, own: Sequence[uuid.UUID], step: StepStart | None) -> _Move:
    """Return the move with a place for each step. Raises SlotTaken, NotAvailable or Invalid."""
    old = move.target
    open_target = old.at(None, fixed=move.fixed)
    if open_target.visit is None:
        raise Invalid.at("start", "The steps of the project have changed since.")
    check_fixed(requirements_of(open_target.visit), move.fixed)
    is_enforced, buffers = move.time_request.rules is not None, move.time_request.buffers
    visit_move = VisitMove(move.booking, open_target, move.time_request, own, is_enforced)
    if step:
        arranged = arrange_step(visit_move, step.name, step.start)
    else:
        arranged = arrange_visit(visit_move)
    new = old.at(arranged.calendars[arranged.resource_id], others=arranged.others)
    rules = new.with_buffers(new.rules, buffers) if is_enforced else None
    time_request = replace(move.time_request, start=arranged.start, end=arranged.end, rules=rules)
    return replace(
        move,
        target=new,
        time_request=time_request,
        calendars=arranged.calendars,
        stretches=arranged.stretches,
    )


def _choose_other_resources(move: _Move, own: Sequence[uuid.UUID]) -> _Move:
    """Return the move with free resources, of which those that are free now are kept.

    The same move if its resources are free, if it has a new calendar already, or if the project
    requires something else by now. If there is no choice, the named resources, whose time is then
    refused. Raises Invalid if a named resource meets no requirement.
    """
    old, event = move.target, move.booking.event
    if old.named_calendar.id != event.calendar_id:
        return move
    requests = requests_of_event(event, move.time_request, old.query_of(move.time_request), {})
    if move.fixed == NOTHING_FIXED and find_first_refusal([requests], without=own) is None:
        return move
    new_target = old.at(None, fixed=move.fixed)
    _check_fixed(new_target)
    rows = event_with_companions(event)
    is_enforced, buffers = move.time_request.rules is not None, move.time_request.buffers
    required = new_target.candidate_query(enforced=is_enforced).alternatives
    alternatives = with_costs(required, old.project, move.fixed, now=old.now)
    alternatives = [_preferring_present(each, rows) for each in _as_booked(alternatives, rows)]
    free = _free_resources(move, new_target, own)
    chosen = choose(alternatives, free, move.fixed)
    if chosen is None and move.fixed == NOTHING_FIXED:
        return move
    if chosen is None:
        for_any_party = requirements_for_party(alternatives, None)
        chosen = choose(for_any_party, stretches_of(alternatives), move.fixed)
    if chosen is None or len(chosen) != len(rows):
        raise Invalid.at("resources", "No other resources fit the requirements.")
    ids = [each.id for each in chosen]
    if is_enforced:
        check_party(new_target.rules, ids)
    calendars = _calendars_of(move, ids)
    if not set(ids) - set(move.was_with) <= calendars.keys():
        return move
    new = old.at(calendars.get(ids[0], event.calendar), others=ids[1:])
    rules = new.with_buffers(new.rules, buffers) if is_enforced else None
    return replace(
        move, target=new, time_request=replace(move.time_request, rules=rules), calendars=calendars
    )


def _check_fixed(target: BookingTarget) -> None:
    check_fixed(target.alternatives, target.fixed)
    anywhere = target.fixed.anywhere
    if anywhere and anywhere not in resource_ids_of_requirements(target.alternatives):
        raise Invalid.at("resource_id", "Fits no requirement of the project.")


def _as_booked(alternatives: Alternatives, rows: Sequence[Event]) -> Alternatives:
    """Return the requirements that the events were made for, none of them optional; all, if the
    events do not say for which.
    """
    names = Counter(row.requirement for row in rows)
    if None in names:
        return alternatives
    booked = [
        [each._replace(optional=False) for each in requirements if each.name in names]
        for requirements in alternatives
    ]
    return [
        requirements
        for requirements in booked
        if {each.name: each.number for each in requirements} == names
    ]


def _preferring_present(
    requirements: Sequence[Requirement], rows: Sequence[Event]
) -> Sequence[Requirement]:
    """Return the requirements with costs that make any other resource dearer than a present one."""
    present = {(row.requirement, row.resource_id) for row in rows}
    dearer = 1 + sum(cost for each in requirements for _, cost in each.ranked() if cost > 0)
    return [
        each._replace(
            costs=tuple(
                cost if {(each.name, resource_id), (None, resource_id)} & present else cost + dearer
                for resource_id, cost in each.ranked()
            )
        )
        for each in requirements
    ]


def _free_resources(
    move: _Move, target: BookingTarget, own: Sequence[uuid.UUID]
) -> dict[Stretch, dict[uuid.UUID, SearchResource]]:
    """Return the resources of all requirements that are free at the new time of the booking."""
    rules = target.with_buffers(target.rules, move.time_request.buffers)
    if move.time_request.rules is None:
        rules = without_rules(rules)
    return find_free_for_requirements(replace(move.time_request, holds=own), rules)


def _calendars_of(move: _Move, chosen: Sequence[uuid.UUID]) -> dict[uuid.UUID, Calendar]:
    """Return the calendars of the chosen resources that are new, of those that take over another
    requirement, and of those in deleted ones.
    """
    present = move.was_with
    new = first_own_calendars([each for each in chosen if each not in present])
    named = {move.named.resource_id: move.named} if move.named else {}
    own = {row.resource_id: row.calendar for row in event_with_companions(move.booking.event)}
    taking_over = {
        each: own[each]
        for each, before in zip(chosen, present, strict=True)
        if each != before and each in own
    }
    calendars = {**taking_over, **move.calendars, **new, **named}
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
        stretches={key: each for move in moves for key, each in move.stretches.items()},
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
        action = _action_of(move, reassignments)
        if action == RESCHEDULE:
            booking.reschedules += 1
        booking.completes_at = completes_at_of(
            GRAPHS[booking.graph], booking.state, booking.event.end
        )
        if booking.event.start > now:
            booking.outcome = None  # the outcome referred to the old time
        booking.updated_at = transaction_start()
        change = new_change(booking, action, booking.state, actor, now, message)
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


def _action_of(move: _Move, reassignments: Mapping[uuid.UUID, Reassignment]) -> str:
    """Return the action in the log: REASSIGN for a move that changed the resources alone."""
    event = move.booking.event
    is_same_time = move.was == (event.start, event.end)
    return REASSIGN if is_same_time and move.booking.id in reassignments else RESCHEDULE


def _event_resource_ids(booking: Booking) -> list[uuid.UUID]:
    event = booking.event
    return [row.resource_id for row in (event, *further_resource_events(event))]


def _requirement_names(booking: Booking) -> list[str | None]:
    return [row.requirement for row in (booking.event, *further_resource_events(booking.event))]


def _reassignments(moves: Sequence[_Move]) -> dict[uuid.UUID, Reassignment]:
    """Return, by booking, the resources before and after, of moves that changed them."""
    changed = [move for move in moves if move.was_with != _event_resource_ids(move.booking)]
    if not changed:
        return {}
    ids = {
        each for move in changed for each in (*move.was_with, *_event_resource_ids(move.booking))
    }
    resources = Resource.objects.in_bulk(ids)
    return {
        move.booking.id: Reassignment(
            [resources[each] for each in move.was_with],
            [resources[each] for each in _event_resource_ids(move.booking)],
            move.was_for,
            _requirement_names(move.booking),
            is_shown=_changes_shown_resource(move),
        )
        for move in changed
    }


def _changes_shown_resource(move: _Move) -> bool:
    """Return whether customers are told of the new resources: not of those for requirements that
    are not `shown`.
    """
    if not move.target.has_requirements:
        return True
    requirements = chain.from_iterable(move.target.policies.alternatives)
    is_shown: dict[str | None, bool] = {}
    for each in requirements:
        is_shown[each.name] = each.shown or is_shown.get(each.name, False)
    before = set(zip(move.was_with, move.was_for, strict=True))
    after = zip(_event_resource_ids(move.booking), _requirement_names(move.booking), strict=True)
    return any(is_shown.get(name, True) for _, name in before.symmetric_difference(after))
