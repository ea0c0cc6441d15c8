"""The e-mails that an action on a booking will send, for the confirmation page."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.graphs import CUSTOMER, GRAPHS
from bookings.models import Booking
from notifications.mail.recipients import Recipients
from notifications.planning import MAILS
from office.base.labels import mail_words, sends_emails

MAX_NAMED = 10


def mail_lines(booking: Booking, action: str, addressees: Recipients) -> list[str]:
    """Return lines such as `Ann, ann@example.com: Cancellation e-mail`, including those of a
    group's seats. `addressees`: of the booking's app.
    """
    if not sends_emails(booking.app):
        return [_("No e-mail is sent. The app's e-mails are off.")]
    state = GRAPHS[booking.graph].steps[booking.state, action]
    lines = [
        _mail_line(receiver, state)
        for recipient in MAILS.get(state, ())
        for receiver in _receivers(booking, recipient, addressees)
    ]
    lines += _lines_of_seats(booking, action, addressees)
    if len(lines) > MAX_NAMED:
        count = len(lines) - MAX_NAMED
        more = ngettext("and %(count)s more e-mail", "and %(count)s more e-mails", count)
        return [*lines[:MAX_NAMED], more % {"count": count}]
    return lines or [_("No e-mail is sent.")]


def _mail_line(receiver: str, state: str) -> str:
    # Translators: who gets which e-mail: "Ann, ann@example.com: Cancellation e-mail".
    return _("%(receiver)s: %(mail)s") % {"receiver": receiver, "mail": mail_words(state)}


def _receivers(booking: Booking, recipient: str, addressees: Recipients) -> Iterator[str]:
    if recipient == CUSTOMER:
        for customer in booking.customers.all():
            if addressees.allowed(booking.app, [customer.email]):
                yield f"{customer.name}, {customer.email}"
        return
    of_owner = addressees.of_owner(booking.app, booking.resource)
    if addresses := addressees.allowed(booking.app, of_owner):
        yield _("The owner, %(addresses)s") % {"addresses": ", ".join(addresses)}


def _lines_of_seats(booking: Booking, action: str, addressees: Recipients) -> list[str]:
    """Return the lines for the seats' customers. The owner is notified by the group's own
    booking.
    """
    follow = GRAPHS[booking.graph].seats_follow.get(action)
    if not follow:
        return []
    lines = []
    for seat in booking.seats.prefetch_related("customers"):
        state = GRAPHS[seat.graph].next_state(seat.state, follow)
        if state and CUSTOMER in MAILS.get(state, ()):
            seat.app = booking.app
            receivers = _receivers(seat, CUSTOMER, addressees)
            lines += [_mail_line(receiver, state) for receiver in receivers]
    return lines
