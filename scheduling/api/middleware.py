"""What happens around every request, whichever view answers it."""

import logging
import re
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from scheduling.api.errors import (
    NotFound,
    Unavailable,
    discard_connection,
    is_api_path,
    is_outage,
    json_error,
    request_id_of,
)

logger = logging.getLogger(__name__)

SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
CONTEXT_LENGTH = 200

Answer = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    """Gives each request an id, taken over from a sane X-Request-Id, and each response its header.

    Outermost, so that preflights, files and errors of the layers below carry it too.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        request.request_id = given if SANE_ID.fullmatch(given) else str(uuid.uuid4())
        log_context(request)
        response = self.get_response(request)
        response["Service-Request-Id"] = request.request_id
        return response


def log_context(request: HttpRequest) -> None:
    """The client's free Service-Context text, on one line and cut short."""
    for prefix in settings.API_HEADER_PREFIXES:
        context = request.META.get(f"HTTP_{prefix}_CONTEXT".upper().replace("-", "_"))
        if context:
            short = ascii(context[:CONTEXT_LENGTH])
            logger.info("context=%s request_id=%s", short, request.request_id)
            return


class TrailingSlashMiddleware:
    """Makes `/v2/bookings/` the same path as `/v2/bookings`, without a redirect; pages too."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_readable_path(request):
            return json_error(request, NotFound("Page"))
        if has_needless_slash(request):
            request.path_info = request.path_info.removesuffix("/")
            request.path = request.path.removesuffix("/")
        return self.get_response(request)


PAGES = "/book/"  # below which people are sent to


def has_needless_slash(request: HttpRequest) -> bool:
    is_ours = is_api_path(request) or request.path_info.startswith(PAGES)
    return is_ours and request.path_info.endswith("/")


# How Django writes back a byte of a path that is no UTF-8.
BROKEN_BYTE = re.compile("%[89A-F][0-9A-F]")


def is_readable_path(request: HttpRequest) -> bool:
    """Whether the path is UTF-8 without NUL; a path that spells such a byte out is nobody's."""
    return "\0" not in request.path_info and not BROKEN_BYTE.search(request.path_info)


class DatabaseErrorMiddleware:
    """A database outage in a view outside DRF is a 503, as it is inside."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_outage(exception):
            return None
        logger.warning("database unavailable: %s request_id=%s", exception, request_id_of(request))
        discard_connection(exception)
        return json_error(request, Unavailable())
