"""Export personal data as a JSON stream: at most one batch of rows in memory."""

import uuid
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from apps_config.models import SecurityEvent
from apps_config.security_events import record_export
from availability.serializers.events import EventSerializer
from bookings.models import Booking
from bookings.pages.trusted_texts import trusted_text
from bookings.privacy.person_queries import EVENT_TEXTS, Person
from bookings.privacy.personal_data_parts import Record, personal_data_parts
from bookings.serializers.customers import CustomerSerializer
from bookings.serializers.responses import (
    ALL_INCLUDES,
    INCLUDES,
    booking_record,
    include_for,
    with_includes,
)
from common.api.json import render_json
from common.db.batching import iterate_batches, key_batches
from common.errors import NotFound

SLICE = 100
# Without the links that act for customers: an export is kept and passed on.
EXPORTED = [
    include_for(INCLUDES[name], people=True, links=False)
    for name in (*ALL_INCLUDES, "note", "logs")
]


def write_export(person: Person, *, zone: str) -> Iterator[bytes]:
    """Yield the JSON of the response in pieces. Raises NotFound, at once, if nothing is stored.

    The data of other customers of shared bookings is omitted.
    """
    booking_ids = person.booking_ids()
    events = _other_event_records(person, booking_ids, zone)
    if not booking_ids and not _has_parts(person):
        first = next(events, None)
        if first is None:
            raise NotFound("Customer")
        events = chain([first], events)
    about = {"bookings": len(booking_ids)}
    record_export(SecurityEvent.CUSTOMER_EXPORTED, app_id=person.app.id, about=about)
    return _write(person, booking_ids, events, zone)


def write_own_export(person: Person, *, zone: str) -> Iterator[bytes]:
    """Yield the JSON of the person's bookings as customers read them: without the internal notes,
    log, e-mails and calls, which `write_export` has.
    """
    yield b'{"data":{"email":' + render_json(person.email)
    yield from _write_list("bookings", _own_booking_records(person, zone))
    yield b"}}"


def _own_booking_records(person: Person, zone: str) -> Iterator[Record]:
    for ids in key_batches(person.booking_ids(), SLICE):
        rows = Booking.objects.for_app(person.app).filter(id__in=ids).order_by("id")
        rows = rows.select_related("event", "resource", "project", "app")
        for booking in rows.prefetch_related("customers"):
            theirs = [customer for customer in booking.customers.all() if person.is_of(customer)]
            yield {
                **booking_record(booking, (), zone, ("start", "end")),
                **{name: trusted_text(booking, name) for name in EVENT_TEXTS},
                "resource": booking.resource.name,
                "customers": [CustomerSerializer.render(customer) for customer in theirs],
            }


def _has_parts(person: Person) -> bool:
    """Whether anything is stored about the person without a booking."""
    return any(next(part.export(person, ()), None) for part in personal_data_parts)


def _write(
    person: Person, booking_ids: Collection[uuid.UUID], events: Iterable[Record], zone: str
) -> Iterator[bytes]:
    yield b'{"data":{"email":' + render_json(person.email)
    yield b',"note":' + render_json(person.note)
    yield from _write_list("bookings", _booking_records(person, booking_ids, zone))
    yield from _write_list("events", events)
    for part in personal_data_parts:
        yield from _write_list(part.name, part.export(person, booking_ids))
    yield b"}}"


def _write_list(name: str, records: Iterable[Record]) -> Iterator[bytes]:
    yield b',"' + name.encode() + b'":['
    for number, record in enumerate(records):
        yield (b"," if number else b"") + render_json(record)
    yield b"]"


def _booking_records(
    person: Person, booking_ids: Collection[uuid.UUID], zone: str
) -> Iterator[Record]:
    for ids in key_batches(booking_ids, SLICE):
        rows = Booking.objects.filter(id__in=ids).order_by("id")
        for booking in with_includes(rows, EXPORTED):
            record = booking_record(booking, EXPORTED, zone)
            theirs = [customer for customer in booking.customers.all() if person.is_of(customer)]
            record["customers"] = [CustomerSerializer.render(customer) for customer in theirs]
            record["attributes"]["customer"] = next(iter(record["customers"]), None)
            yield record


def _other_event_records(
    person: Person, without_bookings: Collection[uuid.UUID], zone: str
) -> Iterator[Record]:
    """Yield the records of events with the address, except those of the person's bookings."""
    marks = person.marks
    for batch in iterate_batches(person.events_with_address().select_related("resource"), SLICE):
        for event in batch:
            if event.booked not in without_bookings and person.is_in(event):
                invited = [
                    participant for participant in event.participants if marks.are_in(participant)
                ]
                yield EventSerializer.render(event, zone) | {"participants": invited}
