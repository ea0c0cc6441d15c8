"""A delivery remembers its request: in the worker's log lines and in the trace."""

import json
import logging
from collections.abc import Iterator

import pytest
from django.db import connection
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from common.observability import tracing
from common.observability.log_format import JsonFormatter
from common.observability.opentelemetry_tracer import OpenTelemetryTracer
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from notifications.webhooks.services import create_webhook
from tests.sinks import HookSink, MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

CALLER_TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACE_PARENT = f"00-{CALLER_TRACE}-b7ad6b7169203331-01"
SPAN = {"start": "2027-03-23 10:00:00", "end": "2027-03-23 11:00:00"}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Tracing is on; what would be exported."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = OpenTelemetryTracer(provider)
    monkeypatch.setattr(tracing, "tracer", tracer)
    with connection.execute_wrapper(tracer.record_statement):
        yield exporter
    provider.shutdown()


def book(tenant: Tenant, **headers: str) -> None:
    resource = tenant.make_resource(email="ada@example.com")
    body = {
        "resource_id": resource["id"],
        **SPAN,
        "what": "Secret visit",
        "customer": {"name": "Marty", "email": "marty@example.com"},
    }
    assert tenant.call("POST", "/bookings", body, headers).status == 201


def test_log_lines_of_an_attempt_have_request_and_app(
    tenant: Tenant, hooks: HookSink, mails: MailSink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    caplog.handler.setFormatter(JsonFormatter())
    create_webhook(app=tenant.app, given={"url": hooks.url("/hook")})
    book(tenant, **{"X-Request-Id": "r1"})

    run_dispatcher("webhook")
    run_dispatcher("email")

    stored = set(Delivery.objects.values_list("request_id", "trace_parent"))
    lines = [json.loads(line) for line in caplog.text.splitlines()]
    attempts = [line for line in lines if line["message"] == "attempt"]
    assert stored == {("r1", "")}
    assert {
        (line["type"], line["request_id"], line["app"], line["ok"], line["status"])
        for line in attempts
    } == {
        ("webhook", "r1", str(tenant.app.id), True, 200),
        ("email", "r1", str(tenant.app.id), True, ""),
    }
    assert {line["delivery"] for line in attempts} == {
        str(row.id) for row in Delivery.objects.filter(state="delivered")
    }
    assert "traceparent" not in hooks.calls[0].headers


def test_one_trace_from_the_request_to_the_webhook(
    tenant: Tenant, hooks: HookSink, spans: InMemorySpanExporter
) -> None:
    create_webhook(app=tenant.app, given={"url": hooks.url("/hook")})
    book(tenant, traceparent=TRACE_PARENT, **{"X-Request-Id": "r1"})

    run_dispatcher("webhook")

    trace = [span for span in spans.get_finished_spans() if trace_id(span) == CALLER_TRACE]
    (request,) = [span for span in trace if span.name == "POST /v2/bookings"]
    (call,) = [span for span in trace if span.name == "deliver webhook"]
    statements = [span for span in trace if span not in (request, call)]
    assert format_span_id(request.parent.span_id) == "b7ad6b7169203331"
    assert call.parent.span_id == request.context.span_id
    assert {span.parent.span_id for span in statements} == {request.context.span_id}
    assert {"SELECT", "INSERT"} <= {span.name for span in statements}
    assert dict(request.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v2/bookings",
        "http.response.status_code": 201,
        "scheduling.request_id": "r1",
        "scheduling.app": str(tenant.app.id),
    }
    assert hooks.calls[-1].headers["traceparent"] == (
        f"00-{CALLER_TRACE}-{format_span_id(call.context.span_id)}-01"
    )


def test_spans_contain_no_personal_data(
    tenant: Tenant, hooks: HookSink, mails: MailSink, spans: InMemorySpanExporter
) -> None:
    book(tenant)
    tenant.get("/bookings?search=marty@example.com")
    run_dispatcher("email")

    told = "".join(span.to_json() for span in spans.get_finished_spans())

    assert [word for word in ("marty", "Marty", "ada@", "Secret visit") if word in told] == []


def test_idle_worker_traces_no_queries(
    tenant: Tenant, hooks: HookSink, spans: InMemorySpanExporter
) -> None:
    run_dispatcher("webhook")

    assert spans.get_finished_spans() == ()


def trace_id(span: ReadableSpan) -> str:
    return format_trace_id(span.context.trace_id)
