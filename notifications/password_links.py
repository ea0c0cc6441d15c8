"""Addresses that let whoever reads a resource's mail choose its password (api.md section 4).

The signature covers the resource, its address, the hash of its password and the link's expiry,
which stands in it readable: it dies with the password that it replaces, and is of use once.
"""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, Signer

from availability.models import Resource
from scheduling.api.errors import Forbidden

SALT = "notifications.password_links"
LINK_LASTS = timedelta(hours=1)


class BadPasswordLink(Forbidden):
    """It was not made for this resource as it is now, or it has expired."""


def password_url(resource: Resource, expires_at: datetime) -> str:
    """The absolute address of the page on which a password is chosen until `expires_at`."""
    subject = _subject(resource)
    signature = _signer().sign(f"{subject}{int(expires_at.timestamp())}").removeprefix(subject)
    address = f"{settings.PUBLIC_URL}/v2/resources/{resource.id}/password"
    return f"{address}?{urlencode({'signature': signature})}"


def check_link(resource: Resource | None, signature: str, *, now: datetime) -> None:
    """Raise BadPasswordLink unless the link was made for the resource as it is, and still holds."""
    if resource is None:
        raise BadPasswordLink("This link is not valid.")
    subject = _subject(resource)
    try:
        expiry = _signer().unsign(f"{subject}{signature}").removeprefix(subject)
    except BadSignature:
        raise BadPasswordLink("This link is not valid.") from None
    if now >= datetime.fromtimestamp(int(expiry), UTC):
        raise BadPasswordLink("This link has expired.")


def _subject(resource: Resource) -> str:
    return f"{resource.id}.{resource.email}.{resource.password}."


def _signer() -> Signer:
    """Made anew each time: the keys are the settings of now."""
    return Signer(salt=SALT, sep=".")
