"""Base class of public HTML pages: one style, no cookie, no external sources."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import get_language_bidi, override
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.renderers import StaticHTMLRenderer

from apps_config.models import App
from bookings.formatting import language_of, to_one_line
from common.api.views import ApiRequest, ApiView
from common.errors import exception_response
from common.openapi.components import TEXT
from common.shipped_languages import SOURCE_LANGUAGE

ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")

# Only the page's own style and form; no framing.
SOURCES: Mapping[str, str] = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}

PAGE_EXAMPLE = '<!DOCTYPE html>\n<html lang="en">…</html>\n'
PAGE_HEADERS = {
    "Cache-Control": TEXT | {"description": "`no-store`."},
    "Content-Security-Policy": TEXT | {"description": "Nothing from elsewhere."},
}


def page_response(description: str) -> OpenApiResponse:
    return OpenApiResponse(TEXT, description, [OpenApiExample("a page", PAGE_EXAMPLE)])


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
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Robots-Tag"] = "noindex, nofollow"

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
        """Render the template in the first of `languages` with a translation, else the app's.

        `values` is called while this language is active. `redirect`: where the page's form may
        redirect to.
        """
        language = language_of(app, *languages) if app else SOURCE_LANGUAGE
        with override(language):
            shown = {
                "app": to_one_line(app.name) if app else "",
                "language": language,
                "direction": "rtl" if get_language_bidi() else "ltr",
            }
            page = render_to_string(template, {**values(), **shown})
        policy = content_security_policy(self.sources, redirect)
        return HttpResponse(page, status=status, headers={"Content-Security-Policy": policy})


def content_security_policy(sources: Mapping[str, str], redirect: str = "") -> str:
    """Return the Content-Security-Policy header; the origin of `redirect` is a form-action too."""
    origin = ORIGIN.match(redirect)
    wanted = {**sources, "form-action": " ".join(["'self'", *([origin[0]] if origin else [])])}
    return "; ".join(f"{kind} {target}" for kind, target in wanted.items())
