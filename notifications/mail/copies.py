"""Copies of sent e-mails, for people who may read an e-mail but must not act for its recipient.

A copy is rendered with `[link]` in place of every signed link, so that none is ever in it. Links
that people have pasted into texts are replaced as well.
"""

import json
import zlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.core.mail import EmailMultiAlternatives

from bookings.models import Booking
from notifications.hidden_links import HIDDEN_LINK, hide_signed_links
from notifications.mail.compose import CALENDAR_FILE, Letter, mail_words

MAX_BYTES = 200_000  # of a compressed copy; a longer e-mail is copied without its content


class EmailCopy(NamedTuple):
    """Without text, HTML and calendar file, the content of the e-mail is secret."""

    to: Sequence[str]
    subject: str
    text: str = ""
    html: str = ""
    calendar: str = ""

    def compressed(self) -> bytes:
        content = zlib.compress(json.dumps(self._asdict(), ensure_ascii=False).encode())
        if len(content) > MAX_BYTES:
            return EmailCopy(self.to, self.subject).compressed()
        return content

    @classmethod
    def read(cls, content: bytes | memoryview) -> "EmailCopy":
        return cls(**json.loads(zlib.decompress(content)))


def copy_booking_mail(
    message: EmailMultiAlternatives, letter: Letter, others: Sequence[Letter] = ()
) -> EmailCopy:
    """Return the copy of the message, which `compose_mail` made from the same letters."""
    words = mail_words(letter, others, link=_hide_link)
    files = dict(attachment[:2] for attachment in message.attachments)
    calendar = files.get(CALENDAR_FILE, b"")
    text = calendar.decode() if isinstance(calendar, bytes) else str(calendar)
    parts = (words.subject, words.text, words.html, _without_folds(text))
    return EmailCopy(message.to, *map(hide_signed_links, parts))


def copy_notice(message: EmailMultiAlternatives) -> EmailCopy:
    """Return the copy of a message without signed links."""
    html = next(str(part) for part, kind in message.alternatives if kind == "text/html")
    parts = (str(message.subject), str(message.body), html)
    return EmailCopy(message.to, *map(hide_signed_links, parts))


def copy_subject(message: EmailMultiAlternatives, *, secret: str = "") -> EmailCopy:
    """Return the copy of a message whose content is secret. `secret`: to be hidden in the subject
    too.
    """
    subject = str(message.subject)
    return EmailCopy(message.to, subject.replace(secret, "[…]") if secret else subject)


def _hide_link(booking: Booking, action: str, event_end: datetime) -> str:
    return HIDDEN_LINK


def _without_folds(calendar: str) -> str:
    """Join folded lines (RFC 5545, 3.1), since a link may be in several."""
    return calendar.replace("\r\n ", "").replace("\r\n", "\n")
