"""The seats of a group that are taken: by bookings, by holds, and by what waits for its code."""

import uuid
from collections import Counter
from collections.abc import Collection
from datetime import datetime

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce

from bookings.graphs import SEATED
from bookings.models import Booking, SeatHold, UnverifiedBooking
from common.errors import Refusal
from common.messages import Message

# Of rows that count one seat without a number.
SEATS = Sum(Coalesce("quantity", Value(1)))


class GroupFull(Refusal):
    """Too few seats of the group, or of its place, are free."""

    code = "group_full"

    def __init__(self, left: int = 0) -> None:
        super().__init__(
            Message("Free seats: %(count)s.", count=left)
            if left > 0
            else Message("Every seat of the group is taken.")
        )


def seats_of(group: Booking | OuterRef) -> QuerySet[Booking]:
    """The bookings that take seats of the group."""
    return Booking.objects.filter(owner_booking=group, state__in=SEATED, deleted_at=None)


def unverified_seats(group: Booking | OuterRef, now: datetime) -> QuerySet[UnverifiedBooking]:
    """The requests for seats that wait for the code of an e-mail."""
    return UnverifiedBooking.objects.filter(group=group, ended_at=None, expires_at__gt=now)


def held_seats(group: Booking | OuterRef, now: datetime) -> QuerySet[SeatHold]:
    """The lasting holds of seats."""
    return SeatHold.objects.filter(group=group, used_at=None, expires_at__gt=now)


def held_seats_column(now: datetime) -> CombinedExpression:
    """The held seats of a group, as a column of a query of groups."""
    group = OuterRef("pk")
    return _count_column(unverified_seats(group, now), "group") + _count_column(
        held_seats(group, now), "group"
    )


def _count_column(rows: QuerySet, by: str) -> Coalesce:
    counts = rows.order_by().values(by).annotate(n=SEATS).values("n")
    return Coalesce(Subquery(counts, output_field=IntegerField()), 0)


def taken_seats(
    group: Booking, now: datetime, *, without: Collection[uuid.UUID] = ()
) -> Counter[str | None]:
    """The taken and held seats of a group by place; None: those without one. Three queries.

    without: ids of bookings and holds to leave out.
    """
    taken: Counter[str | None] = Counter()
    for rows in (seats_of(group), unverified_seats(group, now), held_seats(group, now)):
        rows = rows.exclude(id__in=without).order_by()
        taken.update(dict(rows.values_list("place").annotate(number=SEATS)))
    return taken


def check_seats_are_free(
    group: Booking,
    quantity: int,
    place: str | None,
    *,
    now: datetime,
    without: Collection[uuid.UUID] = (),
) -> None:
    """Raise GroupFull unless so many seats of the locked group are free, at its place if it has
    places.
    """
    taken = taken_seats(group, now, without=without)
    left = (group.max_seats or 0) - taken.total()
    if group.places is not None:
        left = min(left, group.places.get(place, 0) - taken[place])
    if quantity > left:
        raise GroupFull(left)
