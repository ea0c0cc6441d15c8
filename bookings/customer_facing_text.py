"""The texts of a booking that customers read, in mails, calendar entries and pages.

A public caller can enter anybody's address. What such a booking sends there contains no text of
the caller but the customer's name, shortened. The owner and the API read everything.
"""

from bookings.formatting import to_one_line
from bookings.models import Booking, Customer
from common.link_detection import looks_like_link

MAX_NAME = 60


def customer_text(booking: Booking, name: str) -> str:
    """`what`, `where` or `description` of the booking's event as customers read it.

    Reads event, project and app. Without a title of the owner: the name of the project or app.
    """
    if name not in (booking.untrusted_texts or ()):
        return getattr(booking.event, name)
    return fallback_title(booking) if name == "what" else ""


def fallback_title(booking: Booking) -> str:
    app = booking.app
    return booking.project.name if booking.project else app.settings.get("from_name") or app.name


def customer_name(booking: Booking, customer: Customer) -> str:
    """The customer's name as customers read it; "" for a public booking if it may be a link."""
    name = to_one_line(customer.name)
    if not booking.is_public:
        return name
    return "" if looks_like_link(customer.name) else to_one_line(name, MAX_NAME)
