"""Traces leave real processes: web after its fork, and a worker, to a collector on loopback."""

import gzip
import time
from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from common.observability.opentelemetry_tracer import exporting_provider
from tests.live import CUSTOMER, LiveApp
from tests.services import Service
from tests.sinks import HookSink, hook_sink

SPAN = {"start": "2027-03-23 10:00:00", "end": "2027-03-23 11:00:00"}


def exported(collector: HookSink) -> dict[str, tuple[str, str]]:
    """Span name -> (trace, service name)."""
    found = {}
    for call in collector.calls:
        is_zipped = call.headers.get("content-encoding") == "gzip"
        body = gzip.decompress(call.body) if is_zipped else call.body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
            service = attributes["service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    found[span.name] = (span.trace_id.hex(), service)
    return found


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "scheduling"),
        ({"OTEL_SERVICE_NAME": "desk"}, "desk"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=desk,service.version=2"}, "desk"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.version=2"}, "scheduling"),
    ],
)
def test_service_name(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], name: str) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    with hook_sink() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
        for variable, value in given.items():
            monkeypatch.setenv(variable, value)
        provider = exporting_provider()
        with provider.get_tracer("test").start_as_current_span("GET /healthz"):
            pass
        provider.shutdown()

    assert {span: service for span, (_, service) in exported(collector).items()} == {
        "GET /healthz": name
    }


def test_web_and_worker_export_one_trace(start_service: Callable[..., Service]) -> None:
    with hook_sink() as collector, hook_sink() as receiver:
        service = start_service(
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.port}",
            OTEL_SERVICE_NAME="bookings-test",
            OTEL_BSP_SCHEDULE_DELAY=200,
            WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
            REDIS_URL="",
        )
        service.start_worker(concurrency=1)
        app = LiveApp(service)
        app.post("/v2/webhooks", {"url": receiver.url()})
        resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
        body = {"resource_id": resource["id"], **SPAN, "what": "Visit", "customer": CUSTOMER}
        assert app.post("/v2/bookings", body).status == 201

        deadline = time.monotonic() + 60
        wanted = {"POST /v2/bookings", "deliver webhook", "INSERT"}
        while not wanted <= set(found := exported(collector)):
            assert time.monotonic() < deadline, (found, service.log("web"), service.log("worker"))
            time.sleep(0.2)
        service.stop()

    assert found["deliver webhook"] == found["POST /v2/bookings"]
    assert found["POST /v2/bookings"][1] == "bookings-test"
    assert receiver.calls[0].headers["traceparent"].split("-")[1] == found["deliver webhook"][0]
