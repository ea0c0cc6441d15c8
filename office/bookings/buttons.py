"""The buttons of a booking: actions of its graph, and whether the customer came."""

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from availability.models import Event
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.services.edit_fields import OUTCOME_BEFORE
from office.base.lazy_text import LazyText

# The style of each action's button.
BUTTONS = {
    "confirm": "primary",
    "pay": "primary",
    "complete": "default",
    "decline": "danger",
    "cancel": "danger",
    "cancel_by_customer": "danger",
    "cancel_by_owner": "danger",
}
# The values sent; an empty one clears the outcome.
OUTCOME_BUTTONS = (
    # Translators: button: the customer came to the booking.
    ("attended", _("Attended")),
    # Translators: button: the customer did not come to the booking.
    ("no_show", _("No show")),
    # Translators: button: forget whether the customer came.
    ("", pgettext_lazy("outcome of a booking", "Clear")),
)


def outcome_buttons(booking: Booking, event: Event) -> list[tuple[str, LazyText]]:
    """Return the outcome buttons from an hour before the start, without the current outcome."""
    takes_place = GRAPHS[booking.graph].takes_place(booking.state)
    is_early = timezone.now() < event.start - OUTCOME_BEFORE
    if is_early or not (takes_place or booking.outcome):
        return []
    offered = OUTCOME_BUTTONS if takes_place else OUTCOME_BUTTONS[-1:]
    return [button for button in offered if button[0] != (booking.outcome or "")]
