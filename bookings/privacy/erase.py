"""Erase personal data: names, addresses and texts are emptied, times and states stay.

Runs in batches, each a transaction under the locks of its bookings: a concurrent change comes
before, and is erased too, or after. An interrupted run can be repeated.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps_config.changes import record_erasures
from apps_config.idempotency import redact_answers
from apps_config.models import App, AppNotification, SavedFilter, SecurityEvent
from apps_config.security_events import record_event
from availability.models import Event, ProjectNotification
from bookings.models import Booking, BookingNotification, Customer, CustomerNote, StateChange
from bookings.pages.trusted_texts import fallback_title, has_untrusted_title
from bookings.privacy.person_queries import EVENT_TEXTS, Person
from bookings.privacy.personal_data_parts import Erasure, on_erasure, personal_data_parts
from bookings.privacy.text_redactor import Redactor
from bookings.reports.recounts import request_recounts_of_customers
from bookings.services.customer_notes import notes_without_customer
from common.db.batching import key_batches, update_json_columns
from common.db.updated_at import transaction_start
from common.email_address import canonical_address

BATCH = 100  # bookings
NOTHING = Redactor(())
BOOKINGS, LOG_ENTRIES = "bookings", "log_entries"
EMPTY_CUSTOMER: Mapping[str, Any] = {
    **dict.fromkeys(("name", "email", "address", "limit_key", "phone", "voip", "timezone"), ""),
    "external_id": None,
    "meta": {},
}


def erase_person(*, app: App, email: str, now: datetime) -> dict[str, int]:
    """Erase what the app stores about an address; return the numbers of bookings, log entries and
    rows of the registered parts that were emptied. A repeated run returns zeros.
    """
    record_event(SecurityEvent.CUSTOMER_ERASED, app_id=app.id)
    person = Person(app, email)
    counts = Counter(
        dict.fromkeys((BOOKINGS, LOG_ENTRIES, *(part.name for part in personal_data_parts)), 0)
    )
    for part in personal_data_parts:
        counts[part.name] += part.erase_person(person, now) if part.erase_person else 0
    _delete_saved_filters(person)
    rows = person.events_with_address().only(*EVENT_TEXTS, "participants").iterator()
    named = {event.id: event.booked for event in rows if person.is_in(event)}
    noted = {row.id for row in person.with_address_in_note(Booking.objects.only("note"))}
    booking_ids = person.booking_ids() | noted | set(named.values()) - {None}
    # Also redact first: after an interruption the emptied bookings no longer match the address.
    redact_answers(app, about=booking_ids)
    for ids in key_batches(booking_ids, BATCH):
        with transaction.atomic():
            counts.update(erase_bookings(ids, person.is_of, now, marks=person.marks))
    for ids in key_batches([event for event, booking in named.items() if booking is None], BATCH):
        with transaction.atomic():
            _empty_events_without_booking(ids, person.marks)
    for row in person.with_address_in_note(CustomerNote.objects.all()):
        CustomerNote.objects.filter(pk=row.pk).update(note=person.marks.cut(row.note))
    redact_answers(app, about=booking_ids)
    return dict(counts)


def _delete_saved_filters(person: Person) -> None:
    """Delete the filters of staff that name the person."""
    addresses = {person.email, person.address}
    marks = redactor_of([*person.customers(), *(Customer(email=one) for one in addresses)])
    rows = SavedFilter.objects.filter(app=person.app)
    named = [row.pk for row in rows if marks.are_in([row.name, row.query])]
    SavedFilter.objects.filter(pk__in=named).delete()


def lock_for_erasure(ids: Iterable[uuid.UUID]) -> None:
    """Lock bookings in order of id, before the rows that belong to them."""
    rows = Booking.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id")
    list(rows.values_list("id"))


def erase_bookings(
    ids: Collection[uuid.UUID],
    is_theirs: Callable[[Customer], bool],
    now: datetime,
    *,
    marks: Redactor = NOTHING,
) -> Counter[str]:
    """Erase the customers matching `is_theirs` from the bookings, in a transaction; return counts.

    marks: what is redacted in bookings without a matching customer.
    """
    lock_for_erasure(ids)
    # Read under the lock: contains the writes of whoever held it before.
    rows = Booking.objects.filter(id__in=ids).select_related("event", "project", "app")
    bookings = {booking.id: booking for booking in rows}
    theirs, others = defaultdict(list), set()
    for customer in Customer.objects.filter(booking__in=bookings).exclude(email=""):
        if is_theirs(customer):
            theirs[customer.booking_id].append(customer)
        else:
            others.add(customer.booking_id)
    erasure = Erasure(
        bookings=bookings,
        customers={
            booking_id: {customer.id for customer in theirs[booking_id]} for booking_id in theirs
        },
        bare=theirs.keys() - others,
        marks={
            booking: redactor_of(theirs[booking]) if booking in theirs else marks
            for booking in bookings
        },
        subjects=_configured_subjects(bookings.values()),
        now=now,
    )
    emptied = {*theirs, *_empty_events(erasure), *_empty_notes(erasure)}
    _empty_bookings(erasure, emptied)
    customer_ids = [row for rows in erasure.customers.values() for row in rows]
    Customer.objects.filter(id__in=customer_ids).update(**EMPTY_CUSTOMER)
    people = {(row.app_id, row.address) for rows in theirs.values() for row in rows}
    notes_without_customer(people).delete()
    _request_recounts(bookings, theirs)
    counts = Counter({BOOKINGS: len(emptied), LOG_ENTRIES: _empty_logs(erasure, theirs)})
    for part in personal_data_parts:
        counts[part.name] += part.erase(erasure) if part.erase else 0
    for listener in on_erasure:
        listener(erasure)
    return counts


def _request_recounts(
    bookings: Mapping[uuid.UUID, Booking], theirs: Mapping[uuid.UUID, Sequence[Customer]]
) -> None:
    """Another booking of an erased customer may now be the first that the service knows."""
    addresses: dict[uuid.UUID, set[str]] = defaultdict(set)
    for booking_id, customers in theirs.items():
        addresses[bookings[booking_id].app_id].update(customer.address for customer in customers)
    for app_id, erased in addresses.items():
        request_recounts_of_customers(app_id, erased, without=theirs)


def redactor_of(customers: Iterable[Customer]) -> Redactor:
    """Return a redactor of the customers' names, addresses and numbers."""
    return Redactor(
        word
        for customer in customers
        for word in (customer.email, customer.name, customer.phone, customer.voip)
    )


def _configured_subjects(bookings: Collection[Booking]) -> set[str]:
    """Return the subjects of reminders that the bookings' apps and projects set."""
    of_apps = AppNotification.objects.filter(app__in={row.app_id for row in bookings})
    projects = {row.project_id for row in bookings} - {None}
    of_projects = ProjectNotification.objects.filter(project__in=projects)
    return {row.subject for rows in (of_apps, of_projects) for row in rows}


# --- Bookings, events, reminders ------------------------------------------------------------------
def _empty_events(erasure: Erasure) -> set[uuid.UUID]:
    """Empty the events; return the ids of the changed bookings. A seat's event is its owner's: it
    stays.
    """
    owners = {row.event_id: row for row in erasure.bookings.values() if not row.owner_booking_id}
    events = Event.objects.filter(Q(id__in=owners) | Q(main__in=owners))
    changes, emptied = {}, set()
    for event in events.select_for_update(no_key=True).order_by("id"):
        booking = owners[event.main_id or event.id]
        defaults = _default_texts(booking) if booking.id in erasure.bare else None
        values = _emptied_event(event, erasure.marks[booking.id], defaults)
        if values:
            changes[event.id] = values
            emptied.add(booking.id)
    copied = _emptied_events_of_ended_seats(erasure)
    update_json_columns(Event, changes | copied)
    return emptied | {row.id for row in erasure.bookings.values() if row.event_id in copied}


def _emptied_events_of_ended_seats(erasure: Erasure) -> dict[uuid.UUID, dict[str, Any]]:
    """Return the columns to change of the events that ended seats keep: the group's texts as they
    were. Other seats may share them.
    """
    seats = defaultdict(list)
    for row in erasure.bookings.values():
        if row.event.of_ended_seats:
            seats[row.event_id].append(row)
    changes: dict[uuid.UUID, dict[str, Any]] = {}
    for event in Event.objects.select_for_update(no_key=True).filter(id__in=seats).order_by("id"):
        for seat in seats[event.id]:
            values = _emptied_event(event, erasure.marks[seat.id], None)
            for name, value in values.items():
                setattr(event, name, value)
            if values:
                changes[event.id] = changes.get(event.id, {}) | values
    return changes


def _default_texts(booking: Booking) -> dict[str, str]:
    """Return what replaces the event's texts if no customer is left: the project's place and
    description. The title stays, unless a public caller typed it.
    """
    own = booking.project.booking if booking.project else {}
    texts = {name: own.get(name, "") for name in ("where", "description")}
    return texts | ({"what": fallback_title(booking)} if has_untrusted_title(booking) else {})


def _emptied_event(
    event: Event, marks: Redactor, defaults: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the columns to change.

    defaults: texts that replace the event's if no customer is left; its participants go too.
    """
    values = {name: getattr(event, name) for name in EVENT_TEXTS} | dict(defaults or {})
    values = {name: marks.cut(value) for name, value in values.items()}
    kept = [participant for participant in event.participants if not marks.are_in(participant)]
    values["participants"] = kept if defaults is None else []
    return {name: value for name, value in values.items() if value != getattr(event, name)}


def _empty_events_without_booking(ids: Collection[uuid.UUID], marks: Redactor) -> None:
    """Redact the texts and participants of events without a booking."""
    rows = Event.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id")
    changes = {event.id: _emptied_event(event, marks, None) for event in rows}
    update_json_columns(Event, {event: values for event, values in changes.items() if values})


def _empty_notes(erasure: Erasure) -> set[uuid.UUID]:
    """Redact the internal notes; return the ids of the changed bookings."""
    changes = {}
    for booking in erasure.bookings.values():
        marks = erasure.marks[booking.id]
        left = None if booking.id in erasure.bare else marks.cut(booking.note) or None
        if left != booking.note:
            changes[booking.id] = {"note": left}
    update_json_columns(Booking, changes)
    return set(changes)


def _empty_bookings(erasure: Erasure, emptied: Collection[uuid.UUID]) -> None:
    """Redact the bookings' meta and the texts of their reminders; `updated_at` informs clients."""
    changes = {}
    for booking_id in emptied:
        meta = erasure.bookings[booking_id].meta
        left = {} if booking_id in erasure.bare else erasure.marks[booking_id].cut(meta)
        if left != meta:
            changes[booking_id] = {"meta": left}
    update_json_columns(Booking, changes)
    Booking.objects.filter(id__in=emptied).update(updated_at=transaction_start())
    record_erasures("booking", {key: erasure.bookings[key].app_id for key in emptied})
    reminders = {}
    for row in BookingNotification.objects.filter(booking__in=emptied):
        texts = {"subject": row.subject, "url": row.url}
        left = erasure.marks[row.booking_id].cut(texts)
        if row.booking_id in erasure.bare and row.subject not in erasure.subjects:
            left["subject"] = ""
        if left != texts:
            reminders[row.pk] = left
    update_json_columns(BookingNotification, reminders)


def _empty_logs(erasure: Erasure, theirs: Mapping[uuid.UUID, list[Customer]]) -> int:
    """Redact messages and actors in the log; return the number of changed entries."""
    changes = {}
    for line in StateChange.objects.filter(booking__in=erasure.bookings):
        is_bare = line.booking_id in erasure.bare
        message = "" if is_bare else erasure.marks[line.booking_id].cut(line.message)
        addresses = {customer.address for customer in theirs.get(line.booking_id, ())}
        actor = "" if canonical_address(line.actor) in addresses else line.actor
        if (message, actor) != (line.message, line.actor):
            changes[line.pk] = {"message": message, "actor": actor}
    update_json_columns(StateChange, changes)
    return len(changes)
