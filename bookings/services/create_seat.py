"""Book seats in a group: counted under the lock of the owner's booking, so never oversold."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from bookings.booking_target import BookingTarget
from bookings.models import Booking, SeatHold
from bookings.services.create import BookingDraft, new_row, write_bookings
from bookings.services.errors import ActionNotAllowed, PolicyViolated
from bookings.services.locks import lock_booking
from bookings.services.seat_counts import GroupFull, check_seats_are_free
from bookings.services.seat_holds import use_seat_hold
from bookings.services.transition_log import Actor
from common.errors import Invalid, NotFound
from common.time.durations import elapsed_seconds

OWNER_PATH = "related.owner_booking_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeat(BookingDraft):
    """Seats to book, with one booking.

    quantity: how many. place: of a group with places. hold: that keeps them. start, end,
    resource_id: the owner's values according to the client, if given. paths: key -> path in the
    client's body. not_begun: refuse a group that has begun (widget keys).
    """

    owner_id: uuid.UUID
    quantity: int = 1
    place: str | None = None
    hold: SeatHold | None = None
    start: datetime | None = None
    end: datetime | None = None
    resource_id: uuid.UUID | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    not_begun: bool = False


def create_seat(new: NewSeat, *, target: BookingTarget, actor: Actor, now: datetime) -> Booking:
    """Book seats in one transaction.

    Raises Invalid (no such group or place, another time than the group's), ActionNotAllowed (the
    group is cancelled or over), PolicyViolated (outside its booking window), GroupFull,
    HoldExpired.
    """
    with seat_guard(), transaction.atomic():
        owner = lock_group_with_free_seat(new, target, now)
        owner.event.resource = owner.resource  # read with the booking
        seat = new_row(
            new,
            owner.event,
            target=target,
            now=now,
            end=owner.event.end,
            owner_booking=owner,
            place=new.place,
            # The owner's time was checked; a seat has no time of its own.
            allow_double_bookings=False,
            enforce_availability=False,
        )
        write_bookings([seat], new, target=target, actor=actor, now=now)
    return seat


def lock_group_with_free_seat(new: NewSeat, target: BookingTarget, now: datetime) -> Booking:
    """Lock the group of new seats, and use up their hold; raises what `create_seat` raises."""
    owner = _lock_owner(new, target)
    if owner.completed:
        raise ActionNotAllowed(owner, new.action)
    check_booking_window(owner, now, not_begun=new.not_begun)
    check_place(owner, new.place)
    if new.hold:
        use_seat_hold(new.hold, now=now)
    check_seats_are_free(owner, new.quantity, new.place, now=now)
    return owner


@contextmanager
def seat_guard() -> Iterator[None]:
    """Raise GroupFull if the database refuses one seat too many."""
    try:
        yield
    except IntegrityError as error:
        if "group_full" not in str(error):
            raise
        raise GroupFull from error


def check_place(group: Booking, place: str | None) -> None:
    """Raise Invalid unless the place is one of the group's, or it has none."""
    if group.places is None and place is not None:
        raise Invalid.at("place", "The group has no places.")
    if group.places is not None and place not in group.places:
        raise Invalid.at("place", f"Must be one of {', '.join(sorted(group.places))}.")


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


def check_booking_window(owner: Booking, now: datetime, *, not_begun: bool) -> None:
    """Raise PolicyViolated outside the group's minimum and maximum time before its start."""
    start, policies = owner.event.start, owner.policies
    least = policies.get("min_booking_time", "0 minutes" if not_begun else None)
    if least is not None and now > start - timedelta(seconds=elapsed_seconds(least)):
        raise PolicyViolated("min_booking_time", least)
    most = policies.get("max_booking_time")
    if most is not None and now < start - timedelta(seconds=elapsed_seconds(most)):
        raise PolicyViolated("max_booking_time", most)
