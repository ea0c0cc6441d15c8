"""Base class of public HTML pages: one style, no cookie, no external sources.

Most pages are steps: texts, at most one form, and links (`PageView.show_step`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language_bidi, override
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.renderers import StaticHTMLRenderer
from rest_framework.request import Request

from apps_config.models import App
from bookings.models import Customer
from bookings.pages.branding import branding_of
from bookings.pages.formatting import (
    accepted_languages,
    activate_english_of,
    customer_meta_language,
    language_of,
    text_language,
    to_one_line,
)
from bookings.pages.refusal_texts import REFUSAL_TEXTS, UNREADABLE
from common.api.views import PublicApiView
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


class StepLink(NamedTuple):
    label: str | Promise
    address: str
    is_button: bool = False


class PageView(PublicApiView):
    """A view that renders errors as pages too.

    stylesheet: a static file, after the shared one. refusals: heading and sentence for an
    exception's class (not for its subclasses) or an error code; `other_refusal` is for all others.

    A view sets what it knows of the page: its app, the customer who reads it, the languages that
    precede the app's (such as the project's), and where the form of a step may redirect to.
    """

    json_only = False
    renderer_classes = [StaticHTMLRenderer]
    sources = SOURCES
    stylesheet = ""
    refusals: Mapping[str | type[Exception], tuple[str | Promise, str | Promise]] = REFUSAL_TEXTS
    other_refusal: tuple[str | Promise, str | Promise] = UNREADABLE

    app: App | None = None
    customer: Customer | None = None
    languages: Sequence[Any] = ()
    redirect = ""

    def handle_exception(self, exc: Exception) -> Any:
        response = exception_response(exc, self.get_exception_handler_context())
        page = self.refusal_page(exc, response.status_code, response.data["code"])
        for name, value in response.headers.items():
            page.headers.setdefault(name, value)
        return page

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        """Return the page for an error with this status and code."""
        return self.show_step(status, *self.refusal_text(exc, code))

    def refusal_text(self, exc: Exception, code: str) -> tuple[str | Promise, str | Promise]:
        """Return heading and sentence for an error."""
        return self.refusals.get(type(exc)) or self.refusals.get(code, self.other_refusal)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response.headers["Cache-Control"] = "no-store"
        patch_vary_headers(response, ["Accept-Language"])
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Robots-Tag"] = "noindex, nofollow"
        return super().finalize_response(request, response, *args, **kwargs)

    def page_facts(self) -> Sequence[tuple[str, str]]:
        """Return the (label, value) pairs of each step, in the active language."""
        return ()

    def page_links(self) -> Sequence[StepLink]:
        """Return the links of each step."""
        return ()

    def preferred_languages(self, customer: Customer | None) -> list[Any]:
        """Return the languages that precede the project's: the customer's, then the browser's."""
        return [customer_meta_language(customer), *self.browser_languages()]

    def browser_languages(self) -> list[str]:
        return accepted_languages(self.request.headers.get("Accept-Language", ""))

    def show_step(
        self,
        status: int,
        heading: str | Promise,
        sentence: str | Promise = "",
        *,
        reasons: Sequence[str | Promise] = (),
        button: str | Promise = "",
        is_danger: bool = False,
        fields: Sequence[Mapping[str, Any]] = (),
        token: str = "",
        keep: StepLink | None = None,
        links: Sequence[StepLink] = (),
    ) -> HttpResponse:
        """Render a page with a text, and with a form if it has a button.

        fields: see `form_field`. token: of the form. keep: the link beside the button.
        """
        return self.render_page(
            "bookings/step.html",
            lambda: {
                "heading": heading,
                "sentence": sentence,
                "reasons": reasons,
                "facts": self.page_facts() if status < 500 else (),
                "button": button,
                "is_danger": is_danger,
                "fields": fields,
                "token": token,
                "keep": keep,
                "links": [*links, *(self.page_links() if status < 500 else ())],
            },
            status=status,
            redirect=self.redirect if button else "",
        )

    def render_page(
        self,
        template: str,
        values: Callable[[], Mapping[str, Any]],
        *,
        status: int = 200,
        redirect: str = "",
        languages: Sequence[Any] = (),
    ) -> HttpResponse:
        """Render the template in the reader's language, else one that the browser accepts, else
        one of `languages`, else the app's.

        `values` is called while this language is active. `redirect`: where the page's form may
        redirect to.
        """
        # After a server error the page runs no queries.
        app = self.app if status < 500 else None
        languages = languages or (self.languages if app else ())
        preferred = self.preferred_languages(self.customer if app else None)
        language = language_of(app, *preferred, *languages)
        with override(language), activate_english_of(self.browser_languages()):
            shown = {
                "app": to_one_line(app.name) if app else "",
                "branding": branding_of(app) if app else None,
                "link_words": LINK_WORDS,
                "stylesheet": self.stylesheet,
                "language": language,
                "direction": "rtl" if get_language_bidi() else "ltr",
                "app_text": app_text_attributes(other_language(language, app, languages)),
            }
            page = render_to_string(template, {**values(), **shown})
        policy = content_security_policy(self.sources, redirect)
        return HttpResponse(page, status=status, headers={"Content-Security-Policy": policy})


def form_field(
    name: str,
    label: str | Promise,
    value: str = "",
    *,
    type: str = "text",
    maxlength: int = 254,
    hint: str | Promise = "",
    error: str | Promise = "",
    **attributes: Any,
) -> Mapping[str, Any]:
    """Return a field of a step. `type`: of the input, or `textarea`; `attributes`: others, in HTML
    (`required=True`).
    """
    is_input = type != "textarea"
    return {
        "name": name,
        "label": label,
        "hint": hint,
        "error": error,
        "element": "input" if is_input else "textarea",
        "attributes": {
            **({"type": type, "value": value} if is_input else {}),
            "maxlength": maxlength,
            **attributes,
        },
    }


def other_language(page_language: str, app: App | None, languages: Sequence[Any]) -> str:
    """Return the language set by `languages` or the app; "" if it is the page's, or none is set."""
    language = text_language(app, *languages) if app else ""
    return "" if language == page_language else language


def app_text_attributes(language: str) -> SafeString:
    """Return the attributes of an element with a text of an app or project, whose direction and
    language the page may not share: ` dir="auto" lang="en"`. language: "" if it is the page's.
    """
    direction = mark_safe(' dir="auto"')  # nosec B308 B703
    return format_html('{} lang="{}"', direction, language) if language else direction


def content_security_policy(sources: Mapping[str, str], redirect: str = "") -> str:
    """Return the Content-Security-Policy header; the origin of `redirect` is a form-action too."""
    origin = ORIGIN.match(redirect)
    directives = {**sources, "form-action": " ".join(["'self'", *([origin[0]] if origin else [])])}
    return "; ".join(f"{kind} {target}" for kind, target in directives.items())
