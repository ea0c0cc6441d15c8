"""Encryption of secrets in the database that must be readable again.

The first key of ENCRYPTION_KEYS encrypts, all of them decrypt. To rotate, put a new key first and
keep the old one until everything encrypted with it has been reencrypted.
"""

import base64
import functools

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# Separates these keys from others that are derived from the same text.
PURPOSE = b"scheduling: secrets at rest"


class SecretUnreadable(Exception):
    """The secret was encrypted with a key that is not in ENCRYPTION_KEYS, or is damaged."""

    def __init__(self) -> None:
        super().__init__("A stored secret can't be read with any key of ENCRYPTION_KEYS.")


def encrypt_text(text: str) -> str:
    """Return an ASCII token, different each time, of about 1.4 times the text's length plus 100."""
    return make_cipher(tuple(settings.ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt_text(token: str) -> str:
    """Return the text of a token. Raises SecretUnreadable."""
    try:
        return make_cipher(tuple(settings.ENCRYPTION_KEYS)).decrypt(token.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def is_under_first_key(token: str) -> bool:
    """Return whether the token was encrypted with the first key. Raises SecretUnreadable."""
    try:
        make_cipher((settings.ENCRYPTION_KEYS[0],)).decrypt(token.encode())
    except InvalidToken:
        decrypt_text(token)
        return False
    return True


@functools.lru_cache(maxsize=4)
def make_cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(fernet_key(key)) for key in keys])


def fernet_key(key: str) -> bytes:
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE)
    return base64.urlsafe_b64encode(hkdf.derive(key.encode()))
