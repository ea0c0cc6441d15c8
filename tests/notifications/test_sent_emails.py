"""What an e-mail said is stored with its result: without links that act, for a time, erasable."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from django.utils import timezone

from bookings.models import Booking
from bookings.pages.action_links import action_url
from bookings.privacy import erase_person
from common.db.sql import database_now
from notifications import tasks
from notifications.hidden_links import hide_signed_links
from notifications.mail import EmailCopy
from notifications.mail.copies import MAX_BYTES
from notifications.models import Delivery, EmailTemplate, SentEmail
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.leases import claim_due
from notifications.outbox.redeliver import redeliver
from notifications.outbox.results import record_results
from notifications.outbox.senders import prepare_batch
from tests.bookings.booking_drafts import MARTY
from tests.bookings.test_privacy import ANN, export
from tests.notifications.test_dispatcher import book, first_resource, make_due, reminder, soon
from tests.notifications.test_merged_mails import draft
from tests.sinks import Mail, MailSink
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

TOKEN = re.compile(r"(?:signature|token)=([\w.%~-]{12,})")


def copies(**only: Any) -> list[EmailCopy]:
    rows = SentEmail.objects.filter(**only).exclude(content=b"").order_by("id")
    return [EmailCopy.read(row.content) for row in rows]


def tokens_of(mail: Mail) -> set[str]:
    """Every signature in headers, text, HTML and calendar files, with its encoded form."""
    parts = [part.get_content() for part in mail.message.walk() if not part.is_multipart()]
    texts = [part.decode() if isinstance(part, bytes) else part for part in parts]
    whole = "\n".join([*map(str, mail.message.values()), *texts]).replace("\r\n ", "")
    found = set(TOKEN.findall(whole))
    return found | set(map(unquote, found))


def text_of(mail: Mail, kind: str) -> str:
    part = next(part for part in mail.message.walk() if part.get_content_type() == kind)
    return str(part.get_content()).replace("\r\n", "\n")


# --- Links ----------------------------------------------------------------------------------------
def test_copy_has_no_token_of_any_link(tenant: Tenant, mails: MailSink) -> None:
    """In no part, wherever an app's template or a person puts a link."""
    link = (
        "<a title='{{ cancel_url }}' href=https://x.example/?to={{ cancel_url }}>{{ cancel_url }}"
    )
    EmailTemplate.objects.create(
        app=tenant.app,
        slug="confirmed_customer",
        subject="{{ cancel_url }} {{ what }}",
        text="({{ pay_url }}{{ reschedule_url }}) {{ description }}\n{{ cancel_url }},{{ links }}",
        html=link + "{{ actions }}{{ description }}{{ links }}<!--{{ cancel_url }}-->",
    )
    other = Booking.objects.select_related("event").get(id=book(tenant, soon() + hours(5))["id"])
    pasted = action_url(other, "cancel", other.event.end)
    booking = book(
        tenant, description=f"Pasted: {pasted}", where=pasted, event_notifications=[reminder()]
    )
    book(tenant, soon() + hours(8), graph="confirm_decline")
    run_dispatcher("email")
    make_due(kind="reminder", booking=booking["id"])
    run_dispatcher("email")

    found = copies()

    tokens = set().union(*map(tokens_of, mails.mails))
    assert len(found) == len(mails.mails) == 7
    assert len(tokens) >= 10
    stored = "\n".join(part for copy in found for part in map(unquote, map(str, copy)))
    assert [token for token in tokens if token in stored] == []
    assert any("List-Unsubscribe" in mail.message for mail in mails.mails)


def test_copy_is_the_sent_mail_except_for_links(tenant: Tenant, mails: MailSink) -> None:
    book(tenant, what="Check-up")
    run_dispatcher("email")
    mail = next(mail for mail in mails.mails if mail.to == [MARTY["email"]])

    [copy] = copies(delivery__recipient="customer")

    links = re.compile(r"http://\S+?signature=[\w.%~-]+")
    assert copy == EmailCopy(
        to=[MARTY["email"]],
        subject=str(mail.message["Subject"]),
        text=links.sub("[link]", text_of(mail, "text/plain")),
        html=links.sub("[link]", text_of(mail, "text/html")),
        calendar=text_of(mail, "text/calendar").replace("\n ", ""),
    )
    assert copy.text.count("[link]") == 2


def test_signed_links_in_long_texts_are_replaced_in_linear_time() -> None:
    long = "a" * 1_000_000

    assert hide_signed_links(long) == long
    assert hide_signed_links(f"{long} b?signature=1 {long}") == f"{long} [link] {long}"
    assert hide_signed_links("https://x.example/?u=%3Ftoken%3D1") == "[link]"


def test_content_of_codes_and_of_own_bookings_links_is_not_stored(
    tenant: Tenant, mails: MailSink
) -> None:
    project = tenant.make_project(
        first_resource(tenant)["id"], settings={"verify_email": True, "published": True}
    )
    book(tenant)
    answer = tenant.widget().post(
        "/bookings",
        {
            "project_id": project["id"],
            "customer": ANN,
            "start": (soon() + hours(20)).isoformat(),
            "end": (soon() + hours(21)).isoformat(),
        },
    )
    assert answer.status == 202, answer.json
    body = urlencode({"email": MARTY["email"]})
    tenant.client.post(
        f"/book/{tenant.app.slug}/mine", body, content_type="application/x-www-form-urlencoded"
    )
    run_dispatcher("email")
    code_mail = next(mail for mail in mails.mails if mail.to == [ANN["email"]])
    link_mail = next(mail for mail in mails.mails if "/mine/open" in text_of(mail, "text/plain"))

    assert copies(delivery__kind="verification_code") == [
        EmailCopy([ANN["email"]], "Your code: […]")
    ]
    assert re.fullmatch(r"Your code: \d{6}", str(code_mail.message["Subject"]))
    assert copies(delivery__kind="own_bookings_link") == [
        EmailCopy([MARTY["email"]], str(link_mail.message["Subject"]))
    ]


def test_copy_of_a_long_mail_has_no_content() -> None:
    words = "".join(f"{number:x}" for number in range(200_000))
    copy = EmailCopy(["a@example.com"], "Hello", words, words)

    assert len(copy.compressed()) < MAX_BYTES
    assert EmailCopy.read(copy.compressed()) == EmailCopy(["a@example.com"], "Hello")


# --- Storing --------------------------------------------------------------------------------------
def test_each_sending_is_stored(tenant: Tenant, mails: MailSink) -> None:
    book(tenant, what="Check-up")
    run_dispatcher("email")
    mail = Delivery.objects.get(recipient="customer")
    Booking.objects.get().event.__class__.objects.update(what="Cleaning")
    redeliver(mail, now=timezone.now())
    run_dispatcher("email")

    first, second = copies(delivery=mail)

    assert (first.subject.split(",")[0], "Cleaning" in first.html + first.text) == (
        "Confirmed: Check-up",
        False,
    )
    assert SentEmail.objects.filter(delivery=mail).count() == 2
    assert second.to == [MARTY["email"]]


def test_refused_mail_is_not_stored(tenant: Tenant, mails: MailSink) -> None:
    mails.answer = lambda to: "550 no"
    book(tenant)
    run_dispatcher("email")

    assert copies() == []


def test_nothing_is_stored_without_retention(
    tenant: Tenant, mails: MailSink, settings: Any
) -> None:
    settings.SENT_EMAIL_RETENTION_DAYS = 0
    book(tenant)
    run_dispatcher("email")

    assert (len(mails.mails), copies()) == (2, [])


# --- Deletion -------------------------------------------------------------------------------------
def test_copies_are_deleted_after_their_time(tenant: Tenant, mails: MailSink) -> None:
    """Also of a booking that is still to take place, whose deliveries stay."""
    book(tenant)
    run_dispatcher("email")
    old, new = SentEmail.objects.order_by("id")
    SentEmail.objects.filter(id=old.id).update(sent_at=timezone.now() - timedelta(days=31))

    tasks.purge_deliveries()

    assert list(SentEmail.objects.values_list("id", flat=True)) == [new.id]
    assert Delivery.objects.count() == 2


def test_copies_go_with_their_delivery(tenant: Tenant, mails: MailSink) -> None:
    booking = book(tenant)
    tenant.put(f"/bookings/{booking['id']}/cancel")
    run_dispatcher("email")
    run_dispatcher("email")
    Delivery.objects.update(finished_at=timezone.now() - timedelta(days=31))

    tasks.purge_deliveries()

    assert (Delivery.objects.count(), SentEmail.objects.count()) == (0, 0)


def test_erasure_deletes_the_copies_of_a_persons_bookings(tenant: Tenant, mails: MailSink) -> None:
    book(tenant)
    book(tenant, soon() + hours(3), customer=ANN)
    run_dispatcher("email")

    erase_person(app=tenant.app, email=MARTY["email"], now=timezone.now())

    left = copies()
    assert sorted(copy.to for copy in left) == [["ada@example.com"], [ANN["email"]]]
    assert MARTY["email"] not in str(left)


def test_erasure_deletes_a_copy_about_several_bookings(tenant: Tenant, mails: MailSink) -> None:
    """The owner's e-mail belongs to the first booking; the second one's customer is erased."""
    resource = first_resource(tenant)
    drafts = [
        draft(resource, soon() + hours(number), customer=customer)
        for number, customer in enumerate([ANN, MARTY])
    ]
    made = tenant.post("/bookings/bulk", {"bookings": drafts}).data
    assert [one["status"] for one in made] == [201, 201]
    run_dispatcher("email")
    run_dispatcher("email")
    assert {row.state for row in Delivery.objects.all()} == {"delivered"}
    [owners] = copies(delivery__recipient="owner")
    assert (ANN["email"] in owners.text, MARTY["email"] in owners.text) == (True, True)
    assert SentEmail.objects.filter(delivery__recipient="owner").count() == 2

    erase_person(app=tenant.app, email=MARTY["email"], now=timezone.now())

    assert [copy.to for copy in copies()] == [[ANN["email"]]]


@pytest.mark.parametrize("is_erased", [True, False], ids=["erased", "control"])
def test_erasure_while_a_mail_is_being_sent_leaves_no_copy(
    tenant: Tenant, mails: MailSink, is_erased: bool
) -> None:
    """The owner's e-mail keeps its lease, so its result is recorded after the erasure."""
    book(tenant)
    Delivery.objects.filter(recipient="customer").delete()
    sends, _ = prepare_batch(claim_due("email", 10) or [], now=timezone.now())
    results = [(row, send()) for row, send in sends]
    if is_erased:
        erase_person(app=tenant.app, email=MARTY["email"], now=database_now())

    record_results(results)

    assert [row.state for row in Delivery.objects.all()] == ["delivered"]
    assert len(copies()) == (0 if is_erased else 1)


@pytest.mark.parametrize("is_erased", [True, False], ids=["erased", "control"])
def test_erasure_of_a_further_booking_while_a_mail_is_being_sent(
    tenant: Tenant, mails: MailSink, is_erased: bool
) -> None:
    """The delivery belongs to Ann's booking, and is not locked by an erasure of Marty's."""
    resource = first_resource(tenant)
    drafts = [
        draft(resource, soon() + hours(number), customer=customer)
        for number, customer in enumerate([ANN, MARTY])
    ]
    tenant.post("/bookings/bulk", {"bookings": drafts})
    Delivery.objects.filter(recipient="customer").delete()
    sends, _ = prepare_batch(claim_due("email", 10) or [], now=timezone.now())
    results = [(row, send()) for row, send in sends]
    if is_erased:
        erase_person(app=tenant.app, email=MARTY["email"], now=database_now())

    record_results(results)

    assert MARTY["email"] in str(mails.mails[0].content)
    assert len(copies()) == (0 if is_erased else 1)


# --- Export ---------------------------------------------------------------------------------------
def test_export_has_the_mails_to_the_person(tenant: Tenant, mails: MailSink) -> None:
    book(tenant)
    run_dispatcher("email")
    [copy] = copies(delivery__recipient="customer")

    found = {one["recipient"]: one for one in export(tenant)[1]["data"]["deliveries"]}

    [sent] = found["customer"]["sent"]
    assert sent == {"at": sent["at"], **copy._asdict()}
    assert "sent" not in found["owner"]
