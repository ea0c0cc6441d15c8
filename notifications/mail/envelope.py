"""Who a mail is from and to, and the headers that follow from it."""

import uuid
from collections.abc import Sequence
from email.utils import formataddr, parseaddr
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import EmailValidator

from apps_config.models import App
from bookings.wording import one_line
from scheduling.api.fields import CONTROL_OR_BREAK

_check_address = EmailValidator()


class MailWords(Protocol):
    @property
    def subject(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...


class Sender(NamedTuple):
    """The app's own name and addresses, else the service's."""

    name: str
    address: str
    reply_to: str

    @classmethod
    def of(cls, app: App) -> "Sender":
        own = (app.settings.get("from_email"), app.settings.get("contact_email"))
        from_email, contact_email = (value if is_address(value) else "" for value in own)
        return cls(
            name=one_line(str(app.settings.get("from_name") or app.name)),
            address=from_email or parseaddr(settings.DEFAULT_FROM_EMAIL)[1],
            reply_to=contact_email,
        )

    @property
    def domain(self) -> str:
        """Of the address; of the service where that can't stand in a message id."""
        domain = self.address.rpartition("@")[2]
        return domain if domain.isascii() and domain else service_host()


def service_host() -> str:
    return urlsplit(settings.PUBLIC_URL).hostname or "localhost"


def is_address(text: object) -> bool:
    """Whether it is one plain address: no name, no list, no line break."""
    if not isinstance(text, str) or CONTROL_OR_BREAK.search(text):
        return False
    try:
        _check_address(text)
    except ValidationError:
        return False
    return True


def new_message(
    words: MailWords, sender: Sender, *, delivery_id: uuid.UUID, to: Sequence[str]
) -> EmailMultiAlternatives:
    """A message to exactly these recipients. Raises ValueError where one is no address.

    The headers that stand for the delivery are the same on each try: who gets a mail twice, because
    a worker died behind the server's answer, can tell.
    """
    wrong = [one for one in to if not is_address(one)]
    if wrong or not to:
        raise ValueError(f"no address: {wrong!r:.200}" if wrong else "no recipient")
    message = EmailMultiAlternatives(
        subject=words.subject,
        body=words.text,
        from_email=formataddr((sender.name, sender.address)),
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
