"""The log of state changes, its listeners, and the due times of bookings."""

import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import prefetch_related_objects

from availability.models import Project, Resource
from bookings.graphs import Graph
from bookings.models import Booking, BookingNotification, Customer, RecountRequest, StateChange
from common.db.ids import id_after
from common.db.sql import insert_rows
from common.hooks import Hook
from common.time.durations import elapsed_seconds

COMPLETES_AFTER = timedelta(hours=1)
# Actions in the log of a booking that keeps its state.
RESCHEDULE, REASSIGN, UPDATE = "reschedule", "reassign", "update"
OFFER_NEW_TIMES, MESSAGE = "offer_new_times", "message"
RESPONSE = "response"


class Actor(NamedTuple):
    """Who changes a booking, and by which entry point (one of StateChange.SOURCES)."""

    name: str
    source: str


TIMER = Actor(name="", source="timer")


class Edit(NamedTuple):
    """The changes of a booking that keeps its state and time.

    names: the changed fields, as in the log entry. readdressed: ids of customers with a new
    address; their old addresses are `former_addresses`.
    """

    names: frozenset[str]
    readdressed: frozenset[uuid.UUID] = frozenset()
    former_addresses: Sequence[str] = ()


class Reassignment(NamedTuple):
    """The resources of a booking before and after its move, the main one first.

    names_before, names_after: of the requirements that they meet; None without. is_shown: whether
    one changed that customers are told of.
    """

    before: Sequence[Resource]
    after: Sequence[Resource]
    names_before: Sequence[str | None]
    names_after: Sequence[str | None]
    is_shown: bool = True

    @property
    def joined(self) -> list[Resource]:
        return [resource for resource in self.after if resource not in self.before]

    @property
    def left(self) -> list[Resource]:
        return [resource for resource in self.before if resource not in self.after]

    @property
    def replaced(self) -> list[tuple[Resource, Resource]]:
        """Each resource that left, with the one that took its place: for the same requirement."""
        pairs = []
        joined = [
            (name, resource)
            for name, resource in zip(self.names_after, self.after, strict=True)
            if resource not in self.before
        ]
        for name, former in zip(self.names_before, self.before, strict=True):
            if former not in self.after and joined:
                found = next((each for each in joined if each[0] == name), joined[0])
                joined.remove(found)
                pairs.append((former, found[1]))
        return pairs


class Transition:
    """One change of a booking, as passed to the listeners inside its transaction.

    moved_from: the former start and end of a rescheduled booking. reassigned: set if the move gave
    it other resources. edit: set if only fields changed.
    suppress_mail_to: recipients ("customer", "owner") that get no mail about this transition.
    notified_elsewhere: recipients notified by another transition: the owner's booking notifies a
    group's owner once, not each seat.
    is_first: the customers and notifications were written with the transition.
    """

    def __init__(
        self,
        booking: Booking,
        change: StateChange,
        *,
        moved_from: tuple[datetime, datetime] | None = None,
        reassigned: Reassignment | None = None,
        edit: Edit | None = None,
        suppress_mail_to: Collection[str] = (),
        notified_elsewhere: Collection[str] = (),
        customers: Sequence[Customer] | None = None,
        notifications: Sequence[BookingNotification] | None = None,
    ) -> None:
        self.booking = booking
        self.change = change
        self.moved_from = moved_from
        self.reassigned = reassigned
        self.edit = edit
        self.suppress_mail_to = suppress_mail_to
        self.notified_elsewhere = notified_elsewhere
        self._customers = customers
        self._notifications = notifications
        self._together: Sequence[Transition] = [self]
        self.is_first = customers is not None and notifications is not None

    @property
    def has_new_time(self) -> bool:
        """Whether the booking was moved to another time, not only to other resources."""
        event = self.booking.event
        return self.moved_from is not None and self.moved_from != (event.start, event.end)

    def share_prefetches_with(self, transitions: Sequence["Transition"]) -> None:
        """Share prefetches of customers and notifications among `transitions` (seats are many)."""
        self._together = transitions

    @property
    def customers(self) -> Sequence[Customer]:
        if self._customers is None:
            self._customers = list(self._booking_with("customers").customers.all())
        return self._customers

    @property
    def notifications(self) -> Sequence[BookingNotification]:
        if self._notifications is None:
            self._notifications = list(
                self._booking_with("event_notifications").event_notifications.all()
            )
        return self._notifications

    def _booking_with(self, relation: str) -> Booking:
        # Prefetch only if missing: else each transition would walk over all of them.
        if relation not in getattr(self.booking, "_prefetched_objects_cache", ()):
            prefetch_related_objects(
                [transition.booking for transition in self._together], relation
            )
        return self.booking


# Called with all transitions of a service call (group, bulk, series), inside its transaction. All
# are of one app.
on_transition = Hook[Callable[[Sequence[Transition]], None]]()


def completes_at_of(graph: Graph, state: str, end: datetime) -> datetime | None:
    return end + COMPLETES_AFTER if graph.is_live(state) else None


def expires_at_of(
    graph: Graph, state: str, project: Project | None, now: datetime
) -> datetime | None:
    """Return when a booking that enters `state` at `now` expires.

    None: no payment is awaited, and no answer for which the project sets `pending_expires`.
    """
    if graph.awaits_payment(state):
        return now + timedelta(seconds=settings.PAYMENT_TIMEOUT)
    wait = project.settings.get("pending_expires") if project else None
    if wait and graph.awaits_answer(state):
        return now + timedelta(seconds=elapsed_seconds(wait))
    return None


def new_change(
    booking: Booking,
    action: str,
    from_state: str,
    actor: Actor,
    now: datetime,
    message: str = "",
) -> StateChange:
    return StateChange(
        app_id=booking.app_id,
        booking=booking,
        from_state=from_state,
        to_state=booking.state,
        action=action,
        actor=actor.name,
        source=actor.source,
        message=message,
        created_at=now,
    )


def write_first_transitions(transitions: Sequence[Transition]) -> None:
    """Insert the first log entries of new bookings, their customers and their notifications, and
    call every listener. The bookings are inserted in this transaction.
    """
    insert_rows(
        [customer for transition in transitions for customer in transition.customers],
        [row for transition in transitions for row in transition.notifications],
        [transition.change for transition in transitions],
    )
    _notify_listeners(transitions)


def write_transitions(transitions: Sequence[Transition]) -> None:
    """Insert the log entries and call every listener, after all other rows are written."""
    _order_ids([transition.change for transition in transitions])
    insert_rows(
        [transition.change for transition in transitions],
        # Reports count the former day of a moved booking anew; the new one is its `updated_at`'s.
        [
            RecountRequest(app_id=transition.booking.app_id, at=transition.moved_from[0])
            for transition in transitions
            if transition.moved_from
        ],
    )
    _notify_listeners(transitions)


def write_log_entry(change: StateChange) -> None:
    """Insert a log entry of which no listener is told."""
    _order_ids([change])
    insert_rows([change])


def _notify_listeners(transitions: Sequence[Transition]) -> None:
    for transition in transitions:
        transition.share_prefetches_with(transitions)
    for listener in on_transition:
        listener(transitions)


def _order_ids(changes: Sequence[StateChange]) -> None:
    """Give later changes of a booking later ids, though another machine's clock may be ahead.

    The bookings are locked. Log and e-mails are in the order of these ids.
    """
    bookings = {change.booking_id for change in changes}
    earlier = StateChange.objects.filter(booking__in=bookings).order_by("id")
    latest = dict(earlier.values_list("booking_id", "id"))
    for change in changes:
        if change.booking_id in latest:
            change.id = id_after(latest[change.booking_id], change.app_id)
            latest[change.booking_id] = change.id
