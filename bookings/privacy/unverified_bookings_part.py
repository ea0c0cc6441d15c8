"""Personal data of unverified bookings: those that wait for an e-mailed code, or were abandoned."""

import uuid
from collections.abc import Collection, Iterator
from datetime import datetime

from bookings.models import UnverifiedBooking
from bookings.privacy.person_queries import Person
from bookings.privacy.personal_data_parts import PersonalData, Record, personal_data_parts
from bookings.services import empty_rows, end_hold
from common.db.batching import iterate_batches
from common.email_address import canonical_address
from common.time.instants import format_stamp

SLICE = 100


def unverified_of(person: Person) -> Iterator[UnverifiedBooking]:
    """Yield the unverified bookings of the person, and those that contain their address.

    Reads all unverified bookings of the app. There are few: they are deleted after a day.
    """
    rows = UnverifiedBooking.objects.filter(app=person.app, ended_at=None)
    for batch in iterate_batches(rows, SLICE):
        for row in batch:
            if canonical_address(row.email) == person.address or person.marks.are_in(row.body):
                yield row


def export_unverified(person: Person, booking_ids: Collection[uuid.UUID]) -> Iterator[Record]:
    """Yield the unverified bookings as the customer typed them."""
    for row in unverified_of(person):
        yield {
            "reservation_id": str(row.id),
            "created_at": format_stamp(row.created_at),
            "expires_at": format_stamp(row.expires_at),
            "body": row.body,
        }


def erase_unverified(person: Person, now: datetime) -> int:
    """End the holds and empty the rows; return the number of rows."""
    ids = [row.id for row in unverified_of(person)]
    for row_id in ids:
        end_hold(person.app, row_id, now=now)
    empty_rows(UnverifiedBooking.objects.filter(id__in=ids), now=now)
    return len(ids)


personal_data_parts.register(
    PersonalData("unverified_bookings", export_unverified, erase_person=erase_unverified)
)
