"""How requests, tasks and attempts of deliveries are observed: log lines, counts and traces.

With SENTRY_DSN, log lines of the level ERROR are also reported (`error_reports`).
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from celery import Task, signals
from django.http import HttpRequest, HttpResponse

from common.limits.rate_limit import client_address
from common.observability import metrics, tracing
from common.observability.log_format import end_task_fields, log_fields, start_task_fields

if TYPE_CHECKING:
    from common.observability.opentelemetry_tracer import RecordedSpan

access_log = logging.getLogger("access")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"  # the route of a path that leads nowhere, or to a file


def observe_request(
    request: HttpRequest, request_id: str, answer: Callable[[HttpRequest], HttpResponse]
) -> HttpResponse:
    """Return the answer; count it, log it and trace it.

    All log lines meanwhile have the fields `request_id` and, once it is known, `app`. The access
    log has no query and no referrer, which contain feeds' tokens and signatures of links.
    """
    began = time.perf_counter()
    # A client can send any word as its method.
    method = request.method if request.method in METHODS else "other"
    tracer = tracing.tracer
    with (
        log_fields(request_id=request_id) as fields,
        tracer.request_span(request, fields) if tracer else nullcontext() as span,
        metrics.requests_in_progress(method).track_inprogress(),
    ):
        response = answer(request)
        seconds = time.perf_counter() - began
        route = f"/{match.route}" if (match := request.resolver_match) else UNMATCHED
        status = response.status_code
        metrics.request_seconds(method, route, f"{status // 100}xx").observe(seconds)
        if span:
            span.end(route=route, status=status)
        if access_log.isEnabledFor(logging.INFO):
            line = {
                "method": request.method,
                "path": request.path_info,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "bytes": response.headers.get("Content-Length", ""),
                "client": client_address(request),
                "agent": request.META.get("HTTP_USER_AGENT", ""),
            }
            access_log.info("request", extra={"fields": line})
    return response


@contextmanager
def observe_attempt(kind: str, trace_parent: str, **fields: Any) -> Iterator["RecordedSpan | None"]:
    """Trace an attempt of a delivery, and add the fields to its log lines. Without traces: None.

    trace_parent: the span of the request that caused the delivery.
    """
    tracer = tracing.tracer
    with (
        log_fields(**fields) as known,
        tracer.delivery_span(kind, trace_parent, known) if tracer else nullcontext() as span,
    ):
        yield span


# --- Tasks: Celery tells their begin and end by signals -------------------------------------------
@signals.setup_logging.connect
def prevent_celery_logging_setup(loglevel: int | None = None, **_: Any) -> None:
    """Keep the handlers of the settings instead of Celery's; the more verbose level applies."""
    root = logging.getLogger()
    root.setLevel(min(root.level, loglevel or root.level))


@signals.task_prerun.connect
def begin_task(task_id: str, task: Task, **_: Any) -> None:
    start_task_fields(task=task.name, task_id=task_id)
    task.request.began = time.perf_counter()


@signals.task_postrun.connect
def finish_task(task: Task, state: str | None = None, **_: Any) -> None:
    began = getattr(task.request, "began", None)
    if began is not None:  # a task that was called as a function has none
        seconds = time.perf_counter() - began
        result = (state or "failure").lower()
        metrics.task_seconds(task.name, result).observe(seconds)
        if result == "failure":
            metrics.task_last_failure(task.name).set_to_current_time()
    end_task_fields()
