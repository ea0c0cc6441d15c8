"""Links that show a customer all bookings of their e-mail address in an app.

The token of a link is signed and names the app, the address, the expiry and the delivery that
brings it, which is the nonce: a link works once. The link is created when its e-mail is sent, and
is stored nowhere.
"""

import uuid
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, Signer

from apps_config.models import App
from apps_config.public_limits import BOOKING_LINKS, count_first_use
from bookings.pages.action_links import own_bookings_path
from common.errors import Forbidden
from common.time.instants import to_datetime

LINK_MAIL = "own_bookings_link"
LINK_LASTS = timedelta(minutes=15)

SALT = "notifications.links.own_bookings"


class BadOwnBookingsLink(Forbidden):
    """The link is damaged, belongs to another app, has expired or was already used."""


class OwnBookingsLink(NamedTuple):
    email: str
    nonce: str
    expires_at: datetime


def own_bookings_url(app: App, email: str, *, nonce: uuid.UUID, expires_at: datetime) -> str:
    """The absolute address of a link."""
    content = {
        "app": str(app.id),
        "email": email,
        "nonce": str(nonce),
        "expires": int(expires_at.timestamp()),
    }
    token = Signer(salt=SALT).sign_object(content)
    return f"{settings.PUBLIC_URL}{own_bookings_path(app)}/open?{urlencode({'token': token})}"


def read_link(app: App, token: str, *, now: datetime) -> OwnBookingsLink:
    """The content of a link, which may be used already. Raises BadOwnBookingsLink."""
    try:
        content = Signer(salt=SALT).unsign_object(token)
    except (BadSignature, ValueError) as error:
        raise BadOwnBookingsLink("This link is not valid.") from error
    expires_at = to_datetime(content["expires"])
    if content["app"] != str(app.id) or now >= expires_at:
        raise BadOwnBookingsLink("This link is not valid.")
    return OwnBookingsLink(content["email"], content["nonce"], expires_at)


def use_link(app: App, token: str, *, now: datetime) -> str:
    """Use up a link; returns the address. Raises BadOwnBookingsLink."""
    link = read_link(app, token, now=now)
    if not count_first_use(app, f"{BOOKING_LINKS}:used", link.nonce, link.expires_at):
        raise BadOwnBookingsLink("This link was already used.")
    return link.email
