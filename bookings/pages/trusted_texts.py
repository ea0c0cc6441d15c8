"""The texts of a booking that customers read, in mails, calendar entries and pages.

A public caller can enter anybody's e-mail address. The texts sent to that address therefore contain
nothing that the caller wrote, except the customer's name, shortened. The owner and the API get all
texts.
"""

from bookings.models import Booking, Customer
from bookings.pages.formatting import to_one_line
from common.link_detection import looks_like_link

MAX_NAME = 60


def trusted_text(booking: Booking, name: str) -> str:
    """Return `what`, `where` or `description` of the booking's event as customers read it.

    If a public caller wrote the text, it is empty; `what` is then the name of the project or app.
    Reads event, project and app.
    """
    if name not in (booking.untrusted_texts or ()):
        return getattr(booking.event, name)
    return fallback_title(booking) if name == "what" else ""


def has_untrusted_title(booking: Booking) -> bool:
    """Return whether a public caller wrote `what`."""
    return "what" in (booking.untrusted_texts or ())


def fallback_title(booking: Booking) -> str:
    app = booking.app
    return booking.project.name if booking.project else app.settings.get("from_name") or app.name


def customer_name(booking: Booking, customer: Customer) -> str:
    """Return the customer's name as customers read it.

    Of a public booking: shortened, or "" if it may be a link.
    """
    name = to_one_line(customer.name)
    if not booking.is_public:
        return name
    return "" if looks_like_link(customer.name) else to_one_line(name, MAX_NAME)
