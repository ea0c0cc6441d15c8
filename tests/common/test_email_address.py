"""The one form of an e-mail address: look-alikes are refused or differ, spellings are the same."""

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from common.email_address import (
    ascii_address,
    canonical_address,
    canonical_pattern,
    check_address,
    is_address,
    limit_key,
)

NO_ADDRESS = "Must be an e-mail address."
OTHER_LETTERS = "May have no letters except a to z before the @."
NO_DOMAIN = "Must have a valid domain after the @."
KELVIN, LONG_S, DOTLESS, DOTTED = "\u212a", "ſ", "ı", "İ"


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("ada@example.com", "ada@example.com"),
        ("Ada.Lovelace+News@EXAMPLE.Com", "ada.lovelace+news@example.com"),
        ("u@müller.de", "u@xn--mller-kva.de"),
        ("U@MÜLLER.DE", "u@xn--mller-kva.de"),
        ("u@XN--Mller-KVA.de", "u@xn--mller-kva.de"),
        ("u@straße.de", "u@xn--strae-oqa.de"),
        ("u@STRASSE.de", "u@strasse.de"),
        ("u@例え.テスト", "u@xn--r8jz45g.xn--zckzah"),
        # Turkish has this letter: another domain, with another owner.
        (f"u@gma{DOTLESS}l.com", "u@xn--gmal-nza.com"),
        ("u@ab--c.de", "u@ab--c.de"),
        ("u@[127.0.0.1]", "u@[127.0.0.1]"),
        ("u@localhost", "u@localhost"),
        ('"U+x"@example.com', '"u+x"@example.com'),
    ],
)
def test_spellings_have_one_canonical_form(typed: str, canonical: str) -> None:
    check_address(typed)

    assert canonical_address(typed) == canonical
    assert canonical_address(canonical) == canonical
    assert is_address(typed)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *((f"{letter}@example.com", OTHER_LETTERS) for letter in (KELVIN, LONG_S, DOTLESS, "ä")),
        ('"\x01"@example.com', OTHER_LETTERS),
        *((f"u@{letter}pam.example", NO_DOMAIN) for letter in (KELVIN, LONG_S, DOTTED)),
        ("u@ＧＭＡＩＬ.com", NO_DOMAIN),  # full-width letters
        ("u@gmail。com", NO_DOMAIN),  # an ideographic full stop
        ("u@mu\u0308ller.de", NO_DOMAIN),  # not in NFC
        ("u@STRAẞE.de", NO_DOMAIN),  # STRASSE is the capital form of straße and strasse
        ("u@i❤.ws", NO_DOMAIN),
        ("u@xn--i-7iq.ws", NO_DOMAIN),
        ("u@gmail\u200b.com", NO_DOMAIN),
        ("u@" + "ü" * 60 + ".de", NO_DOMAIN),
        *((text, NO_ADDRESS) for text in ("", "u", "u@", "@b.de", "u@b", "u@@b.de", "u@b.de.")),
        *((text, NO_ADDRESS) for text in ("u@b.de\n", " u@b.de", "U <u@b.de>", "u@b.de,v@b.de")),
        ("u" * 240 + "@müller.de", NO_ADDRESS),  # 257 characters in ASCII
    ],
)
def test_malformed_addresses_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_address(text)

    assert refused.value.messages == [sentence]
    assert canonical_address(text) == text
    assert not is_address(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_canonical_form_is_idempotent(local: str, domain: str) -> None:
    text = f"{local}@{domain}.example"
    form = canonical_address(text)

    assert canonical_address(form) == form
    assert is_address(form) == is_address(text)
    assert form.isascii() or form == text


@pytest.mark.parametrize(
    ("typed", "ascii_only"),
    [
        ("Ada@Example.COM", "Ada@Example.COM"),
        ("Ada@Müller.de", "Ada@xn--mller-kva.de"),
        ("u@straße.de", "u@xn--strae-oqa.de"),
    ],
)
def test_ascii_address_keeps_the_typed_mailbox(typed: str, ascii_only: str) -> None:
    assert ascii_address(typed) == ascii_only


def test_domain_changed_by_mapping_is_refused() -> None:
    with pytest.raises(UnicodeError):
        ascii_address(f"u@{LONG_S}pam.example")


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("Anna@Example.com", "anna@example.com"),
        ("anna+0@example.com", "anna@example.com"),
        ("anna+a+b@müller.de", "anna@xn--mller-kva.de"),
        ("an.na@example.com", "an.na@example.com"),
        ("An.na+x@gmail.com", "anna@gmail.com"),
        ("a.n.n.a@GoogleMail.com", "anna@gmail.com"),
        ('"anna+x"@example.com', "anna@example.com"),
        ('"an\\na"@example.com', "anna@example.com"),
        ("+x@example.com", "+x@example.com"),
        ("", ""),
    ],
)
def test_limit_key_of_a_mailbox(address: str, key: str) -> None:
    assert limit_key(address) == key


@pytest.mark.parametrize(
    ("pattern", "canonical"),
    [
        ("*@Spam.example", "*@spam.example"),
        ("*@*.Müller.de", "*@*.xn--mller-kva.de"),
        ("Anna*", "anna*"),
        ("*", "*"),
    ],
)
def test_patterns_match_canonical_addresses(pattern: str, canonical: str) -> None:
    assert canonical_pattern(pattern) == canonical


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (f"{LONG_S}*@spam.example", OTHER_LETTERS),
        (f"*@{LONG_S}pam.example", NO_DOMAIN),
        ("*@mül*.de", NO_DOMAIN),
    ],
)
def test_patterns_that_match_no_address_are_refused(pattern: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        canonical_pattern(pattern)

    assert refused.value.messages == [sentence]
