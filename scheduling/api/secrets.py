"""Secrets at rest: what has to be read again is encrypted before it goes into the database.

The first key of ENCRYPTION_KEYS encrypts, every one decrypts: a new key is put in front, and the
old one stays as long as anything is left that was written under it (`reencryption.py`).
"""

import base64
import functools

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# Parts these keys from whatever else is derived from the same text.
PURPOSE = b"scheduling: secrets at rest"


class SecretUnreadable(Exception):
    """Written under a key that is not in ENCRYPTION_KEYS, or damaged."""

    def __init__(self) -> None:
        super().__init__("A stored secret can't be read with any key of ENCRYPTION_KEYS.")


def encrypt_text(text: str) -> str:
    """A token in ASCII, another one each time; about 1.4 times as long plus 100 characters."""
    return cipher(tuple(settings.ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt_text(token: str) -> str:
    """What `encrypt_text` was given. Raises SecretUnreadable."""
    try:
        return cipher(tuple(settings.ENCRYPTION_KEYS)).decrypt(token.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def is_under_first_key(token: str) -> bool:
    """Whether no other key is needed to read it. Raises SecretUnreadable."""
    try:
        cipher((settings.ENCRYPTION_KEYS[0],)).decrypt(token.encode())
    except InvalidToken:
        decrypt_text(token)
        return False
    return True


@functools.lru_cache(maxsize=4)
def cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(fernet_key(key)) for key in keys])


def fernet_key(key: str) -> bytes:
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE)
    return base64.urlsafe_b64encode(hkdf.derive(key.encode()))
