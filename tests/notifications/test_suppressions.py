"""Addresses without e-mails: bounces given to `manage.py bounce`, and unsubscribed reminders."""

import io
import re
import sys
from email.message import EmailMessage
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.test import Client

from bookings.models import Customer
from notifications.models import Delivery, Suppression
from notifications.outbox.dispatcher import run_dispatcher
from tests.notifications.test_dispatcher import book, make_due, reminder, soon
from tests.sinks import Mail, MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
MARTY = "marty@example.com"
NOTHING = "Ignored: this is no report of a failed delivery and no answer to an invitation."
LATER = {"start": "2040-01-02T09:00:00Z", "end": "2040-01-02T10:00:00Z"}


def send_reminder(tenant: Tenant, mails: MailSink, recipient: str = "customer") -> Mail | None:
    """A booking whose reminder is due at once; the reminder, if it is sent."""
    start = soon(hours=30 + 2 * Delivery.objects.filter(kind="reminder").count())
    book(tenant, start, event_notifications=[reminder(recipient=recipient)])
    known = len(mails.mails)
    make_due(kind="reminder")
    run_dispatcher("email")
    found = [mail for mail in mails.mails[known:] if mail.id in ids("reminder")]
    return found[0] if found else None


def ids(kind: str) -> set[str]:
    return {f"<{row.id}@localhost>" for row in Delivery.objects.filter(kind=kind)}


def suppressed() -> list[tuple[str, str, str]]:
    return list(Suppression.objects.order_by("id").values_list("address", "reason", "detail"))


# --- Unsubscribe ----------------------------------------------------------------------------------
def link_of(mail: Mail) -> str:
    """The path with its query, as a mail program takes it from the header."""
    address = re.fullmatch(r"<(.+)>", "".join(mail.message["List-Unsubscribe"].split()))
    assert address
    parts = urlsplit(address[1])
    return f"{parts.path}?{parts.query}"


def test_only_reminders_to_customers_can_be_unsubscribed(tenant: Tenant, mails: MailSink) -> None:
    mail = send_reminder(tenant, mails)
    send_reminder(tenant, mails, "owner")

    assert mail
    assert mail.message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    others = [other for other in mails.mails if other.id != mail.id]
    assert len(others) >= 3
    assert [other.message["List-Unsubscribe"] for other in others] == [None] * len(others)


def test_one_click_stops_the_reminders_of_the_app(
    tenant: Tenant, mails: MailSink, make_tenant: Any
) -> None:
    mail = send_reminder(tenant, mails)
    assert mail

    # As RFC 8058 has it: no cookie, no log-in, no CSRF token.
    answer = Client(enforce_csrf_checks=True).post(
        link_of(mail), "List-Unsubscribe=One-Click", "application/x-www-form-urlencoded"
    )

    assert (answer.status_code, suppressed()) == (200, [(MARTY, "unsubscribed", "")])
    assert send_reminder(tenant, mails) is None
    last = Delivery.objects.filter(kind="reminder").order_by("-id")[0]
    assert (last.state, last.reason) == (
        "skipped",
        "The customer has unsubscribed from reminders.",
    )
    confirmed = Delivery.objects.filter(kind="confirmed", recipient="customer")
    assert set(confirmed.values_list("state", flat=True)) == {"delivered"}
    assert send_reminder(make_tenant(), mails)


def test_get_changes_nothing_and_post_unsubscribes(tenant: Tenant, mails: MailSink) -> None:
    mail = send_reminder(tenant, mails)
    assert mail
    link, client = link_of(mail), Client()

    page = client.get(link).content.decode()
    before = suppressed()
    done = [client.post(link).content.decode() for _ in range(2)]

    assert "Stop reminders?" in page
    assert f"{MARTY} will get no more reminders." in page
    assert before == []
    assert all("You will get no more reminders" in text for text in done)
    assert len(suppressed()) == 1


@pytest.mark.parametrize(
    "change",
    [("signature=", "signature=1"), ("signature", "other"), ("/customers/", "/customers/0")],
)
def test_tampered_link_is_refused(tenant: Tenant, mails: MailSink, change: tuple[str, str]) -> None:
    mail = send_reminder(tenant, mails)
    assert mail

    answer = Client().post(link_of(mail).replace(*change))

    assert answer.status_code == 403
    assert "This link does not work" in answer.content.decode()
    assert suppressed() == []


def test_link_is_scoped_to_its_address(tenant: Tenant, mails: MailSink) -> None:
    mail = send_reminder(tenant, mails)
    assert mail
    Customer.objects.update(email="doc@example.com", address="doc@example.com")

    assert Client().post(link_of(mail)).status_code == 403


# --- Bounces --------------------------------------------------------------------------------------
def make_bounce(
    message_id: str,
    address: str = MARTY,
    *,
    status: str = "5.1.1",
    action: str = "failed",
    headers_only: bool = False,
) -> bytes:
    """A report as Postfix writes it."""
    returned = f"Message-ID: {message_id}\nSubject: Confirmed\nTo: {address}\n"
    kind = "text/rfc822-headers" if headers_only else "message/rfc822"
    text = f"""From: MAILER-DAEMON@mx.example.com
To: bookings@localhost
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

I'm sorry.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.com

Final-Recipient: rfc822; {address}
Original-Recipient: rfc822;{address}
Action: {action}
Status: {status}
Diagnostic-Code: smtp; 550 5.1.1 <{address}>:
 user unknown

--b
Content-Type: {kind}

{returned}
--b--
"""
    return text.replace("\n", "\r\n").encode()


def give(content: bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `manage.py bounce`, the former name of `incoming_mail`, prints of the message."""
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    call_command("bounce", stdout=printed)
    return printed.getvalue()


def confirmation(tenant: Tenant, mails: MailSink) -> str:
    """The Message-ID of a confirmation that was sent to the customer."""
    book(tenant)
    run_dispatcher("email")
    return next(mail.id for mail in mails.mails if mail.to == [MARTY])


@pytest.mark.parametrize("headers_only", [False, True])
def test_a_permanent_failure_stops_all_mails(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch, headers_only: bool
) -> None:
    message_id = confirmation(tenant, mails)
    detail = "5.1.1 550 5.1.1 <marty@example.com>: user unknown"

    printed = give(make_bounce(message_id, headers_only=headers_only), monkeypatch)
    loud = {"name": "Marty", "email": "MARTY@example.com"}
    resource = tenant.get("/resources").data[0]["id"]
    later = tenant.book(**LATER, resource_id=resource, customer=loud).data["id"]
    run_dispatcher("email")

    assert printed == f"{MARTY} gets no more e-mails of the app {tenant.app.slug}: {detail}\n"
    assert suppressed() == [(MARTY, "bounced", detail)]
    rows = Delivery.objects.filter(booking=later).order_by("recipient")
    assert [(row.recipient, row.state, row.reason) for row in rows] == [
        ("customer", "skipped", f"E-mails to this address bounced: {detail}"),
        ("owner", "delivered", ""),
    ]


@pytest.mark.parametrize("failed", ["u@xn--strae-oqa.de", "U@XN--STRAE-OQA.DE"])
def test_bounce_applies_to_every_spelling_of_the_domain(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch, failed: str
) -> None:
    """IDNA 2003 would send the e-mail to strasse.de, which is somebody else's."""
    customer = {"name": "U", "email": "u@straße.de"}
    book(tenant, customer=customer)
    run_dispatcher("email")
    mail = next(mail for mail in mails.mails if mail.to != [MARTY] and "strae" in str(mail.to))

    give(make_bounce(mail.id, failed), monkeypatch)
    resource = tenant.get("/resources").data[0]["id"]
    later = tenant.book(**LATER, resource_id=resource, customer=customer).data["id"]
    run_dispatcher("email")

    assert (mail.to, mail.message["To"]) == (["u@xn--strae-oqa.de"], "u@xn--strae-oqa.de")
    assert [address for address, *_ in suppressed()] == ["u@xn--strae-oqa.de"]
    row = Delivery.objects.get(booking=later, recipient="customer")
    assert row.state == "skipped"


def test_a_repeated_bounce_changes_nothing(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id = confirmation(tenant, mails)

    for _ in range(2):
        give(make_bounce(message_id), monkeypatch)

    assert len(suppressed()) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"status": "4.2.2"}, "Ignored: marty@example.com has failed for now (4.2.2)."),
        (
            {"status": "5.7.1"},
            "Ignored: the failure is not about marty@example.com itself (5.7.1).",
        ),
        ({"action": "delayed"}, NOTHING),
        # A forged bounce: somebody else's address, with the id of an e-mail to oneself.
        (
            {"address": "victim@example.com"},
            "Ignored: the e-mail was not sent to victim@example.com.",
        ),
    ],
)
def test_other_reports_are_ignored(
    tenant: Tenant,
    mails: MailSink,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    said: str,
) -> None:
    message_id = confirmation(tenant, mails)

    assert give(make_bounce(message_id, **given), monkeypatch) == f"{said}\n"
    assert suppressed() == []


def test_bounce_of_an_unsent_mail_is_ignored(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    book(tenant)
    unsent = Delivery.objects.filter(recipient="customer").first()
    assert unsent

    for message_id in (f"<{unsent.id}@localhost>", "<0193a4c2-0000-7000-8000-000000000051@x>", ""):
        said = give(make_bounce(message_id), monkeypatch)
        assert said == "Ignored: the report refers to no e-mail of this service.\n"
    assert suppressed() == []


HOSTILE = [
    b"",
    b"\0\xff" * 100,
    b"Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n" * 50,
    b"Content-Type: message/delivery-status\r\n\r\nAction: failed",
    b"Content-Type: message/delivery-status\r\n\r\nA: b\r\n\r\nAction: failed\r\nStatus: \xff\r\n",
    EmailMessage().as_bytes(),
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_malformed_reports_are_ignored(
    db: None, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    assert give(content, monkeypatch).startswith("Ignored: ")


# --- Personal data --------------------------------------------------------------------------------
def test_suppressions_are_exported_and_erased(tenant: Tenant, mails: MailSink) -> None:
    mail = send_reminder(tenant, mails)
    assert mail
    Client().post(link_of(mail))

    exported = tenant.get(f"/customers/export?email={MARTY}").data["suppressions"]
    counts = tenant.post("/customers/erase", {"email": MARTY}).data

    assert [(row["reason"], row["detail"]) for row in exported] == [("unsubscribed", "")]
    assert (counts["suppressions"], suppressed()) == (1, [])
