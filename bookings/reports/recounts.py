"""Request that days are counted anew.

The counting finds the day of a changed booking by itself, by `updated_at`. It can't know the former
day of a moved booking, the day of a deleted one, nor whose first booking another one is now.
"""

import uuid
from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from bookings.models import Customer, RecountRequest


def request_recounts(app_id: uuid.UUID, times: Iterable[datetime]) -> None:
    """Request to count the days of these times anew, in the transaction of the change."""
    RecountRequest.objects.bulk_create(
        [RecountRequest(app_id=app_id, at=time) for time in sorted(set(times))]
    )


def request_recounts_of_customers(
    app_id: uuid.UUID, addresses: Collection[str], *, without: Collection[uuid.UUID]
) -> None:
    """Request the days of the customers' first bookings besides the bookings `without`, of which
    some now have other addresses or none: who was new may be returning, and the other way round.
    """
    if not addresses:
        return
    rows = Customer.objects.filter(app_id=app_id, address__in=addresses, booking__deleted_at=None)
    others = rows.exclude(booking_id__in=without)
    first = others.filter(~Exists(earlier_customers().exclude(booking_id__in=without)))
    request_recounts(app_id, first.order_by().values_list("booking__event__start", flat=True))


def earlier_customers() -> QuerySet[Customer]:
    """Return the customers with the same address in earlier bookings of the app, for a subquery of
    customers.
    """
    is_earlier = Q(booking__created_at__lt=OuterRef("booking__created_at")) | Q(
        Q(booking_id__lt=OuterRef("booking_id"))
        | Q(booking_id=OuterRef("booking_id"), id__lt=OuterRef("id")),
        booking__created_at=OuterRef("booking__created_at"),
    )
    rows = Customer.objects.filter(address=OuterRef("address"), app_id=OuterRef("app_id"))
    return rows.filter(is_earlier, booking__deleted_at=None).order_by()
