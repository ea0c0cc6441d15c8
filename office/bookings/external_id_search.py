"""Search of bookings by their id in another system."""

import uuid

from django.db.models import QuerySet

from bookings.models import Booking


def booking_ids_by_external_id(rows: QuerySet[Booking], term: str) -> list[uuid.UUID]:
    """Return the ids of these bookings that have the term as external id.

    For an OR with another condition, which by the column would use the index of neither.
    """
    if "\0" in term:
        return []
    return list(rows.order_by().filter(external_id=term).values_list("id", flat=True))
