"""The bytes of a mail, written directly.

Django and `email` build an object for every part and fold every header twice, which takes ten times
as long (docs/benchmarks.md, P20). They still write mails of an unusual form.
"""

import secrets
from base64 import encodebytes
from collections.abc import Iterator, Sequence
from email.header import Header
from email.quoprimime import header_encode
from email.utils import formatdate
from functools import lru_cache
from string import ascii_letters, digits
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.message import SafeMIMEText

MAX_HEADER, MAX_LINE = 78, 998
# Characters of an encoded word between `=?utf-8?q?` and `?=`, as `email` divides them.
FIRST_WORD, OTHER_WORDS = 66, 65
UNESCAPED = frozenset(ascii_letters + digits + "-!*+/ ")
WRITTEN_BEFORE = frozenset({"subject", "from", "to", "cc", "reply-to", "date"})


class UnusualForm(Exception):
    """Django has to write the mail."""


class Mail(EmailMultiAlternatives):
    """A mail with the same bytes as Django's, except for the random boundaries of its parts."""

    def message(self, **options: Any) -> Any:
        try:
            return EncodedMail(encode_mail(self))
        except (UnusualForm, UnicodeEncodeError):
            return super().message(**options)


class EncodedMail:
    """What mail backends use of a message. `content`: its lines end in `\\n`."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def as_bytes(self, unixfrom: bool = False, linesep: str = "\n") -> bytes:
        return self.content.replace(b"\n", linesep.encode())

    def get_charset(self) -> None:
        return None


def encode_mail(mail: EmailMultiAlternatives) -> bytes:
    """Return the whole mail. Raises UnusualForm and UnicodeEncodeError."""
    if not (mail.body and mail.alternatives):
        raise UnusualForm
    texts = [(mail.body, "text/plain"), *mail.alternatives]
    content_type, body = _multipart("alternative", [_text_part(*text) for text in texts])
    if mail.attachments:
        parts = [content_type + b"\n" + body, *(_attachment(*each) for each in mail.attachments)]
        content_type, body = _multipart("mixed", parts)
    headers = "".join(_header(name, value) for name, value in _headers(mail))
    return content_type + headers.encode("ascii") + b"\n" + body


# --- Headers --------------------------------------------------------------------------------------
def _headers(mail: EmailMultiAlternatives) -> Iterator[tuple[str, str]]:
    given = {name.lower() for name in mail.extra_headers}
    if mail.cc or given & WRITTEN_BEFORE or "message-id" not in given:
        raise UnusualForm
    yield "Subject", str(mail.subject)
    yield "From", mail.from_email
    yield "To", ", ".join(mail.to)
    if mail.reply_to:
        yield "Reply-To", ", ".join(mail.reply_to)
    yield "Date", formatdate(localtime=settings.EMAIL_USE_LOCALTIME)
    yield from mail.extra_headers.items()


def _header(name: str, value: str) -> str:
    """Return the header, on one line or with the value on further lines."""
    if not value.isprintable() or value != value.strip():
        raise UnusualForm  # it may have a line break
    if value.isascii():
        lines = [value]
        if len(name) + 2 + len(value) > MAX_HEADER and " " in value:
            raise UnusualForm  # it has to be folded
    elif name == "Subject":
        lines = encode_words(value)
    else:
        raise UnusualForm
    if len(name) + 2 + len(lines[0]) > MAX_HEADER:
        lines = ["", *lines]
    return "\n ".join([f"{name}: {lines[0]}", *lines[1:]]) + "\n"


def encode_words(text: str) -> list[str]:
    """Return the text as encoded words (RFC 2047), in the shorter of the two encodings."""
    sizes = [1 if char in UNESCAPED else 3 * len(char.encode()) for char in text]
    if sum(sizes) > (len(text.encode()) + 2) // 3 * 4:
        return Header(text, "utf-8").encode().split("\n ")
    starts, room = [0], FIRST_WORD
    for place, size in enumerate(sizes):
        if size > room:
            starts.append(place)
            room = OTHER_WORDS
        room -= size
    ends = [*starts[1:], len(text)]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [header_encode(word.encode(), "utf-8") for word in words]


# --- Parts ----------------------------------------------------------------------------------------
def _multipart(kind: str, parts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the headers of the type, and the body."""
    boundary = f"==============={secrets.randbelow(10**19):019}=="
    content_type = f'Content-Type: multipart/{kind}; boundary="{boundary}"'
    if len(content_type) > MAX_HEADER:
        content_type = content_type.replace("; ", ";\n ")
    between = f"\n--{boundary}\n".encode()
    body = between[1:] + between.join(parts) + f"\n--{boundary}--\n".encode()
    return f"{content_type}\nMIME-Version: 1.0\n".encode(), body


def _text_part(text: Any, mimetype: str) -> bytes:
    if not mimetype.startswith("text/"):
        raise UnusualForm
    content = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    if max(map(len, content.split(b"\n"))) > MAX_LINE:
        raise UnusualForm  # it has to be quoted-printable
    return _text_headers(mimetype.removeprefix("text/"), text.isascii()) + content


@lru_cache
def _text_headers(subtype: str, is_ascii: bool) -> bytes:
    sample = SafeMIMEText("" if is_ascii else "é", subtype, "utf-8").as_bytes()
    return sample.partition(b"\n\n")[0] + b"\n\n"


def _attachment(name: str | None, content: Any, mimetype: str | None) -> bytes:
    if not isinstance(content, bytes):
        raise UnusualForm
    return _attachment_headers(name, mimetype) + encodebytes(content)


@lru_cache
def _attachment_headers(name: str | None, mimetype: str | None) -> bytes:
    mail = EmailMessage(body="-")
    mail.attach(name, b"", mimetype)
    sample: Any = mail.message().get_payload(1)
    return sample.as_bytes().partition(b"\n\n")[0] + b"\n\n"
