"""Who a mail is from and to, and the headers that follow from it."""

import uuid
from collections.abc import Sequence
from email.utils import formataddr, parseaddr
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.utils.encoding import punycode

from apps_config.models import App
from bookings.formatting import to_one_line
from common.api.fields import CONTROL_OR_BREAK
from notifications.mail.mime import Mail

_check_address = EmailValidator()


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
    return "*" in allowed or ascii_address(address).rpartition("@")[2].lower() in allowed


def service_host() -> str:
    return urlsplit(settings.PUBLIC_URL).hostname or "localhost"


def is_address(text: object) -> bool:
    """Whether it is one plain address: no name, no list, no line break."""
    return isinstance(text, str) and _is_address(text)


@lru_cache(maxsize=1024)  # a mail asks several times
def _is_address(text: str) -> bool:
    if CONTROL_OR_BREAK.search(text):
        return False
    try:
        _check_address(text)
        return ascii_address(text).isascii()
    except (ValidationError, UnicodeError):
        return False


def ascii_address(address: str) -> str:
    """`a@bücher.example` -> `a@xn--bcher-kva.example`. Raises UnicodeError."""
    local, at, domain = address.rpartition("@")
    return f"{local}{at}{punycode(domain)}"


def without_encoded_words(text: str) -> str:
    """Return the text for a header.

    Readers would decode a text that looks like an encoded word: a zero-width space prevents that.
    """
    return text.replace("=?", "=\u200b?")


def new_message(
    words: MailContent, sender: Sender, *, delivery_id: uuid.UUID, to: Sequence[str]
) -> Mail:
    """Return a message to exactly these recipients. Raises ValueError if one is not an address.

    All attempts have the same Message-ID and X-Delivery-Id, so a recipient can recognise a mail
    that arrives twice because a worker died after the server's answer.
    """
    if not to or not all(map(is_address, to)):
        raise ValueError("no address that a mail could go to")  # without it: this is logged
    message = Mail(
        subject=without_encoded_words(words.subject),
        body=words.text,
        from_email=formataddr((without_encoded_words(sender.name), sender.address)),
        to=list(to),
        reply_to=[sender.reply_to] if sender.reply_to else None,
        headers={
            "Message-ID": f"<{delivery_id}@{sender.domain}>",
            "X-Delivery-Id": str(delivery_id),
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(words.html, "text/html")
    return message
