"""E-mail addresses: what may be one, the one form by which addresses are compared, its columns.

Letter case decides whose an address is, and databases and languages disagree about it: PostgreSQL's
UPPER('ı') is 'I', so a stranger with the domain gmaıl.com would be the customer of gmail.com, and
in Python the Kelvin sign (U+212A) is a "k" in lower case. Therefore no other code changes the case
of an address (tests/test_email_addresses.py).
"""

from functools import lru_cache
from typing import Any, TypeGuard

import idna
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db import models

from common.messages import Message

MAX_LENGTH = 254  # RFC 5321
NO_ADDRESS = Message("Must be an e-mail address.")
OTHER_LETTERS = Message("May have no letters except a to z before the @.")
NO_DOMAIN = Message("Must have a valid domain after the @.")
# Its mailboxes ignore dots, and have two domains.
GMAIL = ("gmail.com", "googlemail.com")

_check_syntax = EmailValidator(NO_ADDRESS, NO_ADDRESS)


def check_address(text: str) -> None:
    """Raise Django's ValidationError unless the text is one plain address: no name, no list, only
    ASCII before the @, and after it a domain by the rules of IDNA 2008.
    """
    _canonical(text)


def is_address(text: object) -> TypeGuard[str]:
    try:
        return isinstance(text, str) and bool(_canonical(text))
    except ValidationError:
        return False


def canonical_address(text: str) -> str:
    """Return the form by which addresses are compared, in ASCII and lower case.

    >>> canonical_address("Ada@Bücher.example")
    'ada@xn--bcher-kva.example'

    A text that `check_address` refuses (in a foreign calendar) is returned
    unchanged. It equals nobody's address: the canonical form of an address is never refused.
    """
    try:
        return _canonical(text)
    except ValidationError:
        return text


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    """Return the canonical form. Raises ValidationError."""
    local, _, domain = text.rpartition("@")
    if not (local.isascii() and local.isprintable()):
        raise ValidationError(OTHER_LETTERS, OTHER_LETTERS)
    try:
        address = f"{local.lower()}@{ascii_domain(domain)}"
    except idna.IDNAError as error:
        raise ValidationError(NO_DOMAIN, NO_DOMAIN) from error
    _check_syntax(address)
    if len(address) > MAX_LENGTH:
        raise ValidationError(NO_ADDRESS, NO_ADDRESS)
    return address


def unicode_address(address: str) -> str:
    """Return the canonical form with the domain as people type it.

    >>> unicode_address("ada@xn--bcher-kva.example")
    'ada@bücher.example'
    """
    local, at, domain = canonical_address(address).rpartition("@")
    try:
        return f"{local}{at}{idna.decode(domain)}"
    except idna.IDNAError:  # of an address that `check_address` refuses
        return address


def ascii_address(address: str) -> str:
    """Return the address for a mail server: as typed, but with the domain in ASCII.

    >>> ascii_address("Ada@Bücher.example")
    'Ada@xn--bcher-kva.example'

    Raises UnicodeError.
    """
    local, at, domain = address.rpartition("@")
    return address if domain.isascii() else f"{local}{at}{ascii_domain(domain)}"


def ascii_domain(domain: str) -> str:
    """Return the domain in lower-case A-labels. Raises idna.IDNAError, which is a UnicodeError.

    Maps nothing but letter case: UTS 46, and the codec "idna" of Python, take ſ for s and ß for ss,
    whose domains may have another owner.
    """
    lowered = "".join(map(_lower, domain))
    if lowered.isascii() and "xn--" not in lowered:
        return lowered
    return idna.encode(lowered, strict=True).decode()


def _lower(letter: str) -> str:
    """Return the small letter of a capital one, if the two belong to each other only: K, but not
    the Kelvin sign.
    """
    small = letter.lower()
    return small if small.upper() == letter else letter


def limit_key(address: str) -> str:
    """Return what limits count in place of the address: without `+tag`, as a mailbox has any
    number of tags.

    >>> limit_key("Marty.McFly+news@googlemail.com")
    'martymcfly@gmail.com'

    For limits only: elsewhere `marty+news` may be another person.
    """
    local, at, domain = canonical_address(address).rpartition("@")
    plain = local.strip('"').replace("\\", "")  # "marty"@ and "m\arty"@ are marty@
    mailbox = plain.partition("+")[0] or plain
    if domain in GMAIL:
        mailbox, domain = mailbox.replace(".", ""), GMAIL[0]
    return f"{mailbox}{at}{domain}"


def canonical_pattern(pattern: str) -> str:
    """Return a pattern of addresses for their canonical form; `*` stands for any text.

    >>> canonical_pattern("*@*.Bücher.example")
    '*@*.xn--bcher-kva.example'

    Raises ValidationError if it fits no address.
    """
    local, at, domain = pattern.rpartition("@")
    if not local.isascii():
        raise ValidationError(OTHER_LETTERS, OTHER_LETTERS)
    try:
        # A `*` stands in labels of ASCII only.
        labels = [
            label.lower() if label.isascii() else ascii_domain(label) for label in domain.split(".")
        ]
    except idna.IDNAError as error:
        raise ValidationError(NO_DOMAIN, NO_DOMAIN) from error
    return f"{local.lower()}{at}{'.'.join(labels)}"


class CanonicalAddressField(models.CharField):
    """The canonical form of the row's `email`, by which rows are found and compared.

    Written whenever the row is saved. `update()` of a query set has to set it, and `save` with
    `update_fields` to name it. A CharField in migrations.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = {"max_length": MAX_LENGTH, "editable": False}
        super().__init__(*args, **{**own, **kwargs})

    def derive(self, email: str) -> str:
        return canonical_address(email)

    def pre_save(self, row: Any, add: bool) -> str | None:
        derived = None if row.email is None else self.derive(row.email)
        setattr(row, self.attname, derived)
        return derived

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class LimitKeyField(CanonicalAddressField):
    """What limits count in place of the row's `email` (`limit_key`)."""

    def derive(self, email: str) -> str:
        return limit_key(email)
