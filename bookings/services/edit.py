"""Change what a booking says: its customers, the words of its event, its meta, its outcome."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from apps_config.models import App
from availability.placement import EVENT_WORDS, describe_event
from bookings.graphs import GRAPHS, OWNER
from bookings.models import Booking, Customer
from bookings.services.history import Actor, Edit, Step, new_change, write_steps
from bookings.services.locks import lock_booking, lock_seats
from scheduling.api.changes import transaction_start
from scheduling.api.errors import Invalid
from scheduling.api.merging import merge_free
from scheduling.api.sql import update_rows

UPDATE = "update"
CUSTOMER_VALUES = ("name", "email", "phone", "voip", "timezone")


def change_booking(
    *, app: App, booking_id: uuid.UUID, changes: Mapping[str, Any], actor: Actor, now: datetime
) -> Booking:
    """Change a booking by the keys of PUT /bookings/:id; shapes are checked.

    `customers`: by `id`, else by position; only what is given of one changes. `what`, `where`,
    `description`: of a group they are its seats' too. Keys of a `meta` are merged, null removes
    one. What is as it was leaves no line in the history. Raises NotFound; Invalid: no such
    customer, a seat's own words, too big a meta, an outcome of what does not take place or has not
    begun.
    """
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        edit = _Edit(booking)
        edit.customers(changes.get("customers", ()), path=changes.get("customers_path", ""))
        edit.event({name: changes[name] for name in EVENT_WORDS if name in changes})
        edit.own(changes, now)
        booking.updated_at = transaction_start()
        seats = lock_seats([booking]) if edit.words else []
        for seat in seats:
            seat.updated_at = transaction_start()
        update_rows([booking], ["meta", "outcome", "updated_at"])
        if seats:
            update_rows(seats, ["updated_at"])
        if edit.names:
            write_steps(_steps(booking, seats, edit, actor, now))
    return booking


def _steps(
    booking: Booking, seats: Sequence[Booking], edit: "_Edit", actor: Actor, now: datetime
) -> list[Step]:
    names = frozenset(edit.names)
    own = Edit(names, frozenset(edit.readdressed), tuple(edit.former_addresses))
    steps = [Step(booking, _change(booking, names, actor, now), edit=own)]
    words = frozenset(edit.words)
    steps += [
        Step(seat, _change(seat, words, actor, now), edit=Edit(words), told=[OWNER])
        for seat in seats
    ]
    return steps


def _change(booking: Booking, names: frozenset[str], actor: Actor, now: datetime) -> Any:
    message = f"Changed: {', '.join(sorted(names))}."
    return new_change(booking, UPDATE, booking.state, actor, now, message)


@dataclass
class _Edit:
    """What changes of a booking that is under lock. names: of what has changed; words: of the event
    among them; readdressed: customers with a new address."""

    booking: Booking
    names: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    readdressed: set[uuid.UUID] = field(default_factory=set)
    former_addresses: list[str] = field(default_factory=list)

    def customers(self, given: Sequence[Mapping[str, Any]], *, path: str) -> None:
        rows = list(self.booking.customers.all()) if given else []
        by_id = {row.id: row for row in rows}
        seen: set[uuid.UUID] = set()
        for position, values in enumerate(given):
            place = path or f"customers.{position}"
            row = by_id.get(values["id"]) if "id" in values else None
            if "id" not in values and position < len(rows):
                row = rows[position]
            if row is None:
                at = f"{place}.id" if "id" in values else place
                raise Invalid.at(at, "The booking has no such customer.")
            if row.id in seen:
                raise Invalid.at(place, "Stands here twice.")
            seen.add(row.id)
            self._customer(row, values, place)

    def _customer(self, row: Customer, values: Mapping[str, Any], place: str) -> None:
        wanted = {name: values[name] for name in CUSTOMER_VALUES if name in values}
        if "meta" in values:
            wanted["meta"] = merge_free(row.meta, values["meta"], path=f"{place}.meta")
        changed = {name: value for name, value in wanted.items() if value != getattr(row, name)}
        if not changed:
            return
        if "email" in changed and changed["email"].lower() != row.email.lower():
            self.readdressed.add(row.id)
            self.former_addresses.append(row.email)
        for name, value in changed.items():
            setattr(row, name, value)
        row.save(update_fields=list(changed))
        self.names |= {f"customer {name}" for name in changed}

    def event(self, given: Mapping[str, str]) -> None:
        event = self.booking.event
        words = {name: value for name, value in given.items() if value != getattr(event, name)}
        if words and self.booking.owner_booking_id:
            raise Invalid({name: ["Belongs to the group: change its booking."] for name in words})
        self.words = set(words)
        self.names |= self.words
        if words or any(name.startswith("customer ") for name in self.names):
            # Feeds and copies of the calendar name customers too.
            describe_event(event, words)

    def own(self, changes: Mapping[str, Any], now: datetime) -> None:
        booking = self.booking
        meta = merge_free(booking.meta, changes.get("meta", {}), path="meta")
        outcome = changes.get("outcome", booking.outcome)
        if outcome is not None and outcome != booking.outcome:
            _check_has_outcome(booking, now)
        self.names |= {"meta"} if meta != booking.meta else set()
        self.names |= {"outcome"} if outcome != booking.outcome else set()
        booking.meta, booking.outcome = meta, outcome


def _check_has_outcome(booking: Booking, now: datetime) -> None:
    if not GRAPHS[booking.graph].takes_place(booking.state):
        raise Invalid.at("outcome", f"A booking that is {booking.state} has none.")
    if now < booking.event.start:
        raise Invalid.at("outcome", "The booking has not begun yet.")
