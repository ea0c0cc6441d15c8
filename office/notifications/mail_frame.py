"""The HTML of an e-mail in a frame of a page."""

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

# It loads nothing and runs nothing, also when it is opened by itself.
FRAME_POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "sandbox",
        "frame-ancestors 'self'",
    ]
)


def mail_frame(html: str) -> HttpResponse:
    response = HttpResponse(html)
    response["Content-Security-Policy"] = FRAME_POLICY
    response["X-Frame-Options"] = "SAMEORIGIN"
    patch_vary_headers(response, ["Cookie"])
    return response
