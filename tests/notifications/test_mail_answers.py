"""What mail servers answer: refused addresses, slow and missing answers, 7-bit servers."""

import socketserver
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import Account, Membership
from notifications.mail.smtp_backend import Conversation
from notifications.models import Attempt, Delivery, Suppression
from notifications.outbox.dispatcher import run_dispatcher
from tests.delivery_faults import delivery_faults
from tests.notifications.test_dispatcher import book, make_due, soon
from tests.sinks import MailSink
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)
MARTY, ADA, BOB = "marty@example.com", "ada@example.com", "bob@example.com"
UNCONFIRMED = "The mail server did not confirm the e-mail. It may have been delivered."


def outcome_of(recipient: str) -> tuple[Any, ...]:
    """(state, reason) of the delivery, then (outcome, code, error, excerpt) of its attempts."""
    row = Delivery.objects.get(recipient=recipient)
    fields = ("outcome", "response_code", "error", "excerpt")
    return (row.state, row.reason), *row.attempts.order_by("id").values_list(*fields)


def suppressed() -> list[tuple[str, str, str]]:
    return list(Suppression.objects.order_by("id").values_list("address", "reason", "detail"))


# --- Refused addresses ----------------------------------------------------------------------------
def test_refused_address_of_two_is_suppressed(tenant: Tenant, mails: MailSink) -> None:
    """The other one gets it; the refused one is suppressed, as after a bounce."""
    for email in (ADA, BOB):
        account = Account.objects.create_user(email)
        Membership.objects.create(account=account, app=tenant.app, role=Membership.OWNER)
    mails.answer = {BOB: f"550 5.1.1 <{BOB}>: no such user"}.get
    resource = tenant.make_resource()
    book(tenant, resource=resource)
    run_dispatcher("email")
    first = outcome_of("owner")
    book(tenant, soon(hours=40), resource=resource)
    run_dispatcher("email")

    words = "550 5.1.1 <[address]>: no such user"
    assert first == (
        ("delivered", ""),
        ("ok", 550, "The server refused 1 of 2 addresses (550 5.1.1).", words),
    )
    assert suppressed() == [(BOB, "bounced", words)]
    assert [mail.to for mail in mails.mails if mail.to != [MARTY]] == [[ADA], [ADA]]
    assert delivery_faults() == []


LATER = "The server accepts no e-mail for the address at the moment"


@pytest.mark.parametrize(
    ("answer", "state", "error", "is_suppressed"),
    [
        ("550 5.1.1 <{}>: unknown", "failed", "The server refused the address (550 5.1.1).", True),
        ("550 5.2.1 {} off", "failed", "The server refused the address (550 5.2.1).", True),
        ("550 no such user", "failed", "The server refused the address (550).", False),
        ("554 5.7.1 relay denied", "failed", "The server refused the address (554 5.7.1).", False),
        ("550 5.1.8 sender", "failed", "The server refused the address (550 5.1.8).", False),
        ("450 4.2.0 greylisted", "scheduled", f"{LATER} (450 4.2.0).", False),
        ("452 4.2.2 mailbox full", "scheduled", f"{LATER} (452 4.2.2).", False),
    ],
)
def test_temporary_and_permanent_refusals(
    tenant: Tenant, mails: MailSink, answer: str, state: str, error: str, is_suppressed: bool
) -> None:
    mails.answer = {MARTY: answer.format(MARTY)}.get
    book(tenant)
    run_dispatcher("email")

    words = answer.format("[address]")
    assert outcome_of("customer") == (
        (state, error),
        ("failed", int(answer[:3]), error, words),
    )
    assert suppressed() == ([(MARTY, "bounced", words)] if is_suppressed else [])


# --- Answers that are late or missing -------------------------------------------------------------
def test_smtp_deadlines(tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 5321, 4.5.3.2: a server scans the mail before it answers."""
    deadlines: list[float | None] = []
    getreply = Conversation.getreply

    def get_reply(self: Conversation) -> tuple[int, bytes]:
        answer = getreply(self)
        deadlines.append(self.sock.gettimeout())
        return answer

    monkeypatch.setattr(Conversation, "getreply", get_reply)
    book(tenant)
    Delivery.objects.filter(recipient="owner").delete()
    run_dispatcher("email")

    commands = ["greeting", "EHLO", "MAIL", "RCPT", "DATA"]
    assert deadlines == [*[30] * len(commands), 120, 30]  # QUIT


@pytest.fixture
def silent_mails(mails: MailSink, settings: Any) -> Iterator[MailSink]:
    """The server takes mails and never answers."""
    settings.EMAIL_MESSAGE_TIMEOUT = 0.2
    mails.confirms = False
    yield mails
    mails.confirms = True


def test_an_unconfirmed_mail_is_sent_twice_at_most(tenant: Tenant, silent_mails: MailSink) -> None:
    """The second time after 30 minutes, as the first may have been delivered."""
    book(tenant)
    Delivery.objects.filter(recipient="owner").delete()
    run_dispatcher("email")
    row = Delivery.objects.get()
    pause = row.next_at - timezone.now()
    once = outcome_of("customer")
    for _ in range(2):
        make_due()
        run_dispatcher("email")

    attempt = ("unconfirmed", None, UNCONFIRMED, "")
    assert timedelta(minutes=29) < pause <= timedelta(minutes=30)
    assert once == (("scheduled", UNCONFIRMED), attempt)
    assert outcome_of("customer") == (("failed", UNCONFIRMED), attempt, attempt)
    assert [mail.id for mail in silent_mails.mails] == [f"<{row.id}@localhost>"] * 2


def test_unconfirmed_mail_is_delivered_at_the_retry(tenant: Tenant, silent_mails: MailSink) -> None:
    book(tenant)
    Delivery.objects.filter(recipient="owner").delete()
    run_dispatcher("email")
    silent_mails.confirms = True
    make_due()
    run_dispatcher("email")

    assert outcome_of("customer") == (
        ("delivered", ""),
        ("unconfirmed", None, UNCONFIRMED, ""),
        ("ok", None, "", ""),
    )


class HangingUp(socketserver.StreamRequestHandler):
    """Takes a mail, and ends the connection before (`ends_at`) or after its last line."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            if line.upper().startswith(self.server.ends_at):
                return
            if line.upper().startswith(b"DATA"):
                self.wfile.write(b"354 go on\r\n")
                continue
            if line[:4].upper() in (b"EHLO", b"MAIL", b"RCPT"):
                self.wfile.write(b"250 ok\r\n")


@pytest.mark.parametrize(
    ("ends_at", "outcome", "error"),
    [
        (
            b"DATA",
            "failed",
            "The mail server could not be reached (SMTPServerDisconnected).",
        ),
        (b".\r\n", "unconfirmed", UNCONFIRMED),
    ],
)
def test_connection_closed_by_the_mail_server(
    tenant: Tenant, mails: MailSink, settings: Any, ends_at: bytes, outcome: str, error: str
) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HangingUp) as server:
        server.daemon_threads, server.ends_at = True, ends_at
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        settings.EMAIL_PORT = server.server_address[1]
        book(tenant)
        run_dispatcher("email")
        server.shutdown()
        serving.join()

    assert set(Attempt.objects.values_list("outcome", "error")) == {(outcome, error)}


# --- 8BITMIME -------------------------------------------------------------------------------------
@pytest.mark.parametrize("has_8bitmime", [True, False])
def test_server_without_8bitmime_gets_7bit_mails(
    tenant: Tenant, mails: MailSink, has_8bitmime: bool
) -> None:
    mails.has_8bitmime = has_8bitmime
    book(tenant, what="Größe prüfen")
    run_dispatcher("email")

    mail = next(mail for mail in mails.mails if mail.to == [MARTY])
    text = mail.message.get_body(("plain",))
    html = mail.message.get_body(("html",))
    assert "Größe prüfen" in text.get_content()
    assert "Größe prüfen" in html.get_content()
    assert mail.content.isascii() is not has_8bitmime
    assert ("BODY=8BITMIME" in mail.options) is has_8bitmime
