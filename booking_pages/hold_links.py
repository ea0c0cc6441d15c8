"""Links on which a person books a time that an agent holds: once, and for ten minutes.

A link names the hold and nothing else; its signature is the capability. The booking is made like
one on the project's booking page, so only where that page can be used without a script.
"""

import uuid
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings

from availability.models import Hold, Project
from booking_pages.views.hosted_project_page import MIN_HOLD, can_be_booked, find_graph
from bookings.public_booking_checks import needs_challenge
from bookings.services import needs_verification
from common.errors import Forbidden
from common.signed_links import read_link_expiry, sign_link

SALT = "booking_pages.hold_links"
LINK_LASTS = timedelta(minutes=10)


class BadHoldLink(Forbidden):
    """The signature does not fit the hold, or the link has expired."""


def booking_link(hold: Hold, party_size: int | None = None) -> str:
    """Return the URL on which a person books the hold; "" if it can't be booked that way.

    party_size: of the booking, which the hold does not store. Reads project and app.
    """
    lasts = (hold.expires_at - hold.created_at).total_seconds()
    if lasts < MIN_HOLD or hold.project is None or not is_booked_by_link(hold.project):
        return ""
    size = str(party_size or "")
    signature = sign_link(SALT, _subject(hold.id, size), hold.created_at + LINK_LASTS)
    query = {"party_size": size, "signature": signature} if size else {"signature": signature}
    return f"{settings.PUBLIC_URL}/book/holds/{hold.id}?{urlencode(query)}"


def held_until(hold: Hold) -> datetime:
    """Return when the hold or its link ends, whichever is first."""
    return min(hold.expires_at, hold.created_at + LINK_LASTS)


def is_booked_by_link(project: Project) -> bool:
    """Whether a booking needs nothing but a form: no challenge, no code, no choice of a group."""
    if not project.is_published or needs_challenge(project.app) or needs_verification(project):
        return False
    graph = find_graph(project)
    return graph is not None and not graph.is_seat and can_be_booked(project, graph)


def check_link(hold_id: uuid.UUID, party_size: str, signature: str, *, now: datetime) -> None:
    """Raise BadHoldLink unless the signature is that of a link which has not expired."""
    expiry = read_link_expiry(SALT, _subject(hold_id, party_size), signature)
    if expiry is None or now >= expiry:
        raise BadHoldLink("This link is not valid.")


def _subject(hold_id: uuid.UUID, party_size: str) -> str:
    return f"{hold_id}.{party_size}"
