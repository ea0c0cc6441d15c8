"""The script that shows booking pages in other web sites, and the page with its snippets."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import etag, require_safe
from rest_framework.request import Request

from availability.models import Project
from booking_pages.texts import NO_PAGE
from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.pages.base import SOURCES
from bookings.pages.formatting import to_one_line
from bookings.pages.refusal_texts import REFUSAL_TEXTS
from common.errors import NotFound

SCRIPT = (Path(__file__).parents[1] / "static" / "booking_pages" / "embed.js").read_bytes()
SCRIPT_ETAG = f'"{hashlib.sha256(SCRIPT).hexdigest()[:32]}"'
SCRIPT_HEADERS = {
    # The address stays the same: browsers ask for a new version after an hour.
    "Cache-Control": "public, max-age=3600",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
WORDS: Mapping[str, str | Promise] = {
    "copy": _("Copy"),
    "copied": _("Copied"),
    "example": _("Example"),
    "close": _("Close"),
    "book": _("Book"),
}


@require_safe
@etag(lambda request: SCRIPT_ETAG)
def show_embed_script(request: HttpRequest) -> HttpResponse:
    return HttpResponse(
        SCRIPT, content_type="text/javascript; charset=utf-8", headers=SCRIPT_HEADERS
    )


class EmbedPageView(RateLimitedPageView):
    """What to copy into a web site, and how it looks there."""

    sources = {**SOURCES, "script-src": "'self'", "frame-src": "'self'"}
    refusals = {**REFUSAL_TEXTS, "not_found": NO_PAGE}

    def get(self, request: Request, project_slug: str) -> HttpResponse:
        rows = Project.objects.filter(deleted_at=None, app__archived_at=None, slug=project_slug)
        project = rows.select_related("app").first()
        if project is None or not project.is_published:
            raise NotFound("Project")
        self.app = project.app
        return self.render_page(
            "booking_pages/embed.html",
            lambda: {
                "heading": gettext("Show this booking page in your web site"),
                "sentence": gettext("Copy one of these texts into your page's HTML."),
                "words": WORDS,
                "slug": project.slug,
                "name": to_one_line(project.name),
                "snippets": snippets_of(project),
            },
            languages=[project.settings.get("language")],
        )


def snippets_of(project: Project) -> list[tuple[str, str, str]]:
    """Return (id, label, HTML) of each way to embed. The links work without scripts too."""
    slug, name = project.slug, to_one_line(project.name)
    address = f"{settings.PUBLIC_URL}/book/{quote(slug)}"
    script = format_html('<script src="{}/book/embed.js" async></script>', settings.PUBLIC_URL)
    inline = format_html('<div data-booking-inline="{}" data-booking-title="{}"></div>', slug, name)
    link = (
        '<a href="{}" data-booking-{}="{}" data-booking-title="{}" data-booking-close="{}">{}</a>'
    )
    book, close = WORDS["book"], WORDS["close"]
    return [
        ("inline", gettext("In the page"), f"{inline}\n{script}"),
        (
            "popup",
            gettext("In a pop-up"),
            f"{format_html(link, address, 'popup', slug, name, close, book)}\n{script}",
        ),
        (
            "button",
            gettext("As a floating button"),
            f"{format_html(link, address, 'button', slug, name, close, book)}\n{script}",
        ),
    ]
