"""Book a seat in a group: counted under the lock of the owner's booking, so never oversold."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from bookings.booking_target import BookingTarget
from bookings.graphs import SEATED
from bookings.models import Booking, UnverifiedBooking
from bookings.services.create import BookingDraft, new_row, write_bookings
from bookings.services.errors import ActionNotAllowed, PolicyViolated
from bookings.services.locks import lock_booking
from bookings.services.transition_log import Actor
from common.errors import Invalid, NotFound, Refusal
from common.messages import Message
from common.time.durations import elapsed_seconds

OWNER_PATH = "related.owner_booking_id"


class GroupFull(Refusal):
    """All seats of the group are taken."""

    code = "group_full"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeat(BookingDraft):
    """A seat to book.

    start, end, resource_id: the owner's values according to the client, if given. paths: key ->
    path in the client's body. not_begun: refuse a group that has begun (widget keys).
    """

    owner_id: uuid.UUID
    start: datetime | None = None
    end: datetime | None = None
    resource_id: uuid.UUID | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    not_begun: bool = False


def create_seat(new: NewSeat, *, target: BookingTarget, actor: Actor, now: datetime) -> Booking:
    """Book a seat in one transaction.

    Raises Invalid (no such group, another time than the group's), ActionNotAllowed (the group is
    cancelled or over), PolicyViolated (outside its booking window), GroupFull.
    """
    with transaction.atomic():
        owner = lock_group_with_free_seat(new, target, now)
        owner.event.resource = owner.resource  # read with the booking
        seat = new_row(
            new,
            owner.event,
            target=target,
            now=now,
            end=owner.event.end,
            owner_booking=owner,
            # The owner's time was checked; a seat has no time of its own.
            allow_double_bookings=False,
            enforce_availability=False,
        )
        write_bookings([seat], new, target=target, actor=actor, now=now)
    return seat


def lock_group_with_free_seat(new: NewSeat, target: BookingTarget, now: datetime) -> Booking:
    """Lock the group of a new seat; raises what `create_seat` raises."""
    owner = _lock_owner(new, target)
    if owner.completed:
        raise ActionNotAllowed(owner, new.action)
    check_booking_window(owner, now, not_begun=new.not_begun)
    if count_seats(owner) + count_held_seats(owner, now) >= (owner.max_seats or 0):
        raise GroupFull(Message("Every seat of the group is taken."))
    return owner


def count_held_seats(owner: Booking, now: datetime) -> int:
    """Count the seats that are held until their e-mail address is verified."""
    return held_seats(owner, now).count()


def held_seats_column(now: datetime) -> Coalesce:
    """Return the count of `count_held_seats` as a column of a query of groups."""
    counts = held_seats(OuterRef("pk"), now).order_by().values("group").annotate(n=Count("pk"))
    return Coalesce(Subquery(counts.values("n")), 0)


def held_seats(group: Booking | OuterRef, now: datetime) -> QuerySet[UnverifiedBooking]:
    """The seats of `count_held_seats`."""
    return UnverifiedBooking.objects.filter(group=group, ended_at=None, expires_at__gt=now)


def _lock_owner(new: NewSeat, target: BookingTarget) -> Booking:
    try:
        owner = lock_booking(target.app, new.owner_id)
    except NotFound:
        raise Invalid.at(OWNER_PATH, "The group no longer exists.") from None
    given = {"start": new.start, "end": new.end, "resource_id": new.resource_id}
    held = {
        "start": owner.event.start,
        "end": owner.event.end,
        "resource_id": owner.event.resource_id,
    }
    errors = {
        new.paths[name]: ["Must equal the group's value."]
        for name, value in given.items()
        if value is not None and value != held[name]
    }
    if errors:
        raise Invalid(errors)
    return owner


def count_seats(owner: Booking) -> int:
    return Booking.objects.filter(owner_booking=owner, state__in=SEATED, deleted_at=None).count()


def check_booking_window(owner: Booking, now: datetime, *, not_begun: bool) -> None:
    """Raise PolicyViolated outside the group's minimum and maximum time before its start."""
    start, policies = owner.event.start, owner.policies
    least = policies.get("min_booking_time", "0 minutes" if not_begun else None)
    if least is not None and now > start - timedelta(seconds=elapsed_seconds(least)):
        raise PolicyViolated("min_booking_time", least)
    most = policies.get("max_booking_time")
    if most is not None and now < start - timedelta(seconds=elapsed_seconds(most)):
        raise PolicyViolated("max_booking_time", most)
