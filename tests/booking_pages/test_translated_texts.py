"""Pages for customers in a language into which the project's texts are translated."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from availability.models import Project
from bookings.models import Booking
from tests.booking_pages.test_book_page import Shown, make_page
from tests.booking_pages.test_calendar_file import path_of
from tests.booking_pages.test_own_bookings import Visitor
from tests.booking_pages.test_reschedule_page import Desk
from tests.queries import Queries
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

OWN: dict[str, Any] = {
    "name": "Check-up",
    "booking": {
        "what": "Your check-up",
        "where": "Harbour Dental",
        "description": "Bring your\ncard.",
    },
    "customer_fields": {
        "insurance": {"title": "Insurance", "enum": ["Public", "Private"], "prefilled": "Private"},
        "terms": {"title": "I agree", "format": "checkbox"},
        "about": {"title": "What is it about?"},
    },
    "ui": {"localization": {"submit_button": "Reserve", "success_message": "Bye %s"}},
}
GERMAN: dict[str, Any] = {
    "name": "Kontrolle <b>",
    "what": "Ihre Kontrolle",
    "where": "Praxis am Hafen",
    "description": "Bringen Sie\nIhre Karte mit.",
    "submit_button": "Reservieren",
    "success_message": "Bis bald, %s",
    "questions": {
        "insurance": {"title": "Versicherung", "choices": {"Public": "Gesetzlich & mehr"}},
        "terms": {"title": "Ich stimme zu"},
        "removed": {"title": "Entfernt"},
    },
}


def page_in(language: str, path: str) -> Shown:
    return Shown.of(Client(headers={"Accept-Language": language}).get(path))


def questions_on(page: Shown) -> list[str]:
    """The labels of the form."""
    labels = page.words("label")
    return [label for label in labels if not label.startswith(("Zeitzone", "Time zone"))]


def options_on(page: Shown) -> list[str]:
    [select] = re.findall(r"<select.*?</select>", page.html, re.S)
    return re.findall(r"<option.*?</option>", select)


# --- The booking page -----------------------------------------------------------------------------
def test_page_in_the_language_of_the_translation(tenant: Tenant) -> None:
    path = make_page(tenant, **OWN, translations={"de": GERMAN})

    page = page_in("de", path)

    assert page.words("h1") == ["Kontrolle <b>"]
    assert page.words("p", "lines") == ["Bringen Sie Ihre Karte mit."]
    assert page.words("dd")[:2] == ["30 Min.", "Praxis am Hafen"]
    assert page.words("button")[-1] == "Reservieren"
    assert questions_on(page) == [
        "Name",
        "E-Mail",
        "What is it about? (optional)",
        "Versicherung (optional)",
        "Ich stimme zu (optional)",
    ]
    assert options_on(page) == [
        '<option value=""></option>',
        '<option value="Public" lang="de">Gesetzlich &amp; mehr</option>',
        "<option selected>Private</option>",
    ]
    assert page.for_script["success"] == "Bis bald, %s"
    assert page.for_script["translations"] == {
        "Your check-up": "Ihre Kontrolle",
        "Harbour Dental": "Praxis am Hafen",
    }
    shared = re.findall(
        r'<meta (?:property|name)="(og:\w+|description)" content="([^"]*)">', page.html
    )
    texts = {name: html.unescape(content) for name, content in shared}
    assert texts["og:title"] == f"Kontrolle <b> · {tenant.app.name}"
    assert texts["description"] == texts["og:description"]
    assert texts["description"].endswith(" · Bringen Sie Ihre Karte mit.")


@pytest.mark.parametrize("language", ["en", "fr", "sv"])
def test_page_in_another_language_has_the_projects_own_texts(tenant: Tenant, language: str) -> None:
    own = make_page(tenant, slug="own", **OWN)
    translated = make_page(
        tenant, slug="translated", **OWN, translations={"de": GERMAN, "sv": {"questions": {}}}
    )

    pages = [page_in(language, path) for path in (own, translated)]

    assert (
        len({(*page.visible_texts, *questions_on(page), *options_on(page)) for page in pages}) == 1
    )
    assert [page.words("h1") for page in pages] == [["Check-up"]] * 2
    assert [page.for_script["translations"] for page in pages] == [{}, {}]


def test_translated_texts_have_the_language_of_the_page(tenant: Tenant) -> None:
    """Those of an English project that are not translated are marked as English."""
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "en"}})
    translations = {"de": {**GERMAN, "name": "Kontrolle"}, "ar": {"description": "بطاقة"}}
    path = make_page(tenant, **OWN, translations=translations)

    german, arabic = (page_in(language, path).html for language in ("de", "ar"))

    assert '<h1 dir="auto">Kontrolle</h1>' in german
    assert '<p class="lines" dir="auto">Bringen Sie' in german
    assert '<span dir="auto">Versicherung</span>' in german
    assert '<span dir="auto">Ich stimme zu</span>' in german
    assert '<span dir="auto" lang="en">What is it about?</span>' in german
    assert '<h1 dir="auto" lang="en">Check-up</h1>' in arabic
    assert '<p class="lines" dir="auto">بطاقة</p>' in arabic
    assert '<span dir="auto" lang="en">Insurance</span>' in arabic


def test_hostile_translations_are_escaped(tenant: Tenant) -> None:
    attack = "</script><script>alert(1)</script>\"'><b>"
    questions = {"insurance": {"title": attack, "choices": {"Public": attack}}}
    texts = dict.fromkeys(GERMAN, attack) | {"questions": questions}

    page = page_in("de", make_page(tenant, **OWN, translations={"de": texts}))

    assert page.status == 200
    assert "<script>alert" not in page.html
    assert "<b>" not in page.html


def test_translations_take_no_further_query(tenant: Tenant) -> None:
    paths = [
        make_page(tenant, slug="own", **OWN),
        make_page(tenant, slug="translated", **OWN, translations={"de": GERMAN}),
    ]
    counts = []
    for path in paths:
        page_in("de", path)  # makes the page's key
        with Queries(connection) as queries:
            page_in("de", path)
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_own_choice_is_stored_for_a_german_page(tenant: Tenant) -> None:
    """The API takes any answer; the page sends the value of its option."""
    make_page(tenant, **OWN, translations={"de": GERMAN})
    project = Project.objects.get()
    tenant.set_public_limits()

    answer = tenant.widget().post(
        "/bookings?include=event",
        {
            "project_id": str(project.id),
            "start": "2026-11-23T09:00:00+01:00",
            "end": "2026-11-23T09:30:00+01:00",
            "customer": {
                **{"name": "Marty", "email": "marty@example.com", "language": "de"},
                "insurance": "Public",
            },
        },
    )

    assert (answer.status, answer.data["event"]["what"]) == (201, "Your check-up")
    [customer] = Booking.objects.get().customers.all()
    assert customer.meta == {"language": "de", "insurance": "Public"}


def test_group_page_and_its_sessions(tenant: Tenant) -> None:
    booking = {**OWN["booking"], "graph": "group_customer"}
    path = make_page(tenant, **{**OWN, "booking": booking}, translations={"de": GERMAN})
    start = timezone.now() + timedelta(days=3)
    project = Project.objects.get()
    made = tenant.post(
        "/bookings",
        {
            "project_id": str(project.id),
            "graph": "group_owner",
            "start": start.isoformat(),
            "end": (start + timedelta(minutes=30)).isoformat(),
            "settings": {"max_seats": 3},
        },
    )
    assert made.status == 201, made.json

    page = page_in("de", path)

    assert (page.words("h1"), page.words("button")[-1]) == (["Kontrolle <b>"], "Reservieren")
    assert len(page.for_script["offer"]["slots"]) == 1


# --- The page of an app ---------------------------------------------------------------------------
def test_the_apps_page_lists_projects_by_their_translated_names(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "en"}})
    make_page(tenant, slug="check", **OWN, translations={"de": {**GERMAN, "name": "Kontrolle"}})
    make_page(tenant, slug="cut", name="Cut", booking={"description": "Look"})

    with django_assert_num_queries(3):
        page = page_in("de", f"/book/{tenant.app.slug}")

    assert page.words("a", "service") == [
        "Kontrolle 30 Min.Bringen Sie Ihre Karte mit.",
        "Cut 30 Min.Look",
    ]
    assert '<strong dir="auto">Kontrolle</strong>' in page.html
    assert '<strong dir="auto" lang="en">Cut</strong>' in page.html


# --- Pages of a booking ---------------------------------------------------------------------------
def test_reschedule_page_and_a_mails_link(tenant: Tenant) -> None:
    desk = Desk(tenant, booking=OWN["booking"], translations={"de": GERMAN})
    desk.client.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"

    german = Shown.of(desk.client.get(desk.link))
    desk.client.defaults["HTTP_ACCEPT_LANGUAGE"] = "fr"
    french = Shown.of(desk.client.get(desk.link))

    assert [german.words("dd")[place] for place in (0, 2)] == ["Ihre Kontrolle", "Praxis am Hafen"]
    assert [french.words("dd")[place] for place in (0, 2)] == ["Your check-up", "Harbour Dental"]


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({}, ("Ihre Kontrolle", "Praxis am Hafen")),
        ({"what": "Check-up"}, ("Kontrolle <b>", "Praxis am Hafen")),
        ({"what": "Root canal", "where": "Room 5"}, ("Root canal", "Room 5")),
    ],
)
def test_own_bookings_keep_what_somebody_typed(
    tenant: Tenant, mailoutbox: list[Any], given: dict[str, str], facts: tuple[str, str]
) -> None:
    make_page(tenant, **OWN, translations={"de": GERMAN})
    tenant.set_public_limits()
    body = {
        "project_id": str(Project.objects.get().id),
        "start": "2026-11-23T09:00:00+01:00",
        "end": "2026-11-23T09:30:00+01:00",
        "customer": {"name": "Marty", "email": "marty@example.com"},
    }
    assert tenant.post("/bookings", {**body, **given}).status == 201

    page = Visitor(tenant, accept_language="de").log_in(mailoutbox).get()

    assert (page.words("dd")[0], page.words("dd")[2]) == facts


def test_placeholders_of_a_translated_place_are_filled_in(tenant: Tenant) -> None:
    desk = Desk(
        tenant,
        booking={"where": "https://video.example/{booking_id}?lang=en"},
        translations={"de": {"where": "https://video.example/{booking_id}?lang=de"}},
    )

    pages = [
        Shown.of(Client(headers={"Accept-Language": language}).get(desk.link))
        for language in ("de", "en")
    ]

    address = f"https://video.example/{desk.booking['id']}?lang="
    assert [page.words("dd")[2] for page in pages] == [f"{address}de", f"{address}en"]


def test_a_translated_place_that_becomes_too_long_is_not_used(tenant: Tenant) -> None:
    long = "Raum " + "x" * 170 + " {booking_id}"
    desk = Desk(
        tenant, booking={"where": "Room {booking_id}"}, translations={"de": {"where": long}}
    )

    page = page_in("de", desk.link)

    assert page.words("dd")[2] == f"Room {desk.booking['id']}"


def test_calendar_file_is_in_the_language_of_its_reader(tenant: Tenant) -> None:
    make_page(tenant, **OWN, translations={"de": GERMAN})
    tenant.set_public_limits()
    answer = tenant.widget().post(
        "/bookings?include=customer_action_links",
        {
            "project_id": str(Project.objects.get().id),
            "start": "2026-11-23T09:00:00+01:00",
            "end": "2026-11-23T09:30:00+01:00",
            "customer": {"name": "Marty", "email": "marty@example.com", "language": "de"},
        },
    )

    path = path_of(answer.data["customer_action_links"]["calendar"])
    lines = Client().get(path).content.decode().split("\r\n")

    assert {
        "SUMMARY:Ihre Kontrolle",
        "LOCATION:Praxis am Hafen",
        "DESCRIPTION:Bringen Sie\\nIhre Karte mit.",
    } <= set(lines)
