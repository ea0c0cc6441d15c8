"""Addresses that let whoever reads a resource's mail choose its password (api.md section 4).

The signature covers the resource, its address and the hash of its password: it dies with the
password that it replaces, and is of use once.
"""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings

from availability.models import Resource
from common.errors import Forbidden
from common.signed_links import read_link_expiry, sign_link

RESET_MAIL = "password_reset"

SALT = "notifications.password_links"
LINK_LASTS = timedelta(hours=1)


class BadPasswordLink(Forbidden):
    """It was not made for this resource as it is now, or it has expired."""


def password_url(resource: Resource, expires_at: datetime) -> str:
    """The absolute address of the page on which a password is chosen until `expires_at`."""
    signature = sign_link(SALT, _subject(resource), expires_at)
    address = f"{settings.PUBLIC_URL}/v2/resources/{resource.id}/password"
    return f"{address}?{urlencode({'signature': signature})}"


def check_password_link(resource: Resource | None, signature: str, *, now: datetime) -> Resource:
    """The resource. Raises BadPasswordLink unless the link was made for the resource as it is, and
    still holds."""
    expiry = read_link_expiry(SALT, _subject(resource), signature) if resource else None
    if resource is None or expiry is None:
        raise BadPasswordLink("This link is not valid.")
    if now >= expiry:
        raise BadPasswordLink("This link has expired.")
    return resource


def _subject(resource: Resource) -> str:
    return f"{resource.id}.{resource.email}.{resource.password}"
