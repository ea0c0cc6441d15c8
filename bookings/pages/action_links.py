"""Signed links: whoever has one can apply one action to one booking (api.md section 5).

They work until the event ends, or until `Booking.link_version` is raised.
"""

import uuid
from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings

from apps_config.models import App
from availability.payment_links import payment_url
from bookings.graphs import GRAPHS
from bookings.models import Booking
from common.errors import Forbidden
from common.signed_links import read_link_expiry, sign_link

SALT = "bookings.links"
RESCHEDULE = "reschedule"
CALENDAR = "calendar"
PAY = "pay"


class BadLink(Forbidden):
    """The signature fits neither this booking nor this action, or the link has ended."""


def action_url(booking: Booking, action: str, event_end: datetime) -> str:
    """Return the absolute URL of a link that is valid until `event_end`."""
    signature = sign_link(SALT, _subject(booking.id, booking.link_version, action), event_end)
    return f"{unsigned_action_url(booking, action)}?{urlencode({'signature': signature})}"


def unsigned_action_url(booking: Booking, action: str) -> str:
    """Return the URL without signature; rescheduling has a page of its own to choose a time, the
    entry for the customer's calendar is a file.
    """
    if action == RESCHEDULE:
        return f"{settings.PUBLIC_URL}/book/bookings/{booking.id}/reschedule"
    if action == CALENDAR:
        return f"{settings.PUBLIC_URL}/book/bookings/{booking.id}/calendar.ics"
    return f"{settings.PUBLIC_URL}/v2/bookings/{booking.id}/external_action/{action}"


def office_booking_url(booking: Booking) -> str:
    """Return the address of the booking in the back office, which asks for a log-in."""
    return f"{settings.PUBLIC_URL}/admin/bookings/booking/{booking.id}/change/"


def own_bookings_path(app: App) -> str:
    """Return the path of the page on which a customer requests a link to all their bookings."""
    return f"/book/{app.slug}/mine"


def project_page_path(booking: Booking) -> str:
    """Return the path of the project's booking page; "" if it has none."""
    project = booking.project
    if project is None or project.deleted_at or not project.is_published:
        return ""
    return f"/book/{project.slug}"


def payment_address(booking: Booking) -> str:
    """Return the link to the project's payment page; "" unless the booking awaits its payment.

    Reads event and project.
    """
    project = booking.project
    if not GRAPHS[booking.graph].awaits_payment(booking.state):
        return ""
    if project is None or booking.expires_at is None:
        return ""
    return payment_url(
        project, booking_id=booking.id, start=booking.event.start, until=booking.expires_at
    )


def read_expiry(booking_id: uuid.UUID, action: str, signature: str, *, version: int) -> datetime:
    """Return when the link expires. `version`: the booking's `link_version`.

    Raises BadLink for a signature of another booking, action or version.
    """
    expiry = read_link_expiry(SALT, _subject(booking_id, version, action), signature)
    if expiry is None:
        raise BadLink("This link is not valid.")
    return expiry


def _subject(booking_id: uuid.UUID, version: int, action: str) -> str:
    return f"{booking_id}.{version}.{action}"
