"""What a device gets to install the back office and to open it without a connection: the same for
everybody.
"""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import get_language, get_language_bidi
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from office.navigation import site_header, site_title

COLOUR, GROUND = "#9333ea", "#ffffff"  # of the icon
ICONS = (
    ("office/icon-192.png", "192x192", "any"),
    ("office/icon-512.png", "512x512", "any"),
    ("office/icon-maskable-512.png", "512x512", "maskable"),
)


@require_safe
@cache_control(private=True, max_age=24 * 3600)  # browsers ask for it with each page
def show_manifest(request: HttpRequest) -> HttpResponse:
    """Return the web app manifest, in the language of the browser."""
    start = reverse("admin:index")
    manifest = {
        "id": start,
        "name": site_header(request),
        "short_name": site_title(request),
        "lang": get_language(),
        "dir": "rtl" if get_language_bidi() else "ltr",
        "start_url": start,
        "scope": start,
        "display": "standalone",
        "theme_color": COLOUR,
        "background_color": GROUND,
        "icons": [
            {"src": static(name), "sizes": sizes, "type": "image/png", "purpose": purpose}
            for name, sizes, purpose in ICONS
        ],
    }
    return JsonResponse(manifest, content_type="application/manifest+json")


def offline_files() -> str:
    """Return the paths of the page for times without a connection, its script and its styles."""
    files = "office/offline_page.js", "office/offline_page.css", "bookings/page.css"
    return " ".join([reverse("admin:offline"), *map(static, files)])


@require_safe
def show_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker, which its path limits to the back office."""
    files = {"files": offline_files()}
    return render(request, "office/offline_worker.js", files, content_type="text/javascript")


@require_safe
def show_offline_page(request: HttpRequest) -> HttpResponse:
    """Return the page that the service worker shows if a page can't be loaded."""
    return render(request, "office/offline.html")
