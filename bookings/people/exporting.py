"""All that is held about a person, written while it is read: never more than a slice in memory."""

import uuid
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from availability.records import event_record
from bookings.models import Booking
from bookings.people.parts import PARTS, Record
from bookings.people.rows import EVENT_TEXTS, Person
from bookings.records import INCLUDES, WHOLE, booking_record, customer_record, with_includes
from scheduling.api.errors import NotFound
from scheduling.api.renderers import render_json
from scheduling.api.slices import by_slices, slices_of

SLICE = 100
EXPORTED = [INCLUDES[name] for name in (*WHOLE, "logs")]


def write_export(person: Person, *, zone: str) -> Iterator[bytes]:
    """The JSON of the answer, in pieces. Raises NotFound, at once, where nothing is held.

    What others wrote of themselves in a booking that they share stays out.
    """
    booking_ids = person.booking_ids()
    events = _event_records(person, booking_ids, zone)
    if not booking_ids:
        first = next(events, None)
        if first is None:
            raise NotFound("Customer")
        events = chain([first], events)
    return _write(person, booking_ids, events, zone)


def _write(
    person: Person, booking_ids: Collection[uuid.UUID], events: Iterable[Record], zone: str
) -> Iterator[bytes]:
    yield b'{"data":{"email":' + render_json(person.email)
    yield from _write_list("bookings", _booking_records(person, booking_ids, zone))
    yield from _write_list("events", events)
    for part in PARTS:
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
    for ids in slices_of(booking_ids, SLICE):
        rows = Booking.objects.filter(id__in=ids).order_by("id")
        for booking in with_includes(rows, EXPORTED):
            record = booking_record(booking, EXPORTED, zone)
            theirs = [one for one in booking.customers.all() if person.is_of(one)]
            record["customers"] = [customer_record(one) for one in theirs]
            record["attributes"]["customer"] = next(iter(record["customers"]), None)
            yield record


def _event_records(
    person: Person, booking_ids: Collection[uuid.UUID], zone: str
) -> Iterator[Record]:
    """Events that name the address, but for those of the person's own bookings."""
    marks = person.marks
    for found in by_slices(person.events().select_related("resource"), SLICE):
        for event in found:
            invited = [one for one in event.participants if marks.are_in(one)]
            texts = [getattr(event, name) for name in EVENT_TEXTS]
            if event.booked not in booking_ids and (invited or marks.are_in(texts)):
                yield event_record(event, zone) | {"participants": invited}
