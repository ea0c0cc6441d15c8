"""E-mails to customers have the project's texts in their language; those to owners the own ones."""

from typing import Any

import pytest
from django.utils import timezone

from availability.models import Project
from bookings.models import Booking, Customer
from notifications.mail import compose_mail
from notifications.models import Delivery
from notifications.outbox.senders import prepare_batch
from tests.notifications.mails import calendar_of, html_of, make_app, make_letter
from tests.world import Caller, Tenant

pytestmark = pytest.mark.usefixtures("clock")

OWN = {"what": "Your check-up", "where": "Harbour Dental", "description": "Bring your card."}
GERMAN = {
    "name": "Kontrolle",
    "what": "Ihre Kontrolle",
    "where": "Praxis am Hafen",
    "description": "Karte mitbringen.",
}
TRANSLATED = (GERMAN["what"], GERMAN["where"], GERMAN["description"])
ORIGINAL = (OWN["what"], OWN["where"], OWN["description"])
ALL = (*TRANSLATED, *ORIGINAL)


def sent_mails() -> dict[str, str]:
    """Recipient -> subject, texts and calendar entry, as the workers would send them."""
    rows = list(Delivery.objects.filter(type=Delivery.EMAIL, state="scheduled"))
    sends, refused = prepare_batch(rows, now=timezone.now())
    assert refused == []
    return {row.recipient: whole_text(send.args[0]) for row, send in sends}


def whole_text(message: Any) -> str:
    calendar = (calendar_of(message) or "").replace("\r\n ", "")
    return "\n".join([message.subject, message.body, html_of(message), calendar])


def texts_in(mail: str) -> tuple[str, ...]:
    return tuple(text for text in ALL if text in mail)


def book(tenant: Tenant, caller: Caller | None = None, **given: Any) -> Any:
    """Of a project with translations, by a customer whose page was in German."""
    ada = tenant.make_resource("Ada", "Europe/Berlin", email="ada@example.com")
    project = tenant.make_project(
        ada["id"],
        booking=given.pop("booking", OWN),
        availability={"length": "30 minutes"},
        translations={"de": GERMAN},
    )
    customer = {"name": "Marty", "email": "marty@example.com", "language": "de"}
    answer = (caller or tenant).post(
        "/bookings",
        {
            "project_id": project["id"],
            "start": "2026-11-23T09:00:00+01:00",
            "end": "2026-11-23T09:30:00+01:00",
            "customer": {**customer, **given.pop("customer", {})},
            **given,
        },
    )
    assert answer.status == 201, answer.json
    return answer.data


def test_customer_reads_translations_and_the_owner_does_not(tenant: Tenant) -> None:
    book(tenant)

    mails = sent_mails()

    assert {recipient: texts_in(mail) for recipient, mail in mails.items()} == {
        "customer": TRANSLATED,
        "owner": ORIGINAL,
    }
    assert mails["customer"].startswith("Bestätigt: Ihre Kontro…, Mo., 23. Nov., 09:00\n")
    assert "\nSUMMARY:Ihre Kontrolle" in mails["customer"].replace("\r", "")
    assert "\nSUMMARY:Your check-up" in mails["owner"].replace("\r", "")


@pytest.mark.parametrize("language", ["en", "fr", None])
def test_customer_of_another_language_reads_the_own_texts(
    tenant: Tenant, language: str | None
) -> None:
    book(tenant, customer={"language": language} if language else {"language": "en"})

    assert {recipient: texts_in(mail) for recipient, mail in sent_mails().items()} == {
        "customer": ORIGINAL,
        "owner": ORIGINAL,
    }


def test_what_somebody_typed_for_this_booking_stays(tenant: Tenant) -> None:
    book(tenant, what="Root canal", description="Come early.")

    mail = sent_mails()["customer"]

    assert texts_in(mail) == (GERMAN["where"],)
    assert "Root canal" in mail
    assert "Come early." in mail


def test_a_text_that_was_changed_later_stays(tenant: Tenant) -> None:
    booking = book(tenant)
    Delivery.objects.all().delete()

    tenant.put(f"/bookings/{booking['id']}", {"where": "Room 5"})

    mail = sent_mails()["customer"]
    assert texts_in(mail) == (GERMAN["what"], GERMAN["description"])
    assert "Room 5" in mail


def test_a_stranger_reaches_nobody_with_texts_of_the_project(tenant: Tenant) -> None:
    """The typed title gives way to that of the project, which is translated."""
    tenant.set_public_limits()
    book(tenant, tenant.widget(), booking={}, what="Win at evil.example", where="evil.example")

    mails = sent_mails()

    assert ("evil.example" in mails["customer"], "evil.example" in mails["owner"]) == (False, True)
    assert mails["customer"].startswith("Bestätigt: Ihre Kontro…, Mo., 23. Nov., 09:00\n")


def test_a_translation_that_is_added_later_counts(tenant: Tenant) -> None:
    book(tenant)
    Project.objects.update(translations={"de": {"what": "Vorsorge"}})

    mail = sent_mails()["customer"]

    assert "Vorsorge" in mail
    assert texts_in(mail) == (OWN["where"], OWN["description"])


def test_placeholders_of_templates_are_translated() -> None:
    words = {"subject": "{{ project }}: {{ what }}", "text": "{{ where }}, {{ description }}"}
    customer, owner = (
        make_letter(
            slug,
            app=make_app(language="de"),
            project="Check-up",
            template={**words, "html": "<p>{{ project }}, {{ what }}</p>"},
            what="Check-up",
            where="Harbour Dental",
            description="Bring your card.",
        )
        for slug in ("confirmed_customer", "confirmed_owner")
    )
    for letter in (customer, owner):
        booking = {key: OWN[key] for key in ("where", "description")}
        letter.booking.project.booking = booking
        letter.booking.project.translations = {
            "de": {key: GERMAN[key] for key in ("name", "where", "description")}
        }

    mails = [compose_mail(letter) for letter in (customer, owner)]

    assert [(mail.subject, mail.body) for mail in mails] == [
        ("Kontrolle: Kontrolle", "Praxis am Hafen, Karte mitbringen.\n"),
        ("Check-up: Check-up", "Harbour Dental, Bring your card.\n"),
    ]
    assert "<p>Kontrolle, Kontrolle</p>" in html_of(mails[0])


def test_translated_texts_have_the_language_of_the_mail() -> None:
    letter = make_letter(
        "confirmed_customer",
        app=make_app(language="en"),
        customer={"meta": {"language": "de"}},
        project="Check-up",
    )
    letter.booking.project.translations = {"de": {"name": "Kontrolle"}}

    html = html_of(compose_mail(letter))

    assert '<span lang="en">Harbour Street 5</span>' in html
    assert '<span lang="en">Kontrolle' not in html
    assert ">Kontrolle</td>" in html


def test_deliveries_take_no_further_query(
    tenant: Tenant, django_assert_max_num_queries: Any
) -> None:
    book(tenant)
    Customer.objects.update(meta={})
    rows = list(Delivery.objects.filter(type=Delivery.EMAIL))
    with django_assert_max_num_queries(50) as plain:
        prepare_batch(rows, now=timezone.now())
    Customer.objects.update(meta={"language": "de"})

    with django_assert_max_num_queries(len(plain)):
        prepare_batch(rows, now=timezone.now())

    assert Booking.objects.count() == 1
