"""Signatures of webhooks by Standard Webhooks 1.0 (www.standardwebhooks.com)."""

import base64
import hmac
import secrets as random_source
from collections.abc import Sequence

PREFIX = "whsec_"


def new_secret() -> str:
    """Return `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(random_source.token_bytes(32)).decode()


def signature_headers(
    *, message_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """Return the three headers, with one signature per secret so that receivers can rotate theirs.

    `timestamp`: of the attempt, in epoch seconds. `message_id`: the same for every attempt.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(signed, secret) for secret in secrets),
    }


def is_secret(text: str) -> bool:
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        return False
    return text.startswith(PREFIX) and bool(key)


def sign(signed: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
