"""Middleware for every request."""

import logging
import re
import uuid
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, UnreadablePostError

from common.errors import (
    Malformed,
    NotFound,
    Unavailable,
    discard_connection,
    is_api_path,
    is_outage,
    json_error,
    set_request_id,
    unreadable_body,
)
from common.observability.request_log import observe_request
from common.request_origin import serving

logger = logging.getLogger(__name__)

SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
CONTEXT_LENGTH = 200

Answer = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    """Set the id of each request (a valid X-Request-Id is kept) and the header of its response.

    The request is logged, counted and traced under this id.

    Outermost, so that preflights, files and errors of inner layers have the id too.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = given if SANE_ID.fullmatch(given) else str(uuid.uuid4())
        set_request_id(request, request_id)
        with serving(request):
            response = observe_request(request, request_id, self._answer)
        response["Service-Request-Id"] = request_id
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        log_context_header(request)
        return self.get_response(request)


class NoStoreMiddleware:
    """Forbid caches to keep answers of the API, errors included, unless the view allows it."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if is_api_path(request):
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response


def log_context_header(request: HttpRequest) -> None:
    """Log the client's free Service-Context text, on one line and truncated."""
    for prefix in settings.API_HEADER_PREFIXES:
        context = request.META.get(f"HTTP_{prefix}_CONTEXT".upper().replace("-", "_"))
        if context:
            logger.info("context=%s", ascii(context[:CONTEXT_LENGTH]))
            return


class HostMiddleware:
    """Refuse a Host that is not in ALLOWED_HOSTS; probes may send any.

    Django itself checks the header only where code reads it, and logs an error with a traceback.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info not in settings.PROBE_PATHS:
            try:
                request.get_host()
            except DisallowedHost:
                host = request.META.get("HTTP_HOST", "")
                logger.warning("host not in ALLOWED_HOSTS: %s", ascii(host[:CONTEXT_LENGTH]))
                return json_error(request, Malformed("The service does not answer to this Host."))
        return self.get_response(request)


class TrailingSlashMiddleware:
    """Treat `/v2/bookings/` like `/v2/bookings`, without a redirect; also for pages."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_decodable_path(request):
            return json_error(request, NotFound("Page"))
        if has_trailing_slash(request):
            request.path_info = request.path_info.removesuffix("/")
            request.path = request.path.removesuffix("/")
        return self.get_response(request)


PAGES = "/book/"  # prefix of the public pages


def has_trailing_slash(request: HttpRequest) -> bool:
    is_ours = is_api_path(request) or request.path_info.startswith(PAGES)
    return is_ours and request.path_info.endswith("/")


# Django's notation for a byte of a path that is not UTF-8.
BROKEN_BYTE = re.compile("%[89A-F][0-9A-F]")


def is_decodable_path(request: HttpRequest) -> bool:
    """Return whether the path is UTF-8 without NUL; false for a literal BROKEN_BYTE too."""
    return "\0" not in request.path_info and not BROKEN_BYTE.search(request.path_info)


class DatabaseErrorMiddleware:
    """Answer a database outage in a view outside of DRF with 503, as in DRF's views."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_outage(exception):
            return None
        logger.warning("database unavailable: %s", exception)
        discard_connection(exception)
        return json_error(request, Unavailable())


class UnreadableBodyMiddleware:
    """Answer a late or incomplete body in a view outside of DRF as in DRF's views."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, UnreadablePostError):
            return None
        return json_error(request, unreadable_body(exception))
