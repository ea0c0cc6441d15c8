"""The stylesheet of an accent colour, logos and pictures. None changes under its address."""

import uuid

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from apps_config.models import AppLogo, DarkLogo
from availability.models import ResourcePicture
from bookings.pages.branding import readable_on_dark, readable_on_light

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
    wanted = Q(digest=digest, app__slug=slug, app__archived_at=None)
    logo = AppLogo.objects.filter(wanted).first() or DarkLogo.objects.filter(wanted).first()
    return _image_response(logo)


@require_safe
@xframe_options_exempt
def show_picture(request: HttpRequest, resource_id: uuid.UUID, digest: str) -> HttpResponse:
    rows = ResourcePicture.objects.filter(digest=digest, resource_id=resource_id)
    rows = rows.filter(resource__deleted_at=None, resource__app__archived_at=None)
    return _image_response(rows.first())


def _image_response(image: AppLogo | DarkLogo | ResourcePicture | None) -> HttpResponse:
    if image is None:
        return HttpResponse(status=404)
    headers = {"Cache-Control": FOREVER, "Content-Security-Policy": "default-src 'none'; sandbox"}
    return HttpResponse(bytes(image.content), content_type=image.type, headers=headers)
