"""The browsable description at /docs: Swagger UI, all of it from this service."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

# Try-it-out calls this service and nobody else. Swagger UI draws its icons from data: addresses.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@require_safe
def show_docs(request: HttpRequest) -> HttpResponse:
    response = render(request, "docs.html")
    response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response["Referrer-Policy"] = "no-referrer"
    return response
