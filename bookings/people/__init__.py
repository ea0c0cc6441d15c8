"""What is held about a person, by e-mail address: listed, handed out, emptied.

Rooms above keep some of it too: each adds its part (`adds_part`), as notifications does with its
deliveries.
"""

from bookings.people.erasing import Erasure, erase_person
from bookings.people.exporting import write_export
from bookings.people.listing import CUSTOMER_SEARCH, PEOPLE_ORDERS, list_people
from bookings.people.marks import Marks
from bookings.people.parts import Part, adds_part, hears_of_erasures
from bookings.people.retention import due, purge
from bookings.people.rows import Person

__all__ = [
    "CUSTOMER_SEARCH",
    "PEOPLE_ORDERS",
    "Erasure",
    "Marks",
    "Part",
    "Person",
    "adds_part",
    "due",
    "erase_person",
    "hears_of_erasures",
    "list_people",
    "purge",
    "write_export",
]
