"""Languages: a mail is wholly in one, English where there is no catalogue for the app's."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from availability.models import Project
from bookings.models import Booking, Customer
from bookings.pages.formatting import language_of
from common.shipped_languages import OFFICE, TRANSLATED_PACKAGES
from notifications.mail import compose_mail
from tests.booking_pages.test_book_page import Shown, make_page
from tests.bookings.booking_drafts import NINE
from tests.bookings.test_action_links import Desk
from tests.notifications.mails import html_of, make_app, make_letter
from tests.services import ROOT
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")
SHIPPED = "en, ar, de, es, fr, it, ja, nl, pl, pt-BR, sv"


@pytest.mark.parametrize("language", ["de", "DE", "de-AT", "de_CH"])
def test_mail_is_in_the_apps_language(language: str) -> None:
    message = compose_mail(make_letter("confirmed_customer", app=make_app(language=language)))

    when = "Montag, 23. November 2026, 09:00 – 09:30 (Europe/Berlin)"
    assert message.subject == "Bestätigt: Check-up, Mo., 23. Nov., 09:00"
    assert message.body.startswith("Ihr Termin ist bestätigt\n\nGuten Tag Marty McFly,\n\n")
    assert f"\nTermin:             Check-up\nDatum und Uhrzeit:  {when}\n" in message.body
    assert '<html lang="de" dir="ltr">' in html_of(message)
    assert translation.get_language() == "en"


@pytest.mark.parametrize(
    "language", ["fi", "xx", "en-GB", "", None, 7, "../../etc", "de\0", "a" * 300, ["de"]]
)
def test_language_without_a_catalogue_is_english(language: Any) -> None:
    """Dates too, though Django itself could write them in Finnish."""
    message = compose_mail(make_letter("confirmed_customer", app=make_app(language=language)))

    assert message.subject == "Confirmed: Check-up, Mon 23 Nov, 09:00"
    assert " Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)\n" in message.body
    assert '<html lang="en" dir="ltr">' in html_of(message)


def test_custom_template_takes_precedence_over_the_language() -> None:
    words = {"subject": "Hi {{ when }}", "text": "", "html": ""}

    message = compose_mail(
        make_letter("confirmed_customer", app=make_app(language="de"), template=words)
    )

    assert message.subject == "Hi Montag, 23. November 2026, 09:00 – 09:30 (Europe/Berlin)"


def test_english_mails_without_catalogue() -> None:
    assert language_of(make_app()) == "en"


# --- Catalogues -----------------------------------------------------------------------------------
MARKS = ("_", "gettext", "pgettext", "pgettext_lazy")


def sentences_in(folder: Path) -> set[str]:
    """What the code of a package marks to be translated."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_marked = isinstance(node, ast.Call) and getattr(node.func, "id", "") in MARKS
            if is_marked and isinstance(node.args[-1], ast.Constant):
                found.add(node.args[-1].value)
    for path in folder.rglob("*.html"):
        found |= set(re.findall(r'{% translate "([^"]*)"', path.read_text()))
    return found


@pytest.mark.parametrize("package", [name for name in TRANSLATED_PACKAGES if name != OFFICE])
def test_catalogue_has_exactly_the_used_sentences(package: str) -> None:
    """If this fails: `manage.py makemessages -l en --no-location --no-wrap` in the folder."""
    catalogue = (ROOT / package / "locale" / "en" / "LC_MESSAGES" / "django.po").read_text()

    listed = {ast.literal_eval(text) for text in re.findall(r'^msgid (".*")$', catalogue, re.M)}

    assert listed - {""} == sentences_in(ROOT / package)


# --- What is accepted -----------------------------------------------------------------------------
def test_shipped_language_is_normalised(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    project = tenant.post_project(resource["id"], settings={"language": "DE"})
    customer = {"name": "Ann", "email": "ann@example.com", "language": "de"}
    booking = tenant.book(resource_id=resource["id"], **NINE, customer=customer)

    app = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "De"}})

    assert (app.status, app.data["settings"]["language"]) == (200, "de")
    assert project["settings"] == {"language": "de"}
    assert Customer.objects.get(booking=booking.data["id"]).meta == {"language": "de"}


def test_unknown_language_is_refused(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    customer = {"name": "Ann", "email": "ann@example.com", "language": "fi"}

    answers = [
        tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "xx-bogus"}}),
        tenant.post("/projects", {"name": "Check-up", "settings": {"language": "fi"}}),
        tenant.book(resource_id=resource["id"], **NINE, customer=customer),
    ]

    faults = [(answer.status, answer.json["errors"]) for answer in answers]
    sentence = [f"Must be one of {SHIPPED}."]
    assert faults == [
        (422, {"settings.language": sentence}),
        (422, {"settings.language": sentence}),
        (422, {"customer.language": sentence}),
    ]
    assert (Project.objects.count(), Booking.objects.count()) == (0, 0)


def test_language_of_a_customer_can_be_updated(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    booking = tenant.book(resource_id=resource["id"], **NINE).data
    stored = Customer.objects.filter(booking=booking["id"]).values_list("meta", flat=True)

    seen = []
    for language in ("DE", "fi", None):
        change = {"customer": {"language": language}}
        answer = tenant.put(f"/bookings/{booking['id']}", change)
        seen.append((answer.status, answer.json.get("errors"), *stored.all()))

    faults = {"customer.language": [f"Must be one of {SHIPPED}."]}
    assert seen == [
        (200, None, {"language": "de"}),
        (422, faults, {"language": "de"}),
        (200, None, {}),
    ]


@pytest.mark.parametrize(
    ("of_customer", "of_project", "language"),
    [("de", None, "de"), (None, "de", "de"), ("en", "de", "en"), (None, None, "en")],
)
def test_language_of_customer_project_and_app_precedence(
    of_customer: str | None, of_project: str | None, language: str
) -> None:
    letter = make_letter("confirmed_customer", app=make_app())
    letter.customer.meta = {"language": of_customer}
    letter.booking.project = Project(app=letter.booking.app, settings={"language": of_project})

    message = compose_mail(letter)

    assert f'<html lang="{language}" dir="ltr">' in html_of(message)


# --- Pages ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("of_customer", "accepted", "of_project", "of_app", "language"),
    [
        ("de", "en", "en", "en", "de"),
        ("fi", "de-AT, en;q=0.8", "en", "en", "de"),  # stored before it was checked
        (None, "fi, de;q=0.5, en;q=0.4", "en", "en", "de"),
        (None, "de, en;q=0", "en", "en", "de"),
        (None, "de;q=0", "en", "de", "en"),
        (None, "fi, *;q=0.1", "de", "en", "de"),
        (None, "\x00;;", "de", "en", "de"),
        (None, "", None, "de", "de"),
        (None, "", None, "fi", "en"),
    ],
)
def test_language_of_a_customers_page(
    tenant: Tenant,
    of_customer: str | None,
    accepted: str,
    of_project: str | None,
    of_app: str,
    language: str,
) -> None:
    desk = Desk(tenant)
    booking = desk.row
    booking.customers.update(meta={"language": of_customer})
    booking.app.settings |= {"language": of_app}
    booking.app.save()
    booking.project = Project.objects.create(
        app=booking.app, name="Check-up", slug="check-up", settings={"language": of_project}
    )
    booking.save()
    desk.client.defaults["HTTP_ACCEPT_LANGUAGE"] = accepted

    page = desk.open(desk.link("cancel_by_customer"))

    assert page.status == 200
    assert f'<html lang="{language}" dir="ltr">' in page.html
    assert ("Termin" in page.visible_texts, "What" in page.visible_texts) == (
        language == "de",
        language == "en",
    )
    assert "Accept-Language" in page.headers["Vary"]


def test_owner_page_ignores_the_language_of_the_customer(tenant: Tenant) -> None:
    desk = Desk(tenant)
    desk.row.customers.update(meta={"language": "de"})

    assert '<html lang="en" dir="ltr">' in desk.open(desk.link("confirm")).html


@pytest.mark.parametrize(
    ("accepted", "language", "for_mails"),
    [("", "en", None), ("en-GB", "en", None), ("de-CH,de", "de", "de"), ("fi", "en", None)],
)
def test_browser_language_is_used_in_mails(
    tenant: Tenant, accepted: str, language: str, for_mails: str | None
) -> None:
    path = make_page(tenant)

    page = Shown.of(Client(headers={"Accept-Language": accepted}).get(path))

    assert f'<html lang="{language}" dir="ltr">' in page.html
    assert page.for_script["language"] == for_mails


def test_texts_of_the_app_have_their_language_and_direction() -> None:
    """In an Arabic mail of an English app; the service's words have the mail's language."""
    letter = make_letter(
        "confirmed_customer",
        app=make_app(language="en"),
        customer={"meta": {"language": "ar"}},
        message="Ring twice.",
    )

    html = html_of(compose_mail(letter))

    values = re.findall(r'<td class="value" dir="auto"[^>]*>(.*?)</td>', html)
    assert [value for value in values if value.startswith("<span")] == [
        '<span lang="en">Check-up</span>',
        '<span lang="en">Harbour Street 5</span>',
        '<span lang="en">Ada Lovelace</span>',
        '<span lang="en">Bring your card.</span>',
    ]
    assert re.search(r'<div class="quote ink" dir="auto"[^>]*>Ring twice.</div>', html)
    assert '<span dir="auto">Harbour Dental</span>' in html
