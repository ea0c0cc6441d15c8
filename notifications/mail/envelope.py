"""Who a mail is from and to, and the headers that follow from it."""

import re
import uuid
from collections.abc import Sequence
from email.header import Header
from email.utils import formataddr, parseaddr
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives

from apps_config.models import App
from bookings.pages.formatting import to_one_line
from common.email_address import ascii_address, canonical_address, is_address

_ADDRESS = re.compile(r"[^\s<>()\[\],;:\"']+@[^\s<>()\[\],;:\"']+")


class MailContent(Protocol):
    @property
    def subject(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...


class Sender(NamedTuple):
    """The app's own name and addresses, else the service's.

    Mails are from the app's address only if the operator allows its domain: the mail server signs
    for all apps, and one of them must not write as another. Otherwise replies go to it.
    """

    name: str
    address: str
    reply_to: str

    @classmethod
    def of(cls, app: App) -> "Sender":
        own = (app.settings.get("from_email"), app.settings.get("contact_email"))
        from_email, contact_email = (value if is_address(value) else "" for value in own)
        is_own = bool(from_email) and may_send_from(from_email)
        address = from_email if is_own else plain_address(settings.DEFAULT_FROM_EMAIL)
        return cls(
            name=to_one_line(str(app.settings.get("from_name") or app.name)),
            address=ascii_address(address),
            reply_to=contact_email or ("" if is_own else from_email),
        )

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


@lru_cache
def plain_address(address: str) -> str:
    """`Service <a@example.com>` -> `a@example.com`"""
    return parseaddr(address)[1]


def may_send_from(address: str) -> bool:
    """Return whether apps may send from the address, by SENDER_DOMAINS."""
    allowed: frozenset[str] = settings.SENDER_DOMAINS
    return "*" in allowed or canonical_address(address).rpartition("@")[2] in allowed


def service_host() -> str:
    return urlsplit(settings.PUBLIC_URL).hostname or "localhost"


def without_addresses(text: str) -> str:
    """Replace e-mail addresses: mail servers quote them in their answers."""
    return _ADDRESS.sub("[address]", text) if "@" in text else text


def without_encoded_words(text: str) -> str:
    """Return the text for a header.

    Readers would decode a text that looks like an encoded word: a zero-width space prevents that.
    """
    return text.replace("=?", "=\u200b?")


class MailMessage(EmailMultiAlternatives):
    """A message whose subject begins in the first line of its header.

    Django encodes a subject before it is folded: a line that "Subject:" and the first encoded word
    exceed would begin with an empty one.
    """

    def message(self, **options: Any) -> Any:
        message = super().message(**options)
        subject = str(self.subject)
        if not subject.isascii():
            message.replace_header("Subject", Header(subject, "utf-8", header_name="Subject"))
        return message


def new_message(
    words: MailContent, sender: Sender, *, delivery_id: uuid.UUID, to: Sequence[str]
) -> EmailMultiAlternatives:
    """Return a message to exactly these recipients. Raises ValueError if one is not an address.

    All attempts have the same Message-ID and X-Delivery-Id, so a recipient can recognise a mail
    that arrives twice because a worker died after the server's answer.
    """
    if not to or not all(map(is_address, to)):
        raise ValueError("no address that a mail could go to")  # without it: this is logged
    message = MailMessage(
        subject=without_encoded_words(words.subject),
        body=words.text,
        from_email=formataddr((without_encoded_words(sender.name), sender.address)),
        # Django and smtplib would convert a domain by IDNA 2003, to that of somebody else.
        to=[ascii_address(address) for address in to],
        reply_to=[ascii_address(sender.reply_to)] if sender.reply_to else None,
        headers={
            "Message-ID": f"<{delivery_id}@{sender.domain}>",
            "X-Delivery-Id": str(delivery_id),
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(words.html, "text/html")
    return message
