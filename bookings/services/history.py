"""Who did what, who is told of it, and when a booking completes by itself."""

import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import prefetch_related_objects

from bookings.graphs import Graph
from bookings.models import Booking, BookingNotification, Customer, StateChange
from scheduling.api.sql import insert_rows

COMPLETES_AFTER = timedelta(hours=1)


class Actor(NamedTuple):
    """Who changes a booking, through which door (one of StateChange.SOURCES)."""

    name: str
    source: str


TIMER = Actor(name="", source="timer")


class Edit(NamedTuple):
    """What was changed of a booking that keeps its state and its time.

    names: as its log line has them. readdressed: the customers with a new address; their old ones
    are `former_addresses`.
    """

    names: frozenset[str]
    readdressed: frozenset[uuid.UUID] = frozenset()
    former_addresses: Sequence[str] = ()


class Step:
    """One change of a booking, as it is told to the listeners inside its transaction.

    moved_from: the former start and end of a booking that was moved. edit: what was
    changed where nothing else was. unmailed: the recipients
    ("customer", "owner") that the mails of this step were switched off for. told: those who hear
    of it by another step: the owner of a group by its own booking's, not by each seat's.
    """

    def __init__(
        self,
        booking: Booking,
        change: StateChange,
        *,
        moved_from: tuple[datetime, datetime] | None = None,
        edit: Edit | None = None,
        unmailed: Collection[str] = (),
        told: Collection[str] = (),
        customers: Sequence[Customer] | None = None,
        notifications: Sequence[BookingNotification] | None = None,
    ) -> None:
        self.booking = booking
        self.change = change
        self.moved_from = moved_from
        self.edit = edit
        self.unmailed = unmailed
        self.told = told
        self._customers = customers
        self._notifications = notifications
        self._together: Sequence[Step] = [self]

    def take_with(self, steps: Sequence["Step"]) -> None:
        """What one of them reads is read for all at once: a group may have many seats."""
        self._together = steps

    @property
    def customers(self) -> Sequence[Customer]:
        if self._customers is None:
            self._customers = list(self._read("customers").customers.all())
        return self._customers

    @property
    def notifications(self) -> Sequence[BookingNotification]:
        if self._notifications is None:
            self._notifications = list(self._read("event_notifications").event_notifications.all())
        return self._notifications

    def _read(self, name: str) -> Booking:
        # Once for all of them: to find nothing left to read would take each step a look at all.
        if name not in getattr(self.booking, "_prefetched_objects_cache", ()):
            prefetch_related_objects([step.booking for step in self._together], name)
        return self.booking


Listener = Callable[[Sequence[Step]], None]
LISTENERS: list[Listener] = []


def listens(listener: Listener) -> Listener:
    """Have the function called with every step of every booking, in the step's transaction.

    Steps that are taken at once (of a group, a bulk, a series; all of one app) come together.
    """
    LISTENERS.append(listener)
    return listener


def completes_at_of(graph: Graph, state: str, end: datetime) -> datetime | None:
    return end + COMPLETES_AFTER if graph.is_live(state) else None


def expires_at_of(graph: Graph, state: str, now: datetime) -> datetime | None:
    """When a booking that has just come into `state` times out: while its payment is awaited."""
    wait = timedelta(seconds=settings.PAYMENT_TIMEOUT)
    return now + wait if graph.awaits_payment(state) else None


def new_change(
    booking: Booking,
    action: str,
    from_state: str,
    actor: Actor,
    now: datetime,
    message: str = "",
) -> StateChange:
    """The line of the booking's history, not written yet."""
    return StateChange(
        booking=booking,
        from_state=from_state,
        to_state=booking.state,
        action=action,
        actor=actor.name,
        source=actor.source,
        message=message,
        created_at=now,
    )


def write_steps(steps: Sequence[Step]) -> None:
    """Write the lines of history, and let every listener do its part: after all other rows."""
    insert_rows([step.change for step in steps])
    for step in steps:
        step.take_with(steps)
    for listener in LISTENERS:
        listener(steps)
