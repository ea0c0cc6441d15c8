"""Hooks through which other layers export and erase their personal data."""

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from bookings.models import Booking
from bookings.privacy.person_queries import Person
from bookings.privacy.text_redactor import Redactor
from common.hooks import Hook

Record = dict[str, Any]


class Erasure(NamedTuple):
    """One batch of an erasure: one transaction, under the locks of its bookings.

    bookings: by id. customers: booking id -> ids of the customer rows to empty. bare: ids of
    bookings without remaining customers. marks: booking id -> redactor for its texts. subjects: of
    the reminders that apps and projects set, which are nobody's data.
    """

    bookings: Mapping[uuid.UUID, Booking]
    customers: Mapping[uuid.UUID | None, Collection[uuid.UUID]]
    bare: Collection[uuid.UUID]
    marks: Mapping[uuid.UUID | None, Redactor]
    subjects: Collection[str]
    now: datetime


class PersonalData(NamedTuple):
    """A registered part.

    name: its key in the export and in the counts of an erasure. export: yields records about a
    person and their bookings. erase: of bookings; erase_person: of rows without a booking; both
    return the number of emptied rows.
    """

    name: str
    export: Callable[[Person, Collection[uuid.UUID]], Iterator[Record]]
    erase: Callable[[Erasure], int] | None = None
    erase_person: Callable[[Person, datetime], int] | None = None


# Rows of layers above to export and erase with bookings.
personal_data_parts = Hook[PersonalData]()

# Called with each erased batch, in its transaction: for mirrors of bookings elsewhere.
on_erasure = Hook[Callable[[Erasure], None]]()
