"""Addresses that let whoever holds them carry out one action on one booking (api.md section 5).

The signature covers the booking, the action and the link's expiry, which stands in it readable:
`1795597200.7Wm3…`. It is the whole capability: no key, no cookie.
"""

import uuid
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, Signer

from bookings.models import Booking
from scheduling.api.errors import Forbidden

SALT = "bookings.links"
RESCHEDULE = "reschedule"


class BadLink(Forbidden):
    """The signature fits neither this booking nor this action, or the link has expired."""


def action_url(booking: Booking, action: str, event_end: datetime) -> str:
    """The absolute address of a link that works until `event_end`."""
    subject = _subject(booking.id, action)
    signature = _signer().sign(f"{subject}{int(event_end.timestamp())}").removeprefix(subject)
    return f"{action_address(booking, action)}?{urlencode({'signature': signature})}"


def action_address(booking: Booking, action: str) -> str:
    """The same address without its signature: a move has a page to choose its time on."""
    if action == RESCHEDULE:
        return f"{settings.PUBLIC_URL}/book/bookings/{booking.id}/reschedule"
    return f"{settings.PUBLIC_URL}/v2/bookings/{booking.id}/external_action/{action}"


def read_expiry(booking_id: uuid.UUID, action: str, signature: str) -> datetime:
    """Until when a link works. Raises BadLink where it was not made for this booking and action."""
    subject = _subject(booking_id, action)
    try:
        expiry = _signer().unsign(f"{subject}{signature}").removeprefix(subject)
    except BadSignature:
        raise BadLink("This link is not valid.") from None
    return datetime.fromtimestamp(int(expiry), UTC)


def _subject(booking_id: uuid.UUID, action: str) -> str:
    return f"{booking_id}.{action}."


def _signer() -> Signer:
    """Made anew each time: the keys are the settings of now."""
    return Signer(salt=SALT, sep=".")
