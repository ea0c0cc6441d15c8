"""Who has a booking in their calendar by a provider, so that their mails need no calendar file."""

from collections.abc import Collection
from typing import Protocol

from bookings.models import Booking, Customer
from common.hooks import Hook


class ProviderEntries(Protocol):
    """What is known about the calendars of owners and customers; reads a batch's rows once."""

    def __init__(self, bookings: Collection[Booking]) -> None: ...

    def is_entered(self, booking: Booking, customer: Customer | None) -> bool:
        """Return whether the customer, or the owner (None), has the entry, or is sure to get it."""

    def provider_uid(self, booking: Booking) -> str:
        """Return the UID that the booking's entry has at the provider; "" without one."""


# Layers above register their own.
provider_entries = Hook[type[ProviderEntries]]()
