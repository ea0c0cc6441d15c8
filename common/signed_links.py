"""Sign links in mails: `1795597200.7Wm3…` is the expiry and a signature of subject and expiry.

The signature is the only credential of the link: no key, no cookie.
"""

from datetime import datetime

from django.core.signing import BadSignature, Signer

from common.time.instants import to_datetime


def sign_link(salt: str, subject: str, expires_at: datetime) -> str:
    signed = Signer(salt=salt, sep=".").sign(f"{subject}.{int(expires_at.timestamp())}")
    return signed.removeprefix(f"{subject}.")


def read_link_expiry(salt: str, subject: str, signature: str) -> datetime | None:
    """Return the link's expiry; None if the signature does not match the subject."""
    try:
        # Not cached, so that the present settings' keys apply.
        signed = Signer(salt=salt, sep=".").unsign(f"{subject}.{signature}")
    except BadSignature:
        return None
    return to_datetime(int(signed.removeprefix(f"{subject}.")))
