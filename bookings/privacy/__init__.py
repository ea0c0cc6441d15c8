"""Personal data by e-mail address: list, export, erase.

Layers above register their own parts with `personal_data_parts.register`, as notifications does
for deliveries.
"""

from bookings.privacy.customer_list import (
    CUSTOMER_SEARCH,
    PEOPLE_ORDERS,
    customer_records,
    search_customers,
)
from bookings.privacy.erase import Erasure, erase_person, redactor_of
from bookings.privacy.export import write_export, write_own_export
from bookings.privacy.person_queries import Person
from bookings.privacy.personal_data_parts import PersonalData, on_erasure, personal_data_parts
from bookings.privacy.retention import due_for_erasure, erase_due_bookings
from bookings.privacy.text_redactor import Redactor
from bookings.privacy.unverified_bookings_part import unverified_of

__all__ = [
    "CUSTOMER_SEARCH",
    "PEOPLE_ORDERS",
    "Erasure",
    "Person",
    "PersonalData",
    "Redactor",
    "customer_records",
    "due_for_erasure",
    "erase_due_bookings",
    "erase_person",
    "on_erasure",
    "personal_data_parts",
    "redactor_of",
    "search_customers",
    "unverified_of",
    "write_export",
    "write_own_export",
]
