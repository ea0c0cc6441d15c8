"""Make whatever was asked for: a booking of its own time, a series of them, a seat in a group."""

from datetime import datetime

from bookings.models import Booking
from bookings.places import Place
from bookings.services.create import NewBooking, create_booking
from bookings.services.history import Actor
from bookings.services.seats import NewSeat, create_seat
from bookings.services.series import NewSeries, create_series


def make_booking(
    new: NewBooking | NewSeat, *, place: Place, actor: Actor, now: datetime
) -> Booking:
    """Raises what `create_booking`, `create_series` and `create_seat` do: nothing was made."""
    if isinstance(new, NewSeat):
        return create_seat(new, place=place, actor=actor, now=now)
    if isinstance(new, NewSeries):
        return create_series(new, place=place, actor=actor, now=now)
    return create_booking(new, place=place, actor=actor, now=now)
