"""Base class of public HTML pages: one style, no cookie, no external sources."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language_bidi, override
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.renderers import StaticHTMLRenderer

from apps_config.models import App
from bookings.models import Customer
from bookings.pages.branding import branding_of
from bookings.pages.formatting import (
    accepted_languages,
    activate_clock_of,
    customer_meta_language,
    language_of,
    text_language,
    to_one_line,
)
from common.api.views import ApiRequest, ApiView
from common.errors import exception_response
from common.openapi.components import HTML_PAGE, TEXT

ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")

# Only the page's own style and form; no framing.
SOURCES: Mapping[str, str] = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}

LINK_WORDS = {"imprint": _("Imprint"), "privacy": _("Privacy")}

PAGE_EXAMPLE = '<!DOCTYPE html>\n<html lang="en">…</html>\n'
PAGE_HEADERS = {
    "Cache-Control": TEXT | {"description": "`no-store`."},
    "Content-Security-Policy": TEXT | {"description": "Nothing from elsewhere."},
}


def page_response(description: str) -> OpenApiResponse:
    return OpenApiResponse(HTML_PAGE, description, [OpenApiExample("a page", PAGE_EXAMPLE)])


class PageView(ApiView, ABC):
    """A view that renders errors as pages too; subclasses compose the text."""

    public = True
    json_only = False
    renderer_classes = [StaticHTMLRenderer]
    sources = SOURCES

    def handle_request(self, request: ApiRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.now = timezone.now()
        try:
            return super().handle_request(request, *args, **kwargs)
        except Exception as exc:
            response = exception_response(exc, {"request": request})
            page = self.refusal_page(exc, response.status_code, response.data["code"])
            for name, value in response.headers.items():
                page.headers.setdefault(name, value)
            return page

    @abstractmethod
    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        """Return the page for an error with this status and code."""

    def decorate(self, response: HttpResponseBase) -> None:
        super().decorate(response)
        response.headers["Cache-Control"] = "no-store"
        patch_vary_headers(response, ["Accept-Language"])
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Robots-Tag"] = "noindex, nofollow"

    def page_customer(self) -> Customer | None:
        """Return the customer whose page it is, if known. Not called after a server error."""
        return None

    def preferred_languages(self, customer: Customer | None) -> list[Any]:
        """Return the languages that precede the project's: the customer's, then the browser's."""
        return [customer_meta_language(customer), *self.browser_languages()]

    def browser_languages(self) -> list[str]:
        return accepted_languages(self.request.headers.get("Accept-Language", ""))

    def render_page(
        self,
        template: str,
        values: Callable[[], Mapping[str, Any]],
        *,
        status: int,
        app: App | None,
        redirect: str = "",
        languages: Sequence[Any] = (),
    ) -> HttpResponse:
        """Render the template in the reader's language, else one that the browser accepts, else
        one of `languages`, else the app's.

        `values` is called while this language is active. `redirect`: where the page's form may
        redirect to.
        """
        preferred = self.preferred_languages(self.page_customer() if app else None)
        language = language_of(app, *preferred, *languages)
        with override(language), activate_clock_of(self.browser_languages()):
            shown = {
                "app": to_one_line(app.name) if app else "",
                "branding": branding_of(app) if app else None,
                "link_words": LINK_WORDS,
                "language": language,
                "direction": "rtl" if get_language_bidi() else "ltr",
                # Of the app's and project's own texts; "" if it is that of the page, or unknown.
                "text_language": other_language(language, app, languages),
            }
            page = render_to_string(template, {**values(), **shown})
        policy = content_security_policy(self.sources, redirect)
        return HttpResponse(page, status=status, headers={"Content-Security-Policy": policy})


def other_language(page_language: str, app: App | None, languages: Sequence[Any]) -> str:
    """Return the language set by `languages` or the app; "" if it is the page's, or none is set."""
    language = text_language(app, *languages) if app else ""
    return "" if language == page_language else language


def content_security_policy(sources: Mapping[str, str], redirect: str = "") -> str:
    """Return the Content-Security-Policy header; the origin of `redirect` is a form-action too."""
    origin = ORIGIN.match(redirect)
    directives = {**sources, "form-action": " ".join(["'self'", *([origin[0]] if origin else [])])}
    return "; ".join(f"{kind} {target}" for kind, target in directives.items())
