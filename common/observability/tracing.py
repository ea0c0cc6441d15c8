"""Traces. Without an endpoint in OTEL_* variables, nothing is traced and nothing imported.

One trace leads from a request over its statements and the delivery to the webhook call: a delivery
stores the span of its request as a W3C `traceparent` (`current_trace_parent`).
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from django.conf import settings
from django.http import HttpRequest


class Span(Protocol):
    def end(self, **attributes: Any) -> None:
        """Set what is known only at the end, such as `status`."""


class Tracer(Protocol):
    def request_span(
        self, request: HttpRequest, fields: Mapping[str, Any]
    ) -> AbstractContextManager[Span]: ...

    def delivery_span(
        self, kind: str, trace_parent: str, fields: Mapping[str, Any]
    ) -> AbstractContextManager[Span]: ...

    def trace_parent(self) -> str: ...

    def install(self) -> None: ...


class NoSpan:
    def end(self, **attributes: Any) -> None:
        pass


class NoTracer:
    """The default."""

    _nothing = nullcontext(NoSpan())

    def request_span(
        self, request: HttpRequest, fields: Mapping[str, Any]
    ) -> AbstractContextManager[Span]:
        return self._nothing

    def delivery_span(
        self, kind: str, trace_parent: str, fields: Mapping[str, Any]
    ) -> AbstractContextManager[Span]:
        return self._nothing

    def trace_parent(self) -> str:
        return ""

    def install(self) -> None:
        pass


tracer: Tracer
if settings.TRACING:
    from common.observability.opentelemetry_tracer import OpenTelemetryTracer, exporting_provider

    tracer = OpenTelemetryTracer(exporting_provider())
else:
    tracer = NoTracer()


def request_span(request: HttpRequest, fields: Mapping[str, Any]) -> AbstractContextManager[Span]:
    """Trace the request as part of the caller's trace (its `traceparent`), or of a new one.

    fields: those of the log lines; their request id and app become attributes.
    """
    return tracer.request_span(request, fields)


def delivery_span(
    kind: str, trace_parent: str, fields: Mapping[str, Any]
) -> AbstractContextManager[Span]:
    """Trace an attempt of a delivery; `trace_parent` is the span of the request that caused it."""
    return tracer.delivery_span(kind, trace_parent, fields)


def current_trace_parent() -> str:
    """Return the current span as a W3C `traceparent`; "" without one."""
    return tracer.trace_parent()


def trace_headers() -> dict[str, str]:
    """Return the header that continues the trace at a server that is called."""
    parent = current_trace_parent()
    return {"traceparent": parent} if parent else {}
