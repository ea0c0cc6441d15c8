"""The participants of a class: the customers of its seats."""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext

from bookings.graphs import SEATED
from bookings.models import Booking, Customer
from office.base.labels import STATE_COLOURS, state_words
from office.base.lazy_text import LazyText
from office.bookings.buttons import outcome_buttons

MAX_LISTED = 1000  # seats of any state


class Participant(NamedTuple):
    """A seat with its customers. `outcomes`: the buttons (value, words) for whether they came."""

    seat: Booking
    customers: Sequence[Customer]
    state: str
    colour: str
    outcomes: Sequence[tuple[str, LazyText]]


class Participants(NamedTuple):
    """`called_off`: seats that are free again."""

    taken: Sequence[Participant]
    called_off: Sequence[Participant]
    seats: int

    @property
    def words(self) -> str:
        # Translators: seats of a class: "2 of 12".
        taken = sum(participant.seat.units for participant in self.taken)
        given = {"taken": taken, "seats": self.seats}
        return gettext("%(taken)s of %(seats)s") % given


def read_participants(group: Booking) -> Participants:
    """Return the seats of a group by the time of booking. Two queries."""
    rows = group.seats.filter(deleted_at=None).select_related("project")
    rows = rows.prefetch_related("customers").order_by("created_at", "id")
    seats = list(rows[:MAX_LISTED])
    lines = [
        Participant(
            seat,
            list(seat.customers.all()),
            state_words(seat.outcome or seat.state),
            STATE_COLOURS.get(seat.outcome or seat.state, "info"),
            outcome_buttons(seat, group.event),
        )
        for seat in seats
    ]
    return Participants(
        [line for line in lines if line.seat.state in SEATED],
        [line for line in lines if line.seat.state not in SEATED],
        group.max_seats or 0,
    )


def seats_to_mail(group: Booking) -> list[Booking]:
    """Return the taken seats, one for each e-mail address: nobody gets a message twice."""
    seen: set[str] = set()
    found = []
    for participant in read_participants(group).taken:
        addresses = {customer.address for customer in participant.customers if customer.email}
        if addresses - seen:
            found.append(participant.seat)
            seen |= addresses
    return found
