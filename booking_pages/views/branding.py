"""The stylesheet of an accent colour, and logos. Neither changes under its address."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from apps_config.models import AppLogo
from bookings.branding import readable_on_dark, readable_on_light

FOREVER = "public, max-age=31536000, immutable"


@require_safe
def show_accent_stylesheet(request: HttpRequest, color: str) -> HttpResponse:
    """The accent colour over that of page.css, as readable as it is."""
    light, dark = readable_on_light(f"#{color}"), readable_on_dark(f"#{color}")
    text = (
        f":root {{ --button: {light}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ --button: {dark}; }} }}\n"
    )
    return HttpResponse(text, content_type="text/css", headers={"Cache-Control": FOREVER})


@require_safe
@xframe_options_exempt
def show_logo(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    logo = AppLogo.objects.filter(digest=digest, app__slug=slug, app__archived_at=None).first()
    if logo is None:
        return HttpResponse(status=404)
    headers = {"Cache-Control": FOREVER, "Content-Security-Policy": "default-src 'none'; sandbox"}
    return HttpResponse(bytes(logo.content), content_type=logo.type, headers=headers)
