"""Signatures of webhooks by Standard Webhooks 1.0 (www.standardwebhooks.com)."""

import base64
import hmac
import secrets as random_source
from collections.abc import Sequence

PREFIX = "whsec_"


def new_secret() -> str:
    """`whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(random_source.token_bytes(32)).decode()


def signature_headers(
    *, message_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """The three headers; one signature for each secret, so that receivers can change theirs.

    `timestamp` is that of the try in epoch seconds; `message_id` is the same on every try. Without
    a secret (an event notification's call) nothing is signed.
    """
    headers = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if secrets:
        signed = f"{message_id}.{timestamp}.".encode() + body
        headers["webhook-signature"] = " ".join(sign(signed, secret) for secret in secrets)
    return headers


def is_secret(text: str) -> bool:
    """Whether it reads as `new_secret` writes them."""
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        return False
    return text.startswith(PREFIX) and bool(key)


def sign(signed: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
