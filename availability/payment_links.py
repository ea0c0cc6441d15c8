"""The link by which a customer pays for a booking: the project's payment page, with the booking.

`settings.pay_url` is a template with PLACEHOLDERS and is signed; `booking.payment_url` is the
address of older projects, to which only the booking's id is added.
"""

import base64
import hmac
import re
import uuid
from datetime import datetime
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from availability.graph_names import PAYMENT_GRAPHS
from availability.models import Project
from common.api.fields import is_web_address
from common.keyed_digests import keyed_digest
from common.time.instants import format_instant

SALT = "availability.payment_links"
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
# Without personal data: addresses end in logs. The payment page reads the customer by the API.
PLACEHOLDERS = ("booking_id", "start", "until", "signature")


def lacks_payment_link(project: Project) -> bool:
    """Whether the project's bookings await a payment but no valid payment address is set."""
    is_paid = project.booking.get("graph") in PAYMENT_GRAPHS
    return is_paid and not (_template(project) or _plain_payment_url(project))


def payment_key(project: Project) -> str:
    """Return the key that signs the project's payment links, in base64."""
    return base64.b64encode(keyed_digest(SALT, str(project.id))).decode()


def sign_payment(project: Project, booking_id: uuid.UUID, until: datetime) -> str:
    """Return `1795597200.5d41…`: the deadline in epoch seconds, and the HMAC-SHA256, in hex, of
    booking id, dot and deadline.
    """
    deadline = int(until.timestamp())
    key = base64.b64decode(payment_key(project))
    digest = hmac.digest(key, f"{booking_id}.{deadline}".encode(), "sha256")
    return f"{deadline}.{digest.hex()}"


def payment_url(
    project: Project, *, booking_id: uuid.UUID, start: datetime, until: datetime
) -> str:
    """Return the link to pay the booking by `until`; "" if the project has no payment address."""
    template = _template(project)
    if not template:
        plain = _plain_payment_url(project)
        return with_parameters(plain, {"booking_id": str(booking_id)}) if plain else ""
    values = {
        "booking_id": str(booking_id),
        "start": format_instant(start, "UTC"),
        "until": format_instant(until, "UTC"),
        "signature": sign_payment(project, booking_id, until),
    }
    filled = PLACEHOLDER.sub(lambda match: quote(values.get(match[1], ""), safe=""), template)
    used = set(PLACEHOLDER.findall(template))
    added = {name: values[name] for name in ("booking_id", "signature") if name not in used}
    return with_parameters(filled, added)


def with_parameters(address: str, values: dict[str, str]) -> str:
    """Return the address with these parameters in its query, in place of any that it has."""
    if not values:
        return address
    parts = urlsplit(address)
    kept = [pair for pair in parts.query.split("&") if pair and not _names(pair, values)]
    query = "&".join([*kept, urlencode(values)])
    return urlunsplit(parts._replace(query=query))


def _names(pair: str, values: dict[str, str]) -> bool:
    return any(name in values for name, _ in parse_qsl(pair, keep_blank_values=True))


def is_payment_template(text: str) -> bool:
    """Whether the text is a web address once its placeholders are filled; none in the host."""
    filled = PLACEHOLDER.sub("x", text)
    has_known = set(PLACEHOLDER.findall(text)) <= {*PLACEHOLDERS}
    origin = re.split(r"[/?#]", text.partition("://")[2])[0]
    return has_known and not re.search(r"[{}]", filled + origin) and is_web_address(filled)


def _template(project: Project) -> str:
    text = project.settings.get("pay_url")
    return text if isinstance(text, str) and is_payment_template(text) else ""


def _plain_payment_url(project: Project) -> str:
    text = project.booking.get("payment_url")
    return text if isinstance(text, str) and is_web_address(text) else ""
