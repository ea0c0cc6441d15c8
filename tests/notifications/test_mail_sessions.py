"""Several mails of a dispatcher's thread share a session with the mail server, and no failure."""

from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP
from django.core.mail import EmailMessage

from apps_config.models import App
from notifications.mail.smtp_session import MAILS_PER_SESSION, kept_mail_session, send_mail
from tests.sinks import MailSink


class SessionSink(MailSink):
    """Also notes the client's port of each mail, which is that of its session."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.ports: list[int] = []
        self.ends_sessions = False

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        self.ports.append(session.peer[1])
        answer = await super().handle_DATA(server, session, envelope)
        if self.ends_sessions:
            server.transport.write(f"{answer}\r\n".encode())
            server.transport.close()
        return answer

    def lengths(self) -> list[int]:
        """How many mails each session sent, in the order of the sessions."""
        return [self.ports.count(port) for port in dict.fromkeys(self.ports)]


@pytest.fixture
def sink(settings: Any) -> Iterator[SessionSink]:
    sink = SessionSink()
    sink.start()
    settings.EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sink.port
    yield sink
    sink.stop()


def send(number: int, to: str = "marty@example.com") -> tuple[bool, str]:
    return send_with_subject(f"Mail {number}", to)


def send_with_subject(subject: str, to: str = "marty@example.com") -> tuple[bool, str]:
    mail = EmailMessage(subject, "Text", "app@example.com", [to])
    result = send_mail(mail, App())
    return result.ok, result.error


def subjects(sink: MailSink) -> list[str]:
    return [mail.message["Subject"] for mail in sink.mails]


def test_a_session_sends_ten_mails(sink: SessionSink) -> None:
    count = 2 * MAILS_PER_SESSION + 3

    with kept_mail_session():
        results = [send(number) for number in range(count)]
    alone = send(count)

    assert {*results, alone} == {(True, "")}
    assert subjects(sink) == [f"Mail {number}" for number in range(count + 1)]
    assert sink.lengths() == [10, 10, 3, 1]


def test_each_mail_has_its_own_session_outside_the_block(sink: SessionSink) -> None:
    assert [send(number) for number in range(3)] == [(True, "")] * 3
    assert sink.lengths() == [1, 1, 1]


def test_refusal_ends_the_session_but_not_other_mails(sink: SessionSink) -> None:
    sink.answer = lambda to: "550 unknown" if to == "nobody@example.com" else None

    with kept_mail_session():
        results = [
            send(0),
            send(1, "nobody@example.com"),
            send(2),
            send(3),
        ]

    assert results == [
        (True, ""),
        (False, "The server refused the address (550)."),
        (True, ""),
        (True, ""),
    ]
    assert subjects(sink) == ["Mail 0", "Mail 2", "Mail 3"]
    assert sink.lengths() == [1, 2]


def test_server_closing_sessions_gets_each_mail_once(sink: SessionSink) -> None:
    sink.ends_sessions = True

    with kept_mail_session():
        results = [send(number) for number in range(4)]

    assert results == [(True, "")] * 4
    assert subjects(sink) == [f"Mail {number}" for number in range(4)]
    assert sink.lengths() == [1] * 4


def test_session_after_a_server_restart(sink: SessionSink) -> None:
    with kept_mail_session():
        before = send(0)
        sink.stop()
        away = send(1)
        back = SessionSink(sink.port)
        back.start()
        after = send(2)
    back.stop()

    assert (before, after) == ((True, ""), (True, ""))
    assert away == (False, "The mail server could not be reached (ConnectionRefusedError).")
    assert (subjects(sink), subjects(back)) == (["Mail 0"], ["Mail 2"])


def test_a_header_with_a_line_break_is_not_sent_and_ends_no_other_mail(sink: SessionSink) -> None:
    with kept_mail_session():
        results = [
            send(0),
            send_with_subject("Mail\nBcc: x@example.com"),
            send(1),
        ]

    assert results == [
        (True, ""),
        (False, "The e-mail can't be encoded (BadHeaderError)."),
        (True, ""),
    ]
    assert subjects(sink) == ["Mail 0", "Mail 1"]
