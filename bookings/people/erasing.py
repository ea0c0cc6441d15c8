"""Emptying what is held about a person: names, addresses and words go, times and states stay.

In batches, each a transaction under the locks of its bookings: a change of one of them comes before
or after, and whatever it wrote is emptied with it. Stopped halfway, it may be begun anew.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps_config.idempotency import outline_answers
from apps_config.models import App
from availability.models import Event
from bookings.models import Booking, BookingNotification, Customer, StateChange
from bookings.people.marks import Marks
from bookings.people.parts import ERASURE_LISTENERS, PARTS, Erasure
from bookings.people.rows import EVENT_TEXTS, Person
from scheduling.api.changes import transaction_start
from scheduling.api.slices import save_alike, slices_of

BATCH = 100  # bookings
NOTHING = Marks(())
BOOKINGS, LOG_ENTRIES = "bookings", "log_entries"
EMPTY_CUSTOMER: Mapping[str, Any] = {
    **dict.fromkeys(("name", "email", "phone", "voip", "timezone"), ""),
    "meta": {},
}


def erase_person(*, app: App, email: str, now: datetime) -> dict[str, int]:
    """Empty what the app holds about an address; how many bookings, log entries, and rows of the
    other rooms' parts were emptied. Done again it finds nothing.
    """
    person = Person(app, email)
    counts = Counter(dict.fromkeys((BOOKINGS, LOG_ENTRIES, *(part.name for part in PARTS)), 0))
    named = dict(person.events().values_list("id", "booked"))
    booking_ids = person.booking_ids() | set(named.values()) - {None}
    # First too: stopped halfway, the bookings that are done are not found by the address again.
    outline_answers(app, about=booking_ids)
    for ids in slices_of(booking_ids, BATCH):
        with transaction.atomic():
            counts.update(erase_from(ids, person.is_of, now, marks=person.marks))
    for ids in slices_of([event for event, booking in named.items() if booking is None], BATCH):
        with transaction.atomic():
            _cut_from_events(ids, person.marks, now)
    outline_answers(app, about=booking_ids)
    return dict(counts)


def lock_bookings(ids: Iterable[uuid.UUID]) -> None:
    """In the order of their ids; always a booking first, what belongs to it then."""
    rows = Booking.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id")
    list(rows.values_list("id"))


def erase_from(
    ids: Collection[uuid.UUID],
    is_theirs: Callable[[Customer], bool],
    now: datetime,
    *,
    marks: Marks = NOTHING,
) -> Counter[str]:
    """Empty some bookings of the customers that are meant, in a transaction: what was emptied.

    marks: what is cut out of those in which none of them is a customer.
    """
    lock_bookings(ids)
    # Read under the lock: what a change wrote that held it until now is there.
    rows = Booking.objects.filter(id__in=ids).select_related("event", "project")
    bookings = {booking.id: booking for booking in rows}
    theirs, others = defaultdict(list), set()
    for customer in Customer.objects.filter(booking__in=bookings).exclude(email=""):
        if is_theirs(customer):
            theirs[customer.booking_id].append(customer)
        else:
            others.add(customer.booking_id)
    erasure = Erasure(
        bookings=bookings,
        customers={one: {customer.id for customer in theirs[one]} for one in theirs},
        bare=theirs.keys() - others,
        marks={one: marks_of(theirs[one]) if one in theirs else marks for one in bookings},
        now=now,
    )
    emptied = {*theirs, *_empty_events(erasure)}
    _empty_bookings(erasure, emptied)
    customer_ids = [one for rows in erasure.customers.values() for one in rows]
    Customer.objects.filter(id__in=customer_ids).update(**EMPTY_CUSTOMER)
    counts = Counter({BOOKINGS: len(emptied), LOG_ENTRIES: _empty_logs(erasure, theirs)})
    for part in PARTS:
        counts[part.name] += part.erase(erasure)
    for listener in ERASURE_LISTENERS:
        listener(erasure)
    return counts


def marks_of(customers: Iterable[Customer]) -> Marks:
    """What they are known by."""
    return Marks(word for one in customers for word in (one.email, one.name, one.phone, one.voip))


# --- Bookings, events, reminders ------------------------------------------------------------------
def _empty_events(erasure: Erasure) -> set[uuid.UUID]:
    """The bookings whose events lost something. A seat's event is its owner's: it stays."""
    owners = {row.event_id: row for row in erasure.bookings.values() if not row.owner_booking_id}
    events = Event.objects.filter(Q(id__in=owners) | Q(main__in=owners))
    changes, emptied = {}, set()
    for event in events.select_for_update(no_key=True).order_by("id"):
        booking = owners[event.main_id or event.id]
        is_bare = booking.id in erasure.bare
        defaults = (booking.project.booking if booking.project else {}) if is_bare else None
        values = _emptied_event(event, erasure.marks[booking.id], defaults)
        if values:
            changes[event.id] = values
            emptied.add(booking.id)
    _save_events(changes, erasure.now)
    return emptied


def _emptied_event(
    event: Event, marks: Marks, defaults: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The columns that change. defaults: what its project says, where nobody is left to whom its
    place, its description and its participants belong."""
    values = {name: getattr(event, name) for name in EVENT_TEXTS}
    kept = [one for one in event.participants if not marks.are_in(one)]
    if defaults is not None:
        kept = []
        values |= {name: defaults.get(name, "") for name in ("where", "description")}
    values = {name: marks.cut(value) for name, value in values.items()} | {"participants": kept}
    return {name: value for name, value in values.items() if value != getattr(event, name)}


def _save_events(changes: Mapping[uuid.UUID, Mapping[str, Any]], now: datetime) -> None:
    save_alike(Event, changes)
    Event.objects.filter(id__in=changes).update(updated_at=transaction_start())


def _cut_from_events(ids: Collection[uuid.UUID], marks: Marks, now: datetime) -> None:
    """Of events made by hand the address goes, and nothing else."""
    rows = Event.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id")
    changes = {event.id: _emptied_event(event, marks, None) for event in rows}
    _save_events({event: values for event, values in changes.items() if values}, now)


def _empty_bookings(erasure: Erasure, emptied: Collection[uuid.UUID]) -> None:
    """Their free keys, and the words of their reminders; `updated_at` tells who keeps copies."""
    changes = {}
    for booking_id in emptied:
        meta = erasure.bookings[booking_id].meta
        left = {} if booking_id in erasure.bare else erasure.marks[booking_id].cut(meta)
        if left != meta:
            changes[booking_id] = {"meta": left}
    save_alike(Booking, changes)
    Booking.objects.filter(id__in=emptied).update(updated_at=transaction_start())
    reminders = {}
    for row in BookingNotification.objects.filter(booking__in=emptied):
        texts = {"subject": row.subject, "url": row.url}
        left = erasure.marks[row.booking_id].cut(texts)
        if left != texts:
            reminders[row.pk] = left
    save_alike(BookingNotification, reminders)


def _empty_logs(erasure: Erasure, theirs: Mapping[uuid.UUID, list[Customer]]) -> int:
    """What people wrote, and who they were: all else of a log stands for ever."""
    changes = {}
    for line in StateChange.objects.filter(booking__in=erasure.bookings):
        is_bare = line.booking_id in erasure.bare
        message = "" if is_bare else erasure.marks[line.booking_id].cut(line.message)
        addresses = {one.email.lower() for one in theirs.get(line.booking_id, ())}
        actor = "" if line.actor.lower() in addresses else line.actor
        if (message, actor) != (line.message, line.actor):
            changes[line.pk] = {"message": message, "actor": actor}
    save_alike(StateChange, changes)
    return len(changes)
