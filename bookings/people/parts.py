"""What other rooms keep about a person: they add their part, as they listen to steps."""

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from bookings.models import Booking
from bookings.people.marks import Marks
from bookings.people.rows import Person

Record = dict[str, Any]


class Erasure(NamedTuple):
    """What is emptied in some bookings: one transaction, under their locks.

    bookings: by their ids. customers: of each that has any, the rows that are emptied. bare: the
    bookings in which nobody is left. marks: of each, what is cut out of texts wherever it stands.
    """

    bookings: Mapping[uuid.UUID, Booking]
    customers: Mapping[uuid.UUID, Collection[uuid.UUID]]
    bare: Collection[uuid.UUID]
    marks: Mapping[uuid.UUID, Marks]
    now: datetime


class Part(NamedTuple):
    """name: its key in the export, and of its count in the answer of an erasure.

    export: records about a person's bookings, read piece by piece. erase: how many rows it emptied.
    """

    name: str
    export: Callable[[Person, Collection[uuid.UUID]], Iterator[Record]]
    erase: Callable[[Erasure], int]


PARTS: list[Part] = []


def adds_part(part: Part) -> None:
    """Have a room's own rows handed out and emptied with those of bookings."""
    PARTS.append(part)


ERASURE_LISTENERS: list[Callable[[Erasure], None]] = []


def hears_of_erasures(listener: Callable[[Erasure], None]) -> Callable[[Erasure], None]:
    """Have the function called with each batch that was emptied, in its transaction: for what holds
    copies of bookings elsewhere."""
    ERASURE_LISTENERS.append(listener)
    return listener
