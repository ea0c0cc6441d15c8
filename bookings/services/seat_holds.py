"""Find, extend, release and use holds of seats. Their changes are serialised by the lock on the
hold's row; competing bookings and holds by the lock on the group.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from apps_config.models import App
from availability.reserve.holds import (
    KEPT_FOR,
    PURGE_SLICE,
    ExtensionsUsed,
    HoldExpired,
    check_open_holds,
)
from bookings.models import Booking, SeatHold
from bookings.services.errors import ActionNotAllowed
from common.db.batching import delete_in_batches
from common.errors import NotFound


def find_seat_hold(app: App, hold_id: UUID) -> SeatHold | None:
    """The app's hold of seats with this id, with its group. One query."""
    related = ("group__project", "group__resource", "group__event")
    return SeatHold.objects.filter(app=app, id=hold_id).select_related(*related).first()


def extend_seat_hold(
    hold: SeatHold, *, seconds: int, now: datetime, max_extensions: int | None = None
) -> SeatHold:
    """Extend a hold to `seconds` from now. Raises HoldExpired, ExtensionsUsed, NotFound, and
    ActionNotAllowed if the group is over or cancelled.
    """
    with transaction.atomic():
        group = Booking.objects.select_for_update(no_key=True).get(id=hold.group_id)
        locked = _lock_lasting(hold, now)
        if group.completed:
            raise ActionNotAllowed(group, "hold")
        if max_extensions is not None and locked.extensions >= max_extensions:
            raise ExtensionsUsed(max_extensions)
        hold.expires_at = now + timedelta(seconds=seconds)
        SeatHold.objects.filter(id=hold.id).update(
            expires_at=hold.expires_at, extensions=F("extensions") + 1
        )
    return hold


def release_seat_hold(hold: SeatHold, *, now: datetime) -> None:
    """Release a hold: sets `expires_at` to `created_at`. Raises HoldExpired, NotFound."""
    with transaction.atomic():
        _lock_lasting(hold, now)
        SeatHold.objects.filter(id=hold.id).update(expires_at=F("created_at"))


def use_seat_hold(hold: SeatHold, *, now: datetime) -> None:
    """Mark a hold as used by the booking of this transaction. Raises HoldExpired, NotFound."""
    _lock_lasting(hold, now)
    SeatHold.objects.filter(id=hold.id).update(used_at=now)


def _lock_lasting(hold: SeatHold, now: datetime) -> SeatHold:
    locked = SeatHold.objects.select_for_update(no_key=True).filter(id=hold.id).first()
    if locked is None or locked.expires_at <= locked.created_at:
        raise NotFound("Hold")
    if locked.used_at or locked.expires_at <= now:
        raise HoldExpired
    return locked


def check_open_holds_of_address(app: App, client_address: str, *, now: datetime) -> None:
    """Check the open holds of a public caller's address: of times and of seats.

    Raises RateLimited.
    """

    def expiries() -> list[datetime]:
        rows = SeatHold.objects.filter(
            app=app, client_address=client_address, used_at=None, expires_at__gt=now
        )
        found = rows.order_by().values_list("expires_at", "quantity")
        return [expires_at for expires_at, quantity in found for _ in range(quantity)]

    check_open_holds(app, client_address, others=expiries, now=now)


def purge_seat_holds(*, now: datetime) -> Iterator[int]:
    """Delete holds that expired a day ago, in batches; yields the size of each."""
    lapsed = SeatHold.objects.filter(expires_at__lte=now - KEPT_FOR)
    yield from delete_in_batches(lapsed, "expires_at", PURGE_SLICE)
