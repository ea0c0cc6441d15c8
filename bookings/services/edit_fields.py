"""Change the fields of a booking: customers, event texts, meta, outcome."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps_config.models import App
from availability.reserve.events import EVENT_WORDS, guarded_transaction, update_event_details
from bookings.graphs import GRAPHS, OWNER
from bookings.models import Booking, Customer, StateChange
from bookings.reports.recounts import request_recounts_of_customers
from bookings.services.change_quantity import set_quantity
from bookings.services.create_seat import seat_guard
from bookings.services.customer_limits import check_new_bookings
from bookings.services.customer_notes import move_notes
from bookings.services.ended_seats import copy_events_of_ended_seats
from bookings.services.locks import lock_booking, lock_bookings, lock_seats
from bookings.services.seat_counts import taken_seats
from bookings.services.transition_log import (
    UPDATE,
    Actor,
    Edit,
    Transition,
    new_change,
    write_log_entry,
    write_transitions,
)
from bookings.services.where_placeholders import fill_placeholders
from common.api.merge_patch import merge_free
from common.db.sql import update_rows
from common.db.updated_at import transaction_start
from common.email_address import canonical_address
from common.errors import InUse, Invalid, NotFound, taken_external_id_is_refused
from common.messages import Message

NOTE = frozenset({"note"})
QUANTITY = "quantity"  # the name of the change
OUTCOME_BEFORE = timedelta(hours=1)  # staff record arrivals before the start
LINKS_ENDED = Message("The links in earlier e-mails no longer work.")
CUSTOMER_VALUES = ("external_id", "name", "email", "phone", "voip", "timezone")


def change_booking(
    *, app: App, booking_id: uuid.UUID, changes: Mapping[str, Any], actor: Actor, now: datetime
) -> Booking:
    """Change a booking by the keys of PUT /bookings/:id; shapes are checked.

    `customers`: matched by `id`, else by position; absent fields stay. A new address ends the links
    of earlier e-mails, which somebody else may have got. `what`, `where`,
    `description`: of a group they apply to its seats too. `meta` is merged; null removes a key.
    `external_id`: the booking's own. `max_seats`, `places`: of a group. `quantity`: units or seats,
    given back or taken. `note`: an internal one, whose change is a log entry alone: nobody gets an
    e-mail or call about it. Unchanged values add no log entry.

    Raises NotFound; AlreadyExists: a taken external id; InUse: more seats are taken; SlotTaken,
    NotAvailable, GroupFull: further units or seats are not free; ActionNotAllowed: their booking is
    completed; Invalid: no such customer, texts of a seat, no group, meta too big, an outcome for a
    booking that does not take place or that begins in more than an hour.
    """
    with seat_guard(), guarded_transaction():
        booking = _lock_with_group(app, booking_id) if "quantity" in changes else None
        booking = booking or lock_booking(app, booking_id)
        edit = _Edit(booking)
        edit.change_customers(changes.get("customers", ()), path=changes.get("customers_path", ""))
        edit.change_event_texts({name: changes[name] for name in EVENT_WORDS if name in changes})
        edit.change_meta_and_outcome(changes, now)
        if "quantity" in changes:
            edit.change_quantity(changes["quantity"], now)
        if "max_seats" in changes:
            edit.change_seats(changes["max_seats"], changes.get("places"), now)
        edit.change_external_id(changes)
        note_changes = "note" in changes and changes["note"] != booking.note
        if note_changes:
            booking.note = changes["note"]
        if edit.readdressed:
            booking.link_version += 1
            move_notes(booking.app_id, edit.new_addresses)
            addresses = {*edit.new_addresses, *edit.new_addresses.values()}
            request_recounts_of_customers(app.id, addresses, without=[booking.id])
        booking.updated_at = transaction_start()
        seats = lock_seats([booking]) if edit.words else []
        for seat in seats:
            seat.updated_at = transaction_start()
        with taken_external_id_is_refused("booking"):
            update_rows(
                [booking],
                [
                    *("meta", "note", "outcome", "untrusted_texts", "max_seats", "places"),
                    *("quantity", "external_id", "link_version", "updated_at"),
                ],
            )
        if edit.takes_more and (booking.enforce_availability or booking.owner_booking_id):
            emails = [customer.email for customer in booking.customers.all()]
            check_new_bookings(booking.project, [booking], emails, now=now)
        if seats:
            update_rows(seats, ["updated_at"])
        if note_changes:
            write_log_entry(_change(booking, NOTE, actor, now))
        if edit.names:
            write_transitions(_transitions_of_edit(booking, seats, edit, actor, now))
    return booking


def _lock_with_group(app: App, booking_id: uuid.UUID) -> Booking | None:
    """Lock a seat together with its group, in the order of their ids; None: it is no seat."""
    seats = Booking.objects.for_app(app).filter(id=booking_id, owner_booking__isnull=False)
    group_id = seats.values_list("owner_booking", flat=True).first()
    if group_id is None:
        return None
    locked = {booking.id: booking for booking in lock_bookings(app, [group_id, booking_id])}
    seat = locked.get(booking_id)
    if seat is None:
        raise NotFound("Booking")
    seat.owner_booking = locked.get(group_id, seat.owner_booking)
    return seat


def end_links(*, app: App, booking_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """End the links of all e-mails about the booking so far; nobody gets an e-mail.

    Raises NotFound.
    """
    with transaction.atomic():
        booking = lock_booking(app, booking_id)
        booking.link_version += 1
        booking.updated_at = transaction_start()
        update_rows([booking], ["link_version", "updated_at"])
        change = new_change(booking, UPDATE, booking.state, actor, now, LINKS_ENDED)
        write_transitions([Transition(booking, change, edit=Edit(frozenset({"links"})))])


def _transitions_of_edit(
    booking: Booking, seats: Sequence[Booking], edit: "_Edit", actor: Actor, now: datetime
) -> list[Transition]:
    names = frozenset(edit.names)
    own = Edit(names, frozenset(edit.readdressed), tuple(edit.former_addresses))
    transitions = [Transition(booking, _change(booking, names, actor, now), edit=own)]
    words = frozenset(edit.words)
    transitions += [
        Transition(
            seat, _change(seat, words, actor, now), edit=Edit(words), notified_elsewhere=[OWNER]
        )
        for seat in seats
    ]
    return transitions


def _change(booking: Booking, names: frozenset[str], actor: Actor, now: datetime) -> StateChange:
    message = f"Changed: {', '.join(sorted(names))}."
    return new_change(booking, UPDATE, booking.state, actor, now, message)


@dataclass
class _Edit:
    """The changes of a locked booking.

    names: all changed fields. words: the changed event texts. readdressed: ids of customers with a
    new address. new_addresses: old -> new, in canonical form.
    """

    booking: Booking
    names: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    readdressed: set[uuid.UUID] = field(default_factory=set)
    former_addresses: list[str] = field(default_factory=list)
    new_addresses: dict[str, str] = field(default_factory=dict)
    takes_more: bool = False

    def change_customers(self, given: Sequence[Mapping[str, Any]], *, path: str) -> None:
        rows = list(self.booking.customers.all()) if given else []
        by_id = {row.id: row for row in rows}
        seen: set[uuid.UUID] = set()
        for position, values in enumerate(given):
            target = path or f"customers.{position}"
            row = by_id.get(values["id"]) if "id" in values else None
            if "id" not in values and position < len(rows):
                row = rows[position]
            if row is None:
                at = f"{target}.id" if "id" in values else target
                raise Invalid.at(at, "The booking has no such customer.")
            if row.id in seen:
                raise Invalid.at(target, "This customer appears twice.")
            seen.add(row.id)
            self._change_customer(row, values, target)

    def _change_customer(self, row: Customer, values: Mapping[str, Any], target: str) -> None:
        new_values = {name: values[name] for name in CUSTOMER_VALUES if name in values}
        if "meta" in values:
            new_values["meta"] = merge_free(row.meta, values["meta"], path=f"{target}.meta")
        changed = {name: value for name, value in new_values.items() if value != getattr(row, name)}
        if not changed:
            return
        answer: Mapping[str, Any] = {}  # to forget, if another person gave it
        if "email" in changed and canonical_address(changed["email"]) != row.address:
            self.readdressed.add(row.id)
            self.former_addresses.append(row.email)
            self.new_addresses[row.address] = canonical_address(changed["email"])
            answer = Customer.NO_ANSWER
        for name, value in {**changed, **answer}.items():
            setattr(row, name, value)
        row.save(update_fields=[*changed, *answer, "address", "limit_key"])
        self.names |= {f"customer {name}" for name in changed}

    def change_event_texts(self, given: Mapping[str, str]) -> None:
        booking, event = self.booking, self.booking.event
        if given.get("where"):
            where = fill_placeholders(given["where"], booking.id, event.start, event.end)
            given = {**given, "where": where}
        words = {name: value for name, value in given.items() if value != getattr(event, name)}
        if words and self.booking.owner_booking_id:
            text = "Belongs to the group: change the group's booking."
            raise Invalid({name: [text] for name in words})
        self.words = set(words)
        self.names |= self.words
        if self.booking.is_public:
            # What the owner writes, customers may read.
            untrusted = self.booking.untrusted_texts or ()
            self.booking.untrusted_texts = [name for name in untrusted if name not in given]
        if words or any(name.startswith("customer ") for name in self.names):
            if words:
                copy_events_of_ended_seats([self.booking])
            # Feeds and mirrored events contain customers too.
            update_event_details(event, words)

    def change_meta_and_outcome(self, changes: Mapping[str, Any], now: datetime) -> None:
        booking = self.booking
        meta = merge_free(booking.meta, changes.get("meta", {}), path="meta")
        outcome = changes.get("outcome", booking.outcome)
        if outcome is not None and outcome != booking.outcome:
            _check_has_outcome(booking, now)
        self.names |= {"meta"} if meta != booking.meta else set()
        self.names |= {"outcome"} if outcome != booking.outcome else set()
        booking.meta, booking.outcome = meta, outcome

    def change_external_id(self, changes: Mapping[str, Any]) -> None:
        external_id = changes.get("external_id", self.booking.external_id)
        if external_id != self.booking.external_id:
            self.booking.external_id = external_id
            self.names.add("external_id")

    def change_quantity(self, quantity: int, now: datetime) -> None:
        before = self.booking.units
        if quantity == before:
            return
        set_quantity(self.booking, quantity, now=now)
        self.takes_more = quantity > before
        self.names |= {QUANTITY}
        # Feeds and mirrored events contain it.
        update_event_details(self.booking.event, {})

    def change_seats(self, max_seats: int, places: Mapping[str, int] | None, now: datetime) -> None:
        """places: all of the group's places from now on; None: they stay."""
        group = self.booking
        if group.max_seats is None:
            raise Invalid.at("settings.max_seats", "Only a group has seats.")
        if places is None and group.places is not None and max_seats != group.max_seats:
            raise Invalid.at("settings.max_seats", "Is the sum of `places`: change these.")
        if places is not None and group.places is None:
            raise Invalid.at("settings.places", "The group has no places.")
        taken = taken_seats(group, now)
        if max_seats < taken.total():
            raise InUse(f"{taken.total()} seats are taken.")
        for place, seats in taken.items() if places is not None else ():
            if places is not None and place is not None and seats > places.get(place, 0):
                raise InUse(f"{seats} seats are taken in {place}.")
        self.names |= {"max_seats"} if max_seats != group.max_seats else set()
        if places is not None:
            self.names |= {"places"} if dict(places) != group.places else set()
            group.places = dict(places)
        group.max_seats = max_seats


def _check_has_outcome(booking: Booking, now: datetime) -> None:
    if not GRAPHS[booking.graph].takes_place(booking.state):
        raise Invalid.at("outcome", f"A booking in the state {booking.state} has no outcome.")
    if now < booking.event.start - OUTCOME_BEFORE:
        raise Invalid.at("outcome", "The booking has not begun yet.")
