from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest

from tests.sinks import HookSink, MailSink, hook_sink, mail_sink


@pytest.fixture
def mails(settings: Any) -> Iterator[MailSink]:
    """An SMTP server that this process sends its mails to."""
    with mail_sink() as sink:
        settings.EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sink.port
        yield sink


@pytest.fixture
def hooks(settings: Any) -> Iterator[HookSink]:
    """A receiver of webhook calls; loopback is allowed."""
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with hook_sink() as sink:
        yield sink
