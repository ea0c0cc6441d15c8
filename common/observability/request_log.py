"""The access log and the counts of requests: one line and one observation per request."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.http import HttpRequest, HttpResponse

from common.limits.rate_limit import client_address
from common.observability import metrics, tracing
from common.observability.log_format import log_fields

logger = logging.getLogger("access")

UNMATCHED = "unmatched"  # the route of a path that leads nowhere, or to a file


def observe_request(
    request: HttpRequest, request_id: str, answer: Callable[[HttpRequest], HttpResponse]
) -> HttpResponse:
    """Return the answer; count it, log it and trace it.

    All log lines meanwhile have the fields `request_id` and, once it is known, `app`. The access
    log has no query and no referrer, which contain feeds' tokens and signatures of links.
    """
    began = time.perf_counter()
    method = metrics.known_method(request.method)
    with (
        log_fields(request_id=request_id) as fields,
        tracing.request_span(request, fields) as span,
        _count_in_progress(method),
    ):
        response = answer(request)
        seconds = time.perf_counter() - began
        route = route_of(request)
        metrics.count_request(method, route, response.status_code, seconds)
        span.end(route=route, status=response.status_code)
        if logger.isEnabledFor(logging.INFO):
            logger.info("request", extra={"fields": _described(request, response, route, seconds)})
    return response


@contextmanager
def _count_in_progress(method: str) -> Iterator[None]:
    metrics.count_open_request(method, 1)
    try:
        yield
    finally:
        metrics.count_open_request(method, -1)


def route_of(request: HttpRequest) -> str:
    """Return the pattern of the URL, such as `/v2/bookings/<uuid:booking_id>`."""
    match = request.resolver_match
    return f"/{match.route}" if match else UNMATCHED


def _described(
    request: HttpRequest, response: HttpResponse, route: str, seconds: float
) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.path_info,
        "route": route,
        "status": response.status_code,
        "ms": round(seconds * 1000, 1),
        "bytes": response.headers.get("Content-Length", ""),
        "client": client_address(request),
        "agent": request.META.get("HTTP_USER_AGENT", ""),
    }
