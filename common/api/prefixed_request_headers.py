"""Read the service's own request headers, with any of their prefixes."""

import re

from django.conf import settings
from django.http import HttpRequest

from common.errors import Malformed

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def service_header(request: HttpRequest, name: str) -> str | None:
    """Return the value of `Service-<name>`, else of `Timekit-<name>`; None if both are absent.

    The prefixes are the setting API_HEADER_PREFIXES. Raises Malformed at control characters.
    """
    for prefix in settings.API_HEADER_PREFIXES:
        value = request.META.get(f"HTTP_{prefix}_{name}".upper().replace("-", "_"))
        if value is None:
            continue
        if CONTROL.search(value):
            raise Malformed(f"The header {prefix}-{name} contains control characters.")
        return value
    return None
