"""Middleware of the back office."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from apps_config.history import change_actor
from bookings.pages.formatting import accepted_languages, activate_english_of
from common.db.replica import note_write
from common.middleware import PagesOnly
from office.access.session_age import postpone_session_end
from office.base.dates import AccountTimeZone
from office.base.languages import language_of_request
from office.base.scope import reader_of

# The theme needs 'unsafe-eval', as its Alpine evaluates attributes of its templates, and
# 'unsafe-inline' for its style attributes. Pages have no inline scripts.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
PREFIX = "/admin/"


class OfficePages:
    """Sets the account as author of changes, its time zone, the language (English as in the
    browser's region), and security headers.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(PREFIX):
            return self.get_response(request)
        accepted = accepted_languages(request.headers.get("Accept-Language", ""))
        with translation.override(language_of_request(request)), activate_english_of(accepted):
            response = self._respond(request)
            response.setdefault("Content-Language", translation.get_language())
        response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.setdefault("Referrer-Policy", "same-origin")
        response.setdefault("Cache-Control", "no-store")
        return response

    def _respond(self, request: HttpRequest) -> HttpResponse:
        if not request.user.is_authenticated:
            return self.get_response(request)
        postpone_session_end(request.session, now=timezone.now())
        with (
            change_actor(request.user.pk, request.user.email),
            timezone.override(AccountTimeZone(request)),
        ):
            response = self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            note_write(reader_of(request))
        return response


class OfficeMiddleware(PagesOnly, OfficePages):
    pass
