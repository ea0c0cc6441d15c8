"""Read bounces (RFC 3464) and suppress the addresses that fail for good.

A bounce counts only for an e-mail that this service has sent to the failed address: the returned
header must contain the e-mail's Message-ID, whose random part only its recipient and mail servers
know. A forged bounce therefore can't suppress the address of somebody else.
"""

import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from email import message_from_string, policy
from email.message import Message
from email.utils import parseaddr
from typing import Any, NamedTuple

from apps_config.models import Invitation
from availability.models import Resource
from bookings.models import UnverifiedBooking
from common.email_address import canonical_address
from notifications.links.invitations import INVITATION_MAIL
from notifications.links.resource_password_reset import RESET_MAIL
from notifications.mail.recipients import Recipients
from notifications.mail.suppressions import is_address_failure, suppress
from notifications.models import Delivery, Suppression
from notifications.planning import VERIFICATION_CODE
from notifications.security_mails import NEW_DEVICE

DELIVERY_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# In order: the returned header of the e-mail, then those of the bounce that refer to it.
RETURNED = ("X-Delivery-Id", "Message-ID")
REFERRING = ("In-Reply-To", "References")
MAX_RECIPIENTS = 100


class FailedRecipient(NamedTuple):
    """A recipient for whom the delivery has failed: its address and the status, such as 5.1.1."""

    address: str
    status: str
    detail: str

    @property
    def is_permanent(self) -> bool:
        return self.status.startswith("5.")


class Bounce(NamedTuple):
    delivery_ids: list[uuid.UUID]
    failed: list[FailedRecipient]


def record_bounce(message: Message, parts: list[Message], *, now: datetime) -> list[str]:
    """Suppress the addresses of a bounce; returns a sentence per recipient. parts: of `walk`."""
    bounce = read_bounce(message, parts)
    if not bounce.failed:
        return ["Ignored: this is no report of a failed delivery and no answer to an invitation."]
    rows = Delivery.objects.filter(id__in=bounce.delivery_ids, type=Delivery.EMAIL, tries__gt=0)
    rows = rows.select_related("app", "customer", "booking__resource")
    delivery = rows.first()
    if delivery is None:
        return ["Ignored: the report refers to no e-mail of this service."]
    sent_to = {canonical_address(address) for address in addresses_of(delivery)}
    return [_record(delivery, recipient, sent_to, now) for recipient in bounce.failed]


def _record(
    delivery: Delivery, recipient: FailedRecipient, sent_to: set[str], now: datetime
) -> str:
    address = recipient.address
    if canonical_address(address) not in sent_to:
        return f"Ignored: the e-mail was not sent to {address}."
    if not recipient.is_permanent:
        return f"Ignored: {address} has failed for now ({recipient.status})."
    if not is_address_failure(recipient.status):
        return f"Ignored: the failure is not about {address} itself ({recipient.status})."
    suppress(delivery.app, address, Suppression.BOUNCED, now=now, detail=recipient.detail)
    return f"{address} gets no more e-mails of the app {delivery.app.slug}: {recipient.detail}"


def addresses_of(delivery: Delivery) -> list[str]:
    """Return the addresses to which the e-mail goes at present."""
    if delivery.kind == VERIFICATION_CODE:
        rows = UnverifiedBooking.objects.filter(id=delivery.content.get("reservation_id"))
        return list(rows.values_list("email", flat=True))
    if delivery.kind == INVITATION_MAIL:
        invited = Invitation.objects.filter(id=delivery.content.get("invitation_id"))
        return list(invited.values_list("email", flat=True))
    if delivery.kind == RESET_MAIL:
        found = Resource.objects.filter(id=delivery.content.get("resource_id"))
        return [email for email in found.values_list("email", flat=True) if email]
    if delivery.kind == NEW_DEVICE:
        return [delivery.content["email"]]
    if delivery.customer:
        return [delivery.customer.email]
    recipients = Recipients([delivery.app_id])
    named = delivery.content.get("resource_id")
    if named:
        resource = Resource.objects.get(id=named)
    elif delivery.booking:
        resource = delivery.booking.resource
    else:
        return recipients.owners(delivery.app)
    return recipients.of_owner(delivery.app, resource)


# --- The message ----------------------------------------------------------------------------------
def read_bounce(message: Message, parts: list[Message]) -> Bounce:
    """Return the failed recipients of a delivery status notification and the id of its e-mail."""
    failed = [
        recipient
        for part in parts
        if part.get_content_type() == "message/delivery-status"
        for recipient in _failed_in(part)
    ]
    headers = [
        str(value)
        for part in [*_returned(parts), message]
        for name in (REFERRING if part is message else RETURNED)
        for value in part.get_all(name, [])
    ]
    ids = [uuid.UUID(found) for text in headers for found in DELIVERY_ID.findall(text)]
    return Bounce(ids[:1], failed[:MAX_RECIPIENTS])


def _returned(parts: list[Message]) -> Iterator[Message]:
    """The e-mail that came back: whole, or its header alone."""
    for part in parts:
        payload = part.get_payload()
        if part.get_content_type() == "message/rfc822" and isinstance(payload, list):
            yield from _messages(payload[:1])
        if part.get_content_type() == "text/rfc822-headers":
            decoded = part.get_payload(decode=True)
            text = decoded.decode("utf-8", "replace") if isinstance(decoded, bytes) else ""
            yield message_from_string(text, policy=policy.compat32)


def _messages(parts: Sequence[Any]) -> Iterator[Message]:
    return (part for part in parts if isinstance(part, Message))


def _failed_in(part: Message) -> Iterator[FailedRecipient]:
    """The groups of fields after the first, which is about the whole e-mail (RFC 3464, 2.1)."""
    payload = part.get_payload()
    for fields in _messages(payload[1:]) if isinstance(payload, list) else ():
        if str(fields.get("Action", "")).strip().lower() != "failed":
            continue
        typed = fields.get("Original-Recipient") or fields.get("Final-Recipient") or ""
        address = parseaddr(str(typed).partition(";")[2].strip())[1]
        status = str(fields.get("Status", "")).strip()[:20]
        diagnostic = str(fields.get("Diagnostic-Code", "")).partition(";")[2]
        words = " ".join(diagnostic.split())
        if address:
            yield FailedRecipient(address, status, f"{status} {words}".strip()[:300])
