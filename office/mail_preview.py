"""Which e-mails an action on a booking sends, for the page that asks first."""

from collections.abc import Iterator

from bookings.graphs import CUSTOMER, GRAPHS
from bookings.models import Booking
from notifications.addressees import Addressees
from notifications.planning import MAILS
from office.words import state_words

MAX_NAMED = 10


def mail_lines(booking: Booking, action: str, addressees: Addressees) -> list[str]:
    """`Ann, ann@example.com: the “cancelled” e-mail`; those of a group's seats too. `addressees`:
    of the booking's app."""
    if booking.app.settings.get("disable_emails"):
        return ["No e-mail is sent: the app's e-mails are switched off."]
    state = GRAPHS[booking.graph].steps[booking.state, action]
    lines = [
        f"{receiver}: the “{state_words(state)}” e-mail"
        for recipient in MAILS.get(state, ())
        for receiver in _receivers(booking, recipient, addressees)
    ]
    lines += _lines_of_seats(booking, action, addressees)
    if len(lines) > MAX_NAMED:
        return [*lines[:MAX_NAMED], f"and {len(lines) - MAX_NAMED} more e-mails"]
    return lines or ["No e-mail is sent."]


def _receivers(booking: Booking, recipient: str, addressees: Addressees) -> Iterator[str]:
    if recipient == CUSTOMER:
        for customer in booking.customers.all():
            if addressees.allowed(booking.app, [customer.email]):
                yield f"{customer.name}, {customer.email}"
        return
    of_owner = addressees.of_owner(booking.app, booking)
    if addresses := addressees.allowed(booking.app, of_owner):
        yield f"The owner, {', '.join(addresses)}"


def _lines_of_seats(booking: Booking, action: str, addressees: Addressees) -> list[str]:
    """The owner hears of it by the group's own booking."""
    follow = GRAPHS[booking.graph].seats_follow.get(action)
    if not follow:
        return []
    lines = []
    for seat in booking.seats.prefetch_related("customers"):
        state = GRAPHS[seat.graph].next_state(seat.state, follow)
        if state and CUSTOMER in MAILS.get(state, ()):
            seat.app = booking.app
            receivers = _receivers(seat, CUSTOMER, addressees)
            lines += [f"{receiver}: the “{state_words(state)}” e-mail" for receiver in receivers]
    return lines
