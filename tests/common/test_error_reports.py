"""What Sentry gets: caught where it would leave the process."""

import json
import logging
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import sentry_sdk
from django.test import Client
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from common.observability.log_format import log_fields
from common.observability.sentry_reports import start_sentry
from tests.setup.test_production import production_environment, python_output

pytestmark = pytest.mark.urls("tests.common.urlconf")

logger = logging.getLogger("tests.error_reports")


class Caught(Transport):
    events: ClassVar[list[dict[str, Any]]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            self.events.append(json.loads(item.get_bytes()))


@pytest.fixture
def reports() -> Iterator[list[dict[str, Any]]]:
    Caught.events.clear()
    start_sentry("http://key@127.0.0.1:9/1", transport=Caught)
    yield Caught.events
    sentry_sdk.get_client().close()
    # Not by `init()`: its default integrations would patch http.client for all tests that follow.
    sentry_sdk.get_global_scope().set_client(None)


def fail_for(name: str) -> None:
    secret = f"{name}@example.com"
    raise ValueError(f"Key (email)=({secret}) already exists.")


def test_error_line_is_reported_without_values(reports: list[dict[str, Any]]) -> None:
    with log_fields(request_id="r1", app="a1", customer="marty"):
        try:
            fail_for("marty")
        except ValueError:
            logger.exception("delivery of %s can't be sent", "marty@example.com")

    (report,) = reports
    (exception,) = report["exception"]["values"]
    assert report["logentry"] == {"message": "delivery of %s can't be sent"}
    assert report["tags"] == {"request_id": "r1", "app": "a1"}
    assert exception["type"] == "ValueError"
    assert [frame["function"] for frame in exception["stacktrace"]["frames"]] == [
        "test_error_line_is_reported_without_values",
        "fail_for",
    ]
    assert "vars" not in exception["stacktrace"]["frames"][-1]
    assert "marty@example.com" not in json.dumps(report)


@pytest.mark.django_db
def test_bug_in_a_request_is_reported_once_without_the_request(
    reports: list[dict[str, Any]],
) -> None:
    client = Client(raise_request_exception=False)

    client.get(
        "/v2/broken?email=marty@example.com",
        headers={"X-Request-Id": "r1", "Authorization": "Basic c2VjcmV0", "Cookie": "a=secret"},
    )
    client.get("/v2/nowhere")

    (report,) = reports
    assert (report["logentry"], report["tags"]) == (
        {"message": "UNEXPECTED_ERROR"},
        {"request_id": "r1"},
    )
    told = json.dumps(report)
    assert [word for word in ("marty", "c2VjcmV0", "127.0.0.1", "a=secret") if word in told] == []
    assert "request" not in report


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ({}, []),
        pytest.param(
            *({"OTEL_SERVICE_NAME": "x", "SENTRY_ENVIRONMENT": "x"}, []), marks=pytest.mark.deep
        ),
        ({"SENTRY_DSN": "http://key@127.0.0.1:9/1"}, ["sentry_sdk"]),
        pytest.param(
            *({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, ["opentelemetry.sdk.trace"]),
            marks=pytest.mark.deep,
        ),
        pytest.param(
            *(
                {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
                [],
            ),
            marks=pytest.mark.deep,
        ),
    ],
)
def test_optional_packages_are_imported_only_if_enabled(
    given: dict[str, str], loaded: list[str]
) -> None:
    """redis imports OpenTelemetry's metrics by itself; its traces and exporters nobody does."""
    code = (
        "import django, sys; django.setup();"
        "print([name for name in ('opentelemetry.sdk.trace', 'sentry_sdk') if name in sys.modules])"
    )

    assert python_output(code, env=production_environment(**given)) == f"{loaded}\n"
