"""Take a seat in a group: counted under the lock of the owner's booking, so never oversold."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from bookings.graphs import SEATED
from bookings.models import Booking
from bookings.places import Place
from bookings.services.create import Agreement, new_row, write_bookings
from bookings.services.history import Actor
from bookings.services.locks import lock_booking
from bookings.services.refusals import ActionNotAllowed, PolicyViolated
from scheduling.api.durations import elapsed_seconds
from scheduling.api.errors import Invalid, NotFound, Refusal

OWNER_PATH = "related.owner_booking_id"


class GroupFull(Refusal):
    """Every seat of the group is taken."""

    code = "group_full"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeat(Agreement):
    """A seat to be taken. start, end, resource_id: what the client thinks the owner's are, if it
    said so; paths: where. not_begun: refuse a group that has begun, as rules that are always
    enforced do."""

    owner_id: uuid.UUID
    start: datetime | None = None
    end: datetime | None = None
    resource_id: uuid.UUID | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    not_begun: bool = False


def create_seat(new: NewSeat, *, place: Place, actor: Actor, now: datetime) -> Booking:
    """Take a seat or leave nothing behind.

    Raises Invalid (no such group, another time than the group's), ActionNotAllowed (the group is
    cancelled or over), PolicyViolated (outside its booking window), GroupFull.
    """
    with transaction.atomic():
        owner = _lock_owner(new, place)
        if owner.completed:
            raise ActionNotAllowed(owner, new.action)
        check_window(owner, now, not_begun=new.not_begun)
        if count_seats(owner) >= (owner.max_seats or 0):
            raise GroupFull("Every seat of the group is taken.")
        seat = new_row(
            new,
            owner.event,
            place=place,
            now=now,
            end=owner.event.end,
            owner_booking=owner,
            # Its time is never checked: the owner's was.
            allow_double_bookings=False,
            enforce_availability=False,
        )
        write_bookings([seat], new, place=place, actor=actor, now=now)
    return seat


def _lock_owner(new: NewSeat, place: Place) -> Booking:
    try:
        owner = lock_booking(place.app, new.owner_id)
    except NotFound:
        raise Invalid.at(OWNER_PATH, "There is no such group any more.") from None
    given = {"start": new.start, "end": new.end, "resource_id": new.resource_id}
    held = {
        "start": owner.event.start,
        "end": owner.event.end,
        "resource_id": owner.event.resource_id,
    }
    errors = {
        new.paths[name]: ["Differs from the group's."]
        for name, value in given.items()
        if value is not None and value != held[name]
    }
    if errors:
        raise Invalid(errors)
    return owner


def count_seats(owner: Booking) -> int:
    return Booking.objects.filter(owner_booking=owner, state__in=SEATED, deleted_at=None).count()


def check_window(owner: Booking, now: datetime, *, not_begun: bool) -> None:
    """The group's booking window: so long before its start and no later, so long and no earlier."""
    start, policies = owner.event.start, owner.policies
    least = policies.get("min_booking_time", "0 minutes" if not_begun else None)
    if least is not None and now > start - timedelta(seconds=elapsed_seconds(least)):
        raise PolicyViolated("min_booking_time", least)
    most = policies.get("max_booking_time")
    if most is not None and now < start - timedelta(seconds=elapsed_seconds(most)):
        raise PolicyViolated("max_booking_time", most)
