"""People's data of bookings that ended long ago goes; the bookings stay, to be counted."""

import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from bookings.models import Booking, Customer
from bookings.people.erasing import BOOKINGS, erase_from, lock_bookings

BATCH = 200  # bookings


class Purged(NamedTuple):
    """One batch: how many bookings were emptied, and up to which id all are done."""

    bookings: int
    last: uuid.UUID


def due(before: datetime) -> QuerySet[Booking]:
    """Bookings that ended before, and in which somebody is left."""
    people = Customer.objects.filter(booking=OuterRef("id")).exclude(email="")
    return Booking.objects.filter(Exists(people), event__end__lt=before)


def purge(
    before: datetime, *, batch: int | None = None, after: uuid.UUID | None = None
) -> Iterator[Purged]:
    """Empty what is due, a transaction at a time, in the order of their ids: from `after` on.

    May be left off after any of them and begun anew; two at once do no harm.
    """
    while True:
        rows = due(before).order_by("id")
        rows = rows.filter(id__gt=after) if after else rows
        found = list(rows.values_list("id", flat=True)[: batch or BATCH])
        if not found:
            return
        after = found[-1]
        with transaction.atomic():
            lock_bookings(found)
            # Asked again under the lock: one may have been moved since then.
            still = set(due(before).filter(id__in=found).values_list("id", flat=True))
            counts = erase_from(still, lambda customer: True, timezone.now())
        yield Purged(counts[BOOKINGS], after)
