"""The rows of a day sheet: whom a resource sees, with what is needed on paper."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.models import prefetch_related_objects
from django.utils.translation import pgettext

from bookings.graphs import SEATED
from bookings.models import Booking
from office.bookings.answers import labelled_values
from office.desk.columns import Column, Entry

MAX_PARTICIPANTS = 2000  # of all groups of a sheet
Participants = Mapping[uuid.UUID | None, list[Booking]]  # group -> its seats


class SheetRow(NamedTuple):
    """A customer, or an entry without customers. `answers`: (question, answer). `note`: the
    booking's internal one.
    """

    time: str
    what: str
    state: str
    name: str = ""
    phone: str = ""
    answers: Sequence[tuple[str, str]] = ()
    note: str = ""


def read_sheet(columns: Iterable[Column]) -> list[tuple[Column, list[SheetRow]]]:
    """Return each column's rows; of a group one for each participant."""
    columns = list(columns)
    bookings = [entry.booking for column in columns for entry in column.entries if entry.booking]
    prefetch_related_objects(bookings, "project")  # for its questions
    participants = read_participants(bookings)
    return [
        (column, [row for entry in column.entries for row in _rows(entry, participants)])
        for column in columns
    ]


def read_participants(bookings: Iterable[Booking]) -> Participants:
    """Return group -> its seats."""
    groups = [booking.id for booking in bookings if booking.max_seats is not None]
    rows = Booking.objects.filter(owner_booking_id__in=groups, state__in=SEATED, deleted_at=None)
    rows = rows.order_by("created_at", "id").select_related("project")
    rows = rows.prefetch_related("customers")[:MAX_PARTICIPANTS]
    seats = defaultdict(list)
    for row in rows:
        seats[row.owner_booking_id].append(row)
    return seats


def _rows(entry: Entry, participants: Participants) -> list[SheetRow]:
    if entry.booking is None:
        return [SheetRow(entry.time, entry.title, "")]
    is_group = entry.booking.max_seats is not None
    bookings = participants.get(entry.booking.id, []) if is_group else [entry.booking]
    what = entry.title if is_group else entry.what
    rows = sheet_rows(bookings, time=entry.time, what=what, state=entry.state)
    return rows or [SheetRow(entry.time, what, entry.state)]


def sheet_rows(
    bookings: Iterable[Booking], *, time: str = "", what: str = "", state: str = ""
) -> list[SheetRow]:
    """Return a row for each customer of the bookings."""
    return [
        SheetRow(
            time,
            what,
            state,
            customer.name,
            customer.phone,
            [
                *_numbers(booking),
                *labelled_values(customer.meta, booking.project),
                *labelled_values(booking.meta),
            ],
            booking.note or "",
        )
        for booking in bookings
        for customer in booking.customers.all()
    ]


def _numbers(booking: Booking) -> list[tuple[str, str]]:
    """Return (label, value) of how many are booked, where, and how many people come."""
    rows = [
        (pgettext("how many are booked", "Number"), booking.units if booking.units > 1 else None),
        (pgettext("of a seat", "Place"), booking.place),
        (pgettext("how many come", "People"), booking.party_size),
    ]
    return [(label, str(value)) for label, value in rows if value]
