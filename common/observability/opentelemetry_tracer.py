"""Traces by OpenTelemetry, exported by OTLP over HTTP. Imported only if tracing is on.

Spans name routes, statuses, ids and SQL with placeholders: no paths, queries, bodies or values.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery import signals
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.http import HttpRequest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

DEFAULT_SERVICE_NAME = "scheduling"
MAX_SQL = 2000
# What probes and Prometheus ask every few seconds.
UNTRACED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})

_propagator = TraceContextTextMapPropagator()


def exporting_provider() -> TracerProvider:
    """Return a provider that exports in the background, by the standard OTEL_* variables.

    Its thread is started again in forked processes.
    """
    # The environment's name wins. `Resource.create()` would add one of its own if there is none.
    named = {SERVICE_NAME: DEFAULT_SERVICE_NAME, **OTELResourceDetector().detect().attributes}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class RecordedSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def end(self, **attributes: Any) -> None:
        """Set the attributes: of a request `route` and `status`, of a delivery `ok` and others."""
        route, status = attributes.get("route"), attributes.get("status")
        if route:
            method = getattr(self._span, "attributes", {}).get("http.request.method", "")
            self._span.update_name(f"{method} {route}")
            self._span.set_attribute("http.route", route)
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if (status or 0) >= 500 or attributes.get("ok") is False:
            self._span.set_status(StatusCode.ERROR)


class OpenTelemetryTracer:
    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self.tracer = provider.get_tracer("scheduling")

    def install(self) -> None:
        """Trace the statements of all connections, and export what is left when a worker ends."""
        connection_created.connect(self._watch_connection)
        signals.worker_process_shutdown.connect(self._flush)

    @contextmanager
    def request_span(
        self, request: HttpRequest, fields: Mapping[str, Any]
    ) -> Iterator[RecordedSpan]:
        if request.path_info in UNTRACED_PATHS:
            yield RecordedSpan(trace.INVALID_SPAN)
            return
        carrier = {"traceparent": request.META.get("HTTP_TRACEPARENT", "")}
        with self.tracer.start_as_current_span(
            request.method or "",
            context=_propagator.extract(carrier),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": request.method or ""},
        ) as span:
            yield RecordedSpan(span)
            _set_fields(span, fields)

    @contextmanager
    def delivery_span(
        self, kind: str, trace_parent: str, fields: Mapping[str, Any]
    ) -> Iterator[RecordedSpan]:
        with self.tracer.start_as_current_span(
            f"deliver {kind}",
            context=_propagator.extract({"traceparent": trace_parent}),
            kind=SpanKind.CLIENT,
        ) as span:
            _set_fields(span, fields)
            yield RecordedSpan(span)

    def trace_parent(self) -> str:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def record_statement(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Trace one statement of a request: Django's `execute_wrapper`."""
        if not trace.get_current_span().is_recording():
            return execute(sql, params, many, context)
        text = str(sql)[:MAX_SQL]
        system = {"sqlite": "sqlite"}.get(context["connection"].vendor, "postgresql")
        with self.tracer.start_as_current_span(
            text.split(maxsplit=1)[0].upper() if text.strip() else "SQL",
            kind=SpanKind.CLIENT,
            attributes={"db.system.name": system, "db.query.text": text},
        ):
            return execute(sql, params, many, context)

    def _watch_connection(self, connection: BaseDatabaseWrapper, **_: Any) -> None:
        if self.record_statement not in connection.execute_wrappers:
            connection.execute_wrappers.append(self.record_statement)

    def _flush(self, **_: Any) -> None:
        self.provider.force_flush(5000)


def _set_fields(span: trace.Span, fields: Mapping[str, Any]) -> None:
    span.set_attributes({f"scheduling.{name}": str(value) for name, value in fields.items()})
