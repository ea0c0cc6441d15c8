"""ETags of responses, and conditional requests (RFC 9110, 8.8.3 and 13)."""

import hashlib

from django.http import HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from rest_framework.request import Request

DIGEST_LENGTH = 32


def etag_of(content: bytes) -> str:
    """Return the strong ETag of a response with this body."""
    return f'"{hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]}"'


def matches(header: str, etag: str) -> bool:
    """Return whether a list of ETags, or `*`, has this one. Weak ones count, as proxies make them
    of ours when they compress.
    """
    return header.strip() == "*" or etag in (
        item.strip().removeprefix("W/") for item in header.split(",")
    )


def answer_conditionally(request: Request, response: HttpResponse) -> HttpResponseBase:
    """Add the ETag to a rendered response; return 304 if the client has this one."""
    etag = etag_of(response.content)
    response.headers["ETag"] = etag
    if not matches(request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
        return response
    headers = {k: v for k, v in response.headers.items() if not k.startswith("Content-")}
    return HttpResponseNotModified(headers=headers)
