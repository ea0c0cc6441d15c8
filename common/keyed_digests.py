"""Digests that only this service can compute, because they are keyed with SECRET_KEY."""

from django.conf import settings
from django.utils.crypto import salted_hmac


def keyed_digest(purpose: str, text: str) -> bytes:
    """Return the HMAC-SHA256 of the text; each purpose has a key of its own.

    The oldest key of SECRET_KEY and SECRET_KEY_FALLBACKS is used: digests are compared with digests
    that were made before a rotation, or by processes that do not know the new key yet.
    """
    oldest = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS][-1]
    return salted_hmac(purpose, text, secret=oldest, algorithm="sha256").digest()
