"""Apply actions to bookings, complete them, delete them: always under their locks."""

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.db.models import Q

from apps_config.models import App
from availability.models import Calendar, Event
from availability.reserve.checks import QueryOfPart, find_first_refusal, requests_of_event
from availability.reserve.events import (
    NO_STRETCHES,
    NotAvailable,
    SlotTaken,
    Stretches,
    TimeRequest,
    event_with_companions,
    free_events,
    further_resource_events,
    guarded_transaction,
    lock_resources,
    takes_time,
    write_times,
)
from availability.search.availability_query import AvailabilityQuery
from bookings.booking_target import BookingTarget
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS, OWNER
from bookings.models import Booking
from bookings.reports.recounts import request_recounts, request_recounts_of_customers
from bookings.services.errors import (
    ActionNotAllowed,
    PolicyViolated,
    ResourceDeleted,
    offer_alternatives,
)
from bookings.services.locks import (
    THIS,
    lock_booking,
    lock_bookings,
    lock_paced_projects,
    lock_seats,
    lock_together,
)
from bookings.services.transition_log import (
    TIMER,
    Actor,
    Transition,
    completes_at_of,
    expires_at_of,
    new_change,
    write_transitions,
)
from common.db.sql import update_rows
from common.db.updated_at import transaction_start
from common.errors import Invalid, is_outage
from common.time.durations import DurationError, elapsed_seconds

logger = logging.getLogger(__name__)

BATCH = 500  # due bookings that are read at once
MAX_TOGETHER = 100  # of which so many change in one transaction


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
    only_projects: Collection[uuid.UUID] | None = None,
) -> Booking:
    """Apply an action to a booking and its related bookings: all or none.

    `scope`, `with_bulk`, `only_resource`, `only_projects`: as in `lock_together`. Raises NotFound,
    ActionNotAllowed, PolicyViolated; if the next state blocks: ResourceDeleted, and SlotTaken or
    NotAvailable if the time is taken. Then the bookings stay unchanged.
    """
    requested: list[tuple[TimeRequest, BookingTarget]] = []
    try:
        with guarded_transaction():
            bookings = lock_together(
                app,
                booking_id,
                scope=scope,
                with_bulk=with_bulk,
                only_resource=only_resource,
                only_projects=only_projects,
            )
            for booking in bookings:
                if GRAPHS[booking.graph].next_state(booking.state, action) is None:
                    raise ActionNotAllowed(booking, action)
                if action in CUSTOMER_ACTIONS:
                    check_notice(booking, "min_cancel_time", now)
            _apply_transition(bookings, action, actor, now, message, requested=requested)
            return next(booking for booking in bookings if booking.id == booking_id)
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, *requested[-1])
        raise


def _apply_transition(
    bookings: Sequence[Booking],
    action: str,
    actor: Actor,
    now: datetime,
    message: str = "",
    *,
    requested: list[tuple[TimeRequest, BookingTarget]],
) -> None:
    """Reserve or free time as the next states require, and write the states; locks are held.

    Appends the time request that was refused, or the first one, to `requested`.
    """
    places = targets_of(bookings, now)
    takers = [booking for booking in bookings if _takes_time(booking, action, places[booking.id])]
    if takers:
        lock_paced_projects(takers)
        capacities = lock_resources(
            {resource_id for booking in takers for resource_id in _resource_ids(booking)}
        )
        for booking in takers:
            if not capacities.keys() >= _resource_ids(booking):
                raise ResourceDeleted(booking, action)
        time_requests = [_request_of(booking, places[booking.id]) for booking in takers]
        reserve_times(
            [
                (booking.event, time_request, places[booking.id])
                for booking, time_request in zip(takers, time_requests, strict=True)
            ],
            capacities,
            requested=requested,
        )
    transitions = [_make_transition(booking, action, actor, now, message) for booking in bookings]
    followers = _related_seats(bookings, action)
    transitions += [
        _make_transition(seat, follow, actor, now, message, notified_elsewhere=[OWNER])
        for seat, follow in followers
    ]
    free_events(
        [
            booking.event
            for booking in bookings
            if booking.owner_booking_id is None
            and takes_time(booking.event)
            and not _blocks(booking, places[booking.id])
        ]
    )
    update_rows(
        [transition.booking for transition in transitions],
        ["state", "completed", "completes_at", "expires_at", "updated_at"],
    )
    write_transitions(transitions)


def _resource_ids(booking: Booking) -> set[uuid.UUID]:
    return {event.resource_id for event in event_with_companions(booking.event)}


def _blocks(booking: Booking, target: BookingTarget) -> bool:
    return GRAPHS[booking.graph].blocks(booking.state, pending_blocks=target.pending_blocks)


def reserve_times(
    times: Sequence[tuple[Event, TimeRequest, BookingTarget]],
    capacities: Mapping[uuid.UUID, int],
    *,
    requested: list[tuple[TimeRequest, BookingTarget]],
    stretches: Stretches = NO_STRETCHES,
) -> None:
    """Check the time requests of events in order and write their times: all or none.

    stretches: new ones of the events of steps. capacities: of the resources, whose locks the caller
    holds. Raises SlotTaken or NotAvailable.
    Appends the refused request and its target to `requested`; without a refusal, the first.
    """
    own = [row.id for event, _, _ in times for row in event_with_companions(event)]
    known: dict[QueryOfPart, AvailabilityQuery] = {}
    requests = [
        requests_of_event(event, time_request, target.query_of(time_request), known, stretches)
        for event, time_request, target in times
    ]
    refused = find_first_refusal(requests, without=own)
    number, refusal = refused or (0, None)
    requested.append(times[number][1:])
    if refusal:
        raise refusal
    write_times([(event, time_request) for event, time_request, _ in times], capacities, stretches)


def _takes_time(booking: Booking, action: str, target: BookingTarget) -> bool:
    graph = GRAPHS[booking.graph]
    state = graph.next_state(booking.state, action) or booking.state
    return graph.blocks(state, pending_blocks=target.pending_blocks) and not takes_time(
        booking.event
    )


def _related_seats(bookings: Sequence[Booking], action: str) -> list[tuple[Booking, str]]:
    """Return the seats of the groups among `bookings` that follow the action, with their action."""
    owners = [booking for booking in bookings if GRAPHS[booking.graph].seats_follow.get(action)]
    follows: dict[uuid.UUID | None, str] = {
        owner.id: GRAPHS[owner.graph].seats_follow[action] for owner in owners
    }
    return [
        (seat, follows[seat.owner_booking_id])
        for seat in lock_seats(owners)
        if GRAPHS[seat.graph].next_state(seat.state, follows[seat.owner_booking_id])
    ]


def _make_transition(
    booking: Booking,
    action: str,
    actor: Actor,
    now: datetime,
    message: str,
    notified_elsewhere: Collection[str] = (),
) -> Transition:
    """Put the booking into its next state, unsaved, and return the transition."""
    graph, from_state = GRAPHS[booking.graph], booking.state
    action = graph.canonical_action(from_state, action)
    booking.state = graph.steps[from_state, action]
    booking.completed = graph.is_completed(booking.state)
    booking.completes_at = completes_at_of(graph, booking.state, booking.event.end)
    booking.expires_at = expires_at_of(graph, booking.state, booking.project, transaction_start())
    booking.updated_at = transaction_start()
    change = new_change(booking, action, from_state, actor, now, message)
    return Transition(booking, change, notified_elsewhere=notified_elsewhere)


def targets_of(
    bookings: Sequence[Booking],
    now: datetime,
    calendar: Calendar | None = None,
    *,
    is_public: bool = False,
) -> dict[uuid.UUID, BookingTarget]:
    """Return the target of each booking: its present one, or in `calendar`.

    Bookings with the same resources share a target, whose rules are read once.
    """
    shared: dict[tuple[Any, ...], BookingTarget] = {}
    places = {}
    for booking in bookings:
        target = target_of(booking, now, calendar, is_public=is_public)
        kind = booking.project_id, target.is_group, target.quantity, target.party_size
        key = (*kind, target.named_calendar.id, *target.others)
        places[booking.id] = shared.setdefault(key, target)
    return places


def target_of(
    booking: Booking,
    now: datetime,
    calendar: Calendar | None = None,
    *,
    is_public: bool = False,
) -> BookingTarget:
    """Return the booking's target: its present one, or in `calendar`."""
    event = booking.event
    others = [companion.resource_id for companion in further_resource_events(event)]
    return BookingTarget(
        app=booking.app,
        project=booking.project,
        calendar=calendar or event.calendar,
        now=now,
        others=others,
        is_public=is_public,
        is_group=GRAPHS[booking.graph].is_group,
        requires=booking.requires,
        steps=booking.visit,
        quantity=booking.units,
        party_size=booking.party_size,
        is_new=False,
    )


def _request_of(booking: Booking, target: BookingTarget) -> TimeRequest:
    """Return a request for the booking's own time, to check against later bookings."""
    return target.time_request(
        booking.event.start,
        booking.event.end,
        blocks=True,
        allow_double_bookings=booking.allow_double_bookings,
        rules=target.conflict_rules if booking.enforce_availability else None,
        event=booking.event,
    )


def check_notice(booking: Booking, policy: str, now: datetime) -> None:
    """Raise PolicyViolated if less than the minimum notice is left before the start.

    The minimum of a seat's group takes precedence over that of the project.
    """
    own = booking.owner_booking.policies if booking.owner_booking else {}
    of_project = booking.project.settings if booking.project else {}
    limit = own.get(policy) or of_project.get(policy)
    if limit is None:
        return
    try:
        notice = timedelta(seconds=elapsed_seconds(limit))
    except DurationError as error:  # written without the services
        raise Invalid.at(f"settings.{policy}", f"The project's {policy}: {error}") from error
    if now > booking.event.start - notice:
        raise PolicyViolated(policy, limit)


def delete_completed_booking(*, app: App, booking_id: uuid.UUID, now: datetime) -> None:
    """Hide a completed booking everywhere; its rows stay. Raises NotFound, ActionNotAllowed."""
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        if not booking.completed:
            raise ActionNotAllowed(booking, "delete")
        booking.deleted_at, booking.updated_at = transaction_start(), transaction_start()
        booking.save(update_fields=["deleted_at", "updated_at"])
        request_recounts(app.id, [booking.event.start])
        addresses = booking.customers.exclude(address="").values_list("address", flat=True)
        request_recounts_of_customers(app.id, addresses, without=[booking.id])


def complete_ended(*, now: datetime, on_full_batch: Callable[[], object] | None = None) -> int:
    """Complete live bookings that ended an hour ago; return their number.

    on_full_batch: is called once if there may be enough work for another process.
    """
    return _act_when_due("completes_at", lambda booking: "complete", now, on_full_batch)


def expire_bookings(*, now: datetime, on_full_batch: Callable[[], object] | None = None) -> int:
    """Time out overdue payments and decline requests without an answer; return their number."""
    return _act_when_due("expires_at", _expiry_action, now, on_full_batch)


def _expiry_action(booking: Booking) -> str:
    return GRAPHS[booking.graph].expiry_action(booking.state)


ActionOf = Callable[[Booking], str]


def _act_when_due(
    column: str, action_of: ActionOf, now: datetime, on_full_batch: Callable[[], object] | None
) -> int:
    """Apply its action to each booking that is due by `column`; return their number.

    Concurrent runs share the work: each run omits the bookings that another run has locked. A
    booking that fails does not stop the others. It stays due, and each run tries it once.
    """
    done = 0
    for number, due in enumerate(_due_bookings(column, now)):
        if number == 0 and len(due) == BATCH and on_full_batch:
            on_full_batch()
        done += sum(
            _act_on_batch(bookings, column, action_of, now)
            for bookings in _transaction_batches(due)
        )
    return done


def _due_bookings(column: str, now: datetime) -> Iterator[list[Booking]]:
    """Yield batches of the due bookings with their apps, ordered by `column`."""
    due = Booking.objects.filter(**{f"{column}__lte": now}, deleted_at=None)
    shown = (column, "app", "series", "max_seats")
    rows = due.select_related("app").only(*shown).order_by(column, "id")
    bookings = list(rows[:BATCH])
    while bookings:
        yield bookings
        target = getattr(bookings[-1], column)
        passed = Q(**{column: target}, id__lte=bookings[-1].id)
        bookings = list(rows.filter(**{f"{column}__gte": target}).exclude(passed)[:BATCH])


def _transaction_batches(due: Sequence[Booking]) -> Iterator[Sequence[Booking]]:
    """Yield the bookings of one transaction each.

    The bookings of a transaction are of one app. A group has a transaction of its own, because its
    seats are locked after it. Bookings of a series have separate transactions, because in one
    transaction they would get one mail together.
    """
    together: dict[tuple[Any, ...], list[Booking]] = {}
    occurrences: Counter[uuid.UUID] = Counter()
    for booking in due:
        group = booking.id if booking.max_seats is not None else None
        number = occurrences[booking.series_id] if booking.series_id else 0
        if booking.series_id:
            occurrences[booking.series_id] += 1
        together.setdefault((booking.app_id, group, number), []).append(booking)
    for bookings in together.values():
        for first in range(0, len(bookings), MAX_TOGETHER):
            yield bookings[first : first + MAX_TOGETHER]


def _act_on_batch(
    bookings: Sequence[Booking], column: str, action_of: ActionOf, now: datetime
) -> int:
    """Apply the actions in one transaction; if that fails, to each booking in its own."""
    try:
        ids = [booking.id for booking in bookings]
        return _act_if_due(bookings[0].app, ids, column, action_of, now)
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        if is_outage(error):
            raise  # an outage affects all bookings
        if len(bookings) == 1:
            logger.exception("booking %s is not changed by the clock: %s", bookings[0].id, column)
            return 0
    return sum(_act_on_batch([booking], column, action_of, now) for booking in bookings)


def _act_if_due(
    app: App, booking_ids: Collection[uuid.UUID], column: str, action_of: ActionOf, now: datetime
) -> int:
    """Apply the actions to bookings that are still due under their locks; return their number."""
    with transaction.atomic():
        locked = lock_bookings(app, booking_ids, skip_locked=True)
        # The others were paid, cancelled, moved or deleted since the query.
        due = [booking for booking in locked if (at := getattr(booking, column)) and at <= now]
        for action in sorted({action_of(booking) for booking in due}):
            together = [booking for booking in due if action_of(booking) == action]
            _apply_transition(together, action, TIMER, now, requested=[])
        return len(due)
