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
LOOKED_AT = 5000


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
    size = batch or BATCH
    while looked_at := _next_bookings(after):
        rows = due(before).filter(id__in=looked_at).order_by("id")
        found = list(rows.values_list("id", flat=True)[:size])
        # All of them are done unless the batch is full.
        after = found[-1] if len(found) == size else looked_at[-1]
        yield Purged(_empty(found, before), after)


def _next_bookings(after: uuid.UUID | None) -> list[uuid.UUID]:
    """So few that asking each of them what is due takes no time, though none may be."""
    rows = Booking.objects.filter(id__gt=after) if after else Booking.objects.all()
    return list(rows.order_by("id").values_list("id", flat=True)[:LOOKED_AT])


def _empty(booking_ids: list[uuid.UUID], before: datetime) -> int:
    """Empty those that are due under their lock, too: one may have been moved since then."""
    if not booking_ids:
        return 0
    with transaction.atomic():
        lock_bookings(booking_ids)
        still = set(due(before).filter(id__in=booking_ids).values_list("id", flat=True))
        counts = erase_from(still, lambda customer: True, timezone.now())
    return counts[BOOKINGS]
