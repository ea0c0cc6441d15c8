"""Retention: erase the personal data of bookings that ended long ago; the bookings stay."""

import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from bookings.models import Booking, Customer
from bookings.privacy.erase import erase_bookings, lock_for_erasure
from common.db.updated_at import transaction_start

BATCH = 200  # bookings
SCAN_BATCH = 5000


class PurgedBatch(NamedTuple):
    """One batch: the number of erased bookings, and the id up to which all bookings are done."""

    bookings: int
    last: uuid.UUID


def due_for_erasure(before: datetime) -> QuerySet[Booking]:
    """Bookings that ended before `before` and still have customer data or an internal note."""
    people = Customer.objects.filter(booking=OuterRef("id")).exclude(email="")
    has_data = Q(Exists(people)) | Q(note__isnull=False)
    return Booking.objects.filter(has_data, event__end__lt=before)


def erase_due_bookings(
    before: datetime, *, batch: int | None = None, after: uuid.UUID | None = None
) -> Iterator[PurgedBatch]:
    """Erase due bookings with ids after `after`, one transaction per batch, in order of id.

    Can be interrupted after any batch and repeated; concurrent runs are safe.
    """
    size = batch or BATCH
    while looked_at := _next_ids_to_check(after):
        rows = due_for_erasure(before).filter(id__in=looked_at).order_by("id")
        ids = list(rows.values_list("id", flat=True)[:size])
        # A full batch may leave due bookings behind.
        after = ids[-1] if len(ids) == size else looked_at[-1]
        yield PurgedBatch(_empty(ids, before), after)


def _next_ids_to_check(after: uuid.UUID | None) -> list[uuid.UUID]:
    """Return the next ids: so few that the check for due ones is fast even if none is due."""
    rows = Booking.objects.filter(id__gt=after) if after else Booking.objects.all()
    return list(rows.order_by("id").values_list("id", flat=True)[:SCAN_BATCH])


def _empty(booking_ids: list[uuid.UUID], before: datetime) -> int:
    """Erase the bookings that are still due under their locks: one may have been rescheduled."""
    if not booking_ids:
        return 0
    with transaction.atomic():
        lock_for_erasure(booking_ids)
        still = set(due_for_erasure(before).filter(id__in=booking_ids).values_list("id", flat=True))
        erase_bookings(still, lambda customer: True, timezone.now())
        # Also those of bookings without customers: a group's, or erased ones.
        noted = Booking.objects.filter(id__in=still, note__isnull=False)
        noted.update(note=None, updated_at=transaction_start())
    return len(still)
