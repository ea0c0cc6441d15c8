"""Signed links that end an app's reminders to a customer (RFC 8058: one click, no log-in)."""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings

from bookings.models import Customer
from common.errors import Forbidden
from common.signed_links import read_link_expiry, sign_link

SALT = "notifications.unsubscribe"
LINK_LASTS = timedelta(days=365)


class BadUnsubscribeLink(Forbidden):
    """The signature does not fit the customer's present address, or the link has expired."""


def unsubscribe_headers(customer: Customer, sent_at: datetime) -> dict[str, str]:
    """The header fields of a reminder."""
    signature = sign_link(SALT, _subject(customer), sent_at + LINK_LASTS)
    address = f"{settings.PUBLIC_URL}/v2/customers/{customer.pk}/unsubscribe"
    return {
        "List-Unsubscribe": f"<{address}?{urlencode({'signature': signature})}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def check_unsubscribe_link(customer: Customer | None, signature: str, *, now: datetime) -> Customer:
    """The customer. Raises BadUnsubscribeLink."""
    subject = _subject(customer) if customer and customer.email else ""
    expiry = read_link_expiry(SALT, subject, signature) if subject else None
    if customer is None or expiry is None or now >= expiry:
        raise BadUnsubscribeLink("This link is not valid.")
    return customer


def _subject(customer: Customer) -> str:
    return f"{customer.pk} {customer.address}"
