"""Middleware for every request, and where the request comes from, for records of who did what."""

import logging
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.middleware.gzip import GZipMiddleware

from common.errors import (
    Malformed,
    Misdirected,
    PathNotFound,
    Unavailable,
    discard_connection,
    is_api_path,
    is_outage,
    json_error,
    set_request_id,
    unreadable_body,
)
from common.limits.rate_limit import customer_network
from common.observability.observe import observe_request

logger = logging.getLogger(__name__)

SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
CONTEXT_LENGTH = 200

Answer = Callable[[HttpRequest], HttpResponse]

MAX_USER_AGENT = 200

_request: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


class RequestOrigin(NamedTuple):
    network: str
    user_agent: str


@contextmanager
def serving(request: HttpRequest) -> Iterator[None]:
    """Name the request that this thread serves inside the block."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def request_origin() -> RequestOrigin | None:
    """Return the network and the browser of the request; None outside of requests."""
    request = _request.get()
    if request is None:
        return None
    user_agent = request.META.get("HTTP_USER_AGENT", "").replace("\0", "")
    return RequestOrigin(customer_network(request), user_agent[:MAX_USER_AGENT])


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


class ResponseHeadersMiddleware:
    """Set the length of every answer; an answer to HEAD has no body. Forbid caches to keep answers
    of the API, errors included, unless the view allows it.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if is_api_path(request):
            response.headers.setdefault("Cache-Control", "private, no-store")
        if response.streaming:
            return response
        if response.status_code not in (204, 304):
            # Without it, gunicorn sends the body in chunks.
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if request.method == "HEAD":
            response.content = b""
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


class HomeMiddleware:
    """Refuse a request that a router has sent to the wrong cell: its `Service-Home` header names
    another home.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response
        self.home = str(settings.HOME_NUMBER)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.META.get("HTTP_SERVICE_HOME", self.home) != self.home:
            return json_error(request, Misdirected())
        return self.get_response(request)


class PagesOnly:
    """Base of a middleware that requests of the API skip: they have keys instead of sessions."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        if is_api_path(request):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]  # of the middleware beside it


class PageGZipMiddleware(PagesOnly, GZipMiddleware):
    """Compresses pages. Secrets on them can't be guessed from the length of answers (BREACH):
    Django's middleware adds random bytes, tokens of forms are masked anew for each answer, and a
    page with a new key or password answers a POST with such a token.
    """


class PageSessionMiddleware(PagesOnly, SessionMiddleware):
    pass


class PageAuthenticationMiddleware(PagesOnly, AuthenticationMiddleware):
    pass


class PageMessageMiddleware(PagesOnly, MessageMiddleware):
    pass


class TrailingSlashMiddleware:
    """Treat `/v2/bookings/` like `/v2/bookings`, without a redirect; also for pages."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_decodable_path(request):
            return json_error(request, PathNotFound())
        if has_trailing_slash(request):
            request.path_info = request.path_info.removesuffix("/")
            request.path = request.path.removesuffix("/")
        return self.get_response(request)


PAGES = "/book/"  # prefix of the public pages


def has_trailing_slash(request: HttpRequest) -> bool:
    """Return whether the path ends with a slash. One that was written as `%2F` ends an id: only the
    path as gunicorn received it tells them apart.
    """
    is_ours = is_api_path(request) or request.path_info.startswith(PAGES)
    received = request.META.get("RAW_URI", request.path_info).partition("?")[0]
    return is_ours and request.path_info.endswith("/") and received.endswith("/")


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
