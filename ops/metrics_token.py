"""METRICS_TOKEN, which a scrape of /metrics must have if it is set."""

import hmac

from django.conf import settings


def is_authorized(given: str) -> bool:
    """Return whether no token is set, or the Authorization header has it."""
    wanted = f"Bearer {settings.METRICS_TOKEN}".encode()
    return not settings.METRICS_TOKEN or hmac.compare_digest(
        given.encode("latin-1", "replace"), wanted
    )
