"""The secret of an app that signs the calls of its event notifications (Standard Webhooks)."""

import base64
import uuid

from common.keyed_digests import keyed_digest

SALT = "event-notifications"


def notification_secret(app_id: uuid.UUID) -> str:
    """Return `whsec_` and 32 bytes in base64. It is derived, so that nothing is stored."""
    return "whsec_" + base64.b64encode(keyed_digest(SALT, str(app_id))).decode()
