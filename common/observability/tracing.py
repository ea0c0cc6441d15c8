"""Traces. Without an endpoint in OTEL_* variables, nothing is traced and nothing imported.

One trace leads from a request over its statements and the delivery to the webhook call: a delivery
stores the span of its request as a W3C `traceparent` (`current_trace_parent`).
"""

from django.conf import settings

if settings.TRACING:
    from common.observability.opentelemetry_tracer import OpenTelemetryTracer, exporting_provider

    tracer: OpenTelemetryTracer | None = OpenTelemetryTracer(exporting_provider())
else:
    tracer = None


def install() -> None:
    """Trace the statements of all connections from now on, if there is a tracer."""
    if tracer:
        tracer.install()


def current_trace_parent() -> str:
    """Return the current span as a W3C `traceparent`; "" without one."""
    return tracer.trace_parent() if tracer else ""


def trace_headers() -> dict[str, str]:
    """Return the header that continues the trace at a server that is called."""
    parent = current_trace_parent()
    return {"traceparent": parent} if parent else {}
