"""One bad row, address or answer holds up no other delivery, and sends none twice."""

import socketserver
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from bookings.models import Customer
from notifications.mails_and_calls import MailsAndCalls
from notifications.models import Attempt, Delivery, Endpoint
from notifications.outbox import dispatcher, poller
from notifications.outbox.circuit_breaker import endpoint_of, record_endpoint_results
from notifications.outbox.dispatcher import run_dispatcher
from notifications.webhooks.services import rotate_secret, signing_secrets
from tests.notifications.test_dispatcher import book, hook, make_due, soon
from tests.sinks import HookSink, MailSink
from tests.world import Tenant

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.usefixtures("expanded_calls"),
]


class Chatter(socketserver.BaseRequestHandler):
    """Answers every greeting in another protocol."""

    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.fixture
def no_mail_server(settings: Any) -> Iterator[None]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Chatter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
        yield
        server.shutdown()


def test_mail_server_that_does_not_speak_smtp(tenant: Tenant, no_mail_server: None) -> None:
    book(tenant)
    run_dispatcher("email")

    assert {row.state for row in Delivery.objects.all()} == {"scheduled"}
    assert (
        list(Attempt.objects.values_list("response_code", "error"))
        == [(None, "The response of the mail server is not SMTP.")] * 2
    )


def test_failing_result_does_not_affect_others(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all of the batch would be called again when their leases lapse."""
    hook(tenant, hooks)
    gone, *others = [book(tenant, soon(hours=30 + 2 * number)) for number in range(3)]
    finish = dispatcher.record_results

    def finish_without_one(results: Any) -> None:
        Delivery.objects.filter(booking=gone["id"], type="webhook").delete()
        finish(results)

    monkeypatch.setattr(dispatcher, "record_results", finish_without_one)
    run_dispatcher("webhook")

    calls = Delivery.objects.filter(type="webhook").order_by("id")
    assert [(str(row.booking_id), row.state) for row in calls] == [
        (booking["id"], "delivered") for booking in others
    ]
    assert Attempt.objects.count() == 2
    assert len(hooks.calls) == 3


def test_malformed_address_fails_only_its_mail(
    tenant: Tenant, mails: MailSink, caplog: pytest.LogCaptureFixture
) -> None:
    book(tenant)
    Customer.objects.update(email="Marty <marty@example.com>")
    run_dispatcher("email")

    assert [(row.recipient, row.state) for row in Delivery.objects.order_by("number")] == [
        ("customer", "failed"),
        ("owner", "delivered"),
    ]
    assert "can't be prepared" in caplog.text
    assert "marty" not in caplog.text


# In SQLite's memory, which the tests share between threads, a writer is refused instead of queued.
@pytest.mark.postgresql
def test_concurrent_first_failures_of_a_server() -> None:
    noted = threading.Barrier(2)
    errors: list[Exception] = []

    def note() -> None:
        try:
            with transaction.atomic():
                connection.ensure_connection()
                noted.wait()
                record_endpoint_results("https://example.com:443", [(False, 15.0)], timezone.now())
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    for _ in range(10):
        threads = [threading.Thread(target=note) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert [endpoint.failures for endpoint in Endpoint.objects.all()] == [2]
        Endpoint.objects.all().delete()


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://example.com/a?b", "https://example.com:443"),
        ("HTTP://Bücher.example.:8080", "http://xn--bcher-kva.example:8080"),
        ("http://[2001:DB8::1]/", "http://[2001:db8::1]:80"),
        (f"https://exa{chr(0xAD) * 400}mple.com/", "https://example.com:443"),
        ("", ""),
        ("ftp://example.com", ""),
        ("https://example.com:99999", ""),
        ("https://[::1", ""),
    ],
)
def test_endpoint_of_a_url(url: str, endpoint: str) -> None:
    assert endpoint_of(url) == endpoint


def test_url_with_a_long_host_does_not_stop_a_booking(tenant: Tenant) -> None:
    """Soft hyphens are nothing in a host name, but count where it is kept as it was written."""
    url = f"https://exa{chr(0xAD) * 400}mple.com/hook"

    assert tenant.post("/webhooks", {"url": url}).status == 201
    book(tenant)
    assert Delivery.objects.get(type="webhook").endpoint == "https://example.com:443"


def test_malformed_url_fails_only_its_call(tenant: Tenant, hooks: HookSink) -> None:
    """As staff may write one into an app's event notifications."""
    tenant.app.event_notifications.create(
        type="webhook", url="", when_type="before", when_unit="mins", when_time=5
    )
    hook(tenant, hooks)
    book(tenant)
    make_due(kind="reminder")
    run_dispatcher("webhook")

    rows = Delivery.objects.filter(type="webhook").order_by("number")
    assert [(row.kind, row.state, row.reason) for row in rows] == [
        ("reminder", "scheduled", "Must be an http or https address."),
        ("confirmed", "delivered", ""),
    ]


def test_unreadable_secret_is_retried(
    tenant: Tenant, hooks: HookSink, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a deployment with the wrong key: no call is lost until it is mended."""
    hook(tenant, hooks)
    book(tenant)
    keys, settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS, ["another key" * 4]
    run_dispatcher("webhook")
    row = Delivery.objects.get(type="webhook")
    before = (row.state, row.reason, row.tries, len(hooks.calls))

    settings.ENCRYPTION_KEYS = keys
    make_due()
    run_dispatcher("webhook")

    row.refresh_from_db()
    assert before == ("scheduled", "The webhook's secret can't be read.", 1, 0)
    assert (row.state, row.tries, len(hooks.calls)) == ("delivered", 2, 1)
    assert f"webhook {row.webhook_id}: A stored secret can't be read" in caplog.text


def test_rotation_replaces_an_unreadable_secret(
    tenant: Tenant, hooks: HookSink, settings: Any
) -> None:
    """Though the one before would sign for another day."""
    webhook = hook(tenant, hooks)
    settings.ENCRYPTION_KEYS = ["another key" * 4]
    now = timezone.now()

    webhook, secret = rotate_secret(webhook, now=now)

    assert signing_secrets(webhook, now=now) == [secret]


@pytest.mark.parametrize("error", [InterfaceError("closed"), KeyError("anything")])
def test_poller_survives_errors(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    hook(tenant, hooks)
    book(tenant)
    make_due()
    read = poller.next_check

    def read_one(kind: str) -> Any:
        if kind == "email":
            raise error
        return read(kind)

    monkeypatch.setattr(poller, "next_check", read_one)
    Delivery.objects.filter(type="webhook").update(next_at=timezone.now() - poller.NEGLECTED * 2)
    poller.send_neglected_deliveries(["email", "webhook"])

    assert [row.state for row in Delivery.objects.filter(type="webhook")] == ["delivered"]


@pytest.mark.parametrize(
    ("late", "sent"),
    [
        (poller.NEGLECTED - timedelta(seconds=1), []),
        (poller.NEGLECTED, ["webhook"]),
    ],
)
def test_poller_skips_recently_due_deliveries(
    tenant: Tenant,
    hooks: HookSink,
    monkeypatch: pytest.MonkeyPatch,
    late: timedelta,
    sent: list[str],
) -> None:
    hook(tenant, hooks)
    book(tenant)
    now = timezone.now()
    Delivery.objects.filter(type="webhook").update(next_at=now - late)
    found: list[str] = []
    monkeypatch.setattr(poller, "database_now", lambda: now)
    monkeypatch.setattr(poller, "run_dispatcher", lambda kind, stopping: found.append(kind))
    poller.send_neglected_deliveries(["webhook"])

    assert found == sent


def test_result_is_retried_while_the_database_is_read_only(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it dropped, the call would be made a second time."""
    hook(tenant, hooks)
    book(tenant)
    refused = DatabaseError("cannot execute UPDATE in a read-only transaction")
    refused.__cause__ = psycopg.errors.ReadOnlySqlTransaction()
    errors = [refused]
    finish = dispatcher.record_results

    def finish_later(results: Any) -> None:
        if errors:
            raise errors.pop()
        finish(results)

    monkeypatch.setattr(dispatcher, "record_results", finish_later)
    run_dispatcher("webhook")

    assert [row.state for row in Delivery.objects.filter(type="webhook")] == ["delivered"]
    assert len(hooks.calls) == 1


def test_database_outage_during_preparation_fails_no_delivery(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(tenant, hooks)
    book(tenant)
    errors = [OperationalError("canceling statement due to statement timeout")]
    send_of = MailsAndCalls.send_of

    def send_later(batch: MailsAndCalls, row: Delivery) -> Any:
        if errors:
            raise errors.pop()
        return send_of(batch, row)

    monkeypatch.setattr(MailsAndCalls, "send_of", send_later)
    run_dispatcher("webhook")
    first = [row.state for row in Delivery.objects.filter(type="webhook")]
    Delivery.objects.filter(type="webhook").update(next_at=timezone.now())  # its lease has lapsed
    run_dispatcher("webhook")

    assert first == ["sending"]
    assert [row.state for row in Delivery.objects.filter(type="webhook")] == ["delivered"]
