"""Secrets at rest: keys that change, and what can't be read."""

import pytest
from django.conf import settings as service_settings

from common.encryption import SecretUnreadable, decrypt_text, encrypt_text

OLD, NEW = "old key, " * 5, "schlüssel, " * 5


@pytest.mark.parametrize("text", ["", "whsec_abc", "Grüße\n\x00🔑", "x" * 100_000])
def test_decrypt_returns_the_encrypted_text(text):
    token = encrypt_text(text)

    assert decrypt_text(token) == text
    assert token.isascii()
    assert not text or text not in token


def test_tokens_of_equal_texts_differ():
    assert len({encrypt_text("same") for _ in range(10)}) == 10


def test_first_key_encrypts_and_every_key_decrypts(settings):
    settings.ENCRYPTION_KEYS = [OLD]
    before = encrypt_text("secret")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    after = encrypt_text("secret")

    assert decrypt_text(before) == "secret"
    settings.ENCRYPTION_KEYS = [NEW]
    assert decrypt_text(after) == "secret"
    with pytest.raises(SecretUnreadable, match="can't be read with any key of ENCRYPTION_KEYS"):
        decrypt_text(before)


@pytest.mark.parametrize("token", ["", "nonsense", "gAAAAA" * 30, "ü"])
def test_damaged_tokens_are_refused(token):
    with pytest.raises(SecretUnreadable):
        decrypt_text(token)


def test_tampered_token_is_refused():
    token = encrypt_text("secret")
    other = token[:-20] + ("A" if token[-20] != "A" else "B") + token[-19:]

    with pytest.raises(SecretUnreadable):
        decrypt_text(other)


def test_default_key_is_the_secret_key():
    assert service_settings.ENCRYPTION_KEYS == [service_settings.SECRET_KEY]
