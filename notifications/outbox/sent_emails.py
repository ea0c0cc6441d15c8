"""Store the copies of sent e-mails with the results of their attempts, and delete them.

A copy has personal data. So that none outlives an erasure, it is stored only if its bookings have
not changed since it was composed: an erasure changes them, and then finds the copies by booking. A
delivery's lock, which is held here, excludes an erasure of its own booking; further bookings of the
e-mail are locked, before the deliveries as everywhere.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from bookings.models import Booking
from notifications.models import Delivery, SentEmail

BATCH = 1000


class SentCopy(NamedTuple):
    """content: compressed (`EmailCopy.compressed`). bookings: those that the e-mail is about, and
    their `updated_at` when it was composed.
    """

    content: bytes
    bookings: Mapping[UUID, datetime]


def lock_further_bookings(copies: Sequence[tuple[Delivery, SentCopy]]) -> None:
    """Lock the further bookings of e-mails about several, in order of id."""
    further = {
        booking for row, copy in copies for booking in copy.bookings if booking != row.booking_id
    }
    if further:
        rows = Booking.objects.select_for_update(no_key=True).filter(id__in=further)
        list(rows.order_by("id").values_list("id"))


def store_copies(copies: Sequence[tuple[Delivery, SentCopy]], sent_at: datetime) -> None:
    """Store the copies whose bookings have not changed, under the deliveries' locks."""
    ids = {booking for _, copy in copies for booking in copy.bookings}
    found = Booking.objects.filter(id__in=ids).values_list("id", "updated_at") if ids else ()
    current = dict(found)
    SentEmail.objects.bulk_create(
        SentEmail(
            app_id=row.app_id,
            delivery=row,
            booking_id=booking_id,
            sent_at=sent_at,
            content=b"" if number else copy.content,
        )
        for row, copy in copies
        if all(current.get(booking) == moment for booking, moment in copy.bookings.items())
        for number, booking_id in enumerate(copy.bookings or [None])
    )


def erase_copies(booking_ids: Collection[UUID]) -> None:
    """Delete the copies of all e-mails that were also about one of the bookings."""
    about = SentEmail.objects.filter(booking__in=booking_ids)
    SentEmail.objects.filter(delivery__in=list(about.values_list("delivery", flat=True))).delete()


def delete_old_copies(before: datetime) -> Iterator[int]:
    """Delete the copies of e-mails sent before `before`, in batches; yield the size of each."""
    rows = SentEmail.objects.filter(sent_at__lt=before).order_by("sent_at")
    while ids := list(rows.values_list("id", flat=True)[:BATCH]):
        SentEmail.objects.filter(id__in=ids).delete()
        yield len(ids)
