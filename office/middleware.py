"""What every page of the back office has in common."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps_config.days import OfficeClock
from apps_config.history import acting_as

# What the theme can't do without: its Alpine evaluates the attributes of its own templates
# ('unsafe-eval'), and its templates carry style attributes ('unsafe-inline' for styles). No script
# stands in a page.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
PREFIX = "/admin/"


class OfficeMiddleware:
    """Changes are written down as the account's, times are told in its zone; nothing from elsewhere
    is loaded or kept."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(PREFIX):
            return self.get_response(request)
        if request.user.is_authenticated:
            with (
                acting_as(request.user.pk, request.user.email),
                timezone.override(OfficeClock(request)),
            ):
                response = self.get_response(request)
        else:
            response = self.get_response(request)
        response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.setdefault("Referrer-Policy", "same-origin")
        response.setdefault("Cache-Control", "no-store")
        return response
