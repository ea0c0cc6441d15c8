"""Languages: a mail is wholly in one, English where there is no catalogue for the app's."""

import ast
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation
from django.utils.translation import trans_real

from availability.models import Project
from bookings.formatting import language_of
from bookings.models import Booking, Customer
from notifications.mail import compose_mail
from tests.bookings.booking_drafts import NINE
from tests.notifications.mails import html_of, make_app, make_letter
from tests.services import ROOT
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

GERMAN = {
    "": "Content-Type: text/plain; charset=UTF-8\n",
    "date format\x04l, j F Y": "l, j. F Y",
    "time format\x04H:i": "H.i",
    "Confirmed: {{ what }}, {{ when }}": "Bestätigt: {{ what }}, {{ when }}",
    "Your booking is confirmed": "Ihre Buchung ist bestätigt",
    "Hello {{ name }},": "Guten Tag {{ name }},",
    "What": "Was",
}


def write_catalogue(folder: Path, sentences: Mapping[str, str]) -> None:
    """A compiled catalogue (GNU gettext's .mo): a table of originals, one of translations."""
    folder.mkdir(parents=True)
    pairs = sorted((key.encode(), value.encode()) for key, value in sentences.items())
    texts, tables, place = b"", [b"", b""], 28 + 16 * len(pairs)
    for column in (0, 1):
        for pair in pairs:
            tables[column] += struct.pack("<II", len(pair[column]), place + len(texts))
            texts += pair[column] + b"\0"
    count = len(pairs)
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 28 + 16 * count)
    (folder / "django.mo").write_bytes(head + tables[0] + tables[1] + texts)


@pytest.fixture
def german(tmp_path: Path, settings: Any) -> Iterator[None]:
    """A catalogue of a few German sentences beside the service's own."""
    write_catalogue(tmp_path / "de" / "LC_MESSAGES", GERMAN)
    settings.LOCALE_PATHS = [str(tmp_path)]
    kept, trans_real._translations = trans_real._translations, {}
    yield
    trans_real._translations = kept


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("language", ["de", "DE", "de-AT", "de_CH"])
def test_mail_is_in_the_apps_language(language: str) -> None:
    message = compose_mail(make_letter("confirmed_customer", app=make_app(language=language)))

    when = "Montag, 23. November 2026, 09.00 – 09.30 (Europe/Berlin)"
    assert message.subject == f"Bestätigt: Check-up, {when}"
    assert message.body.startswith("Ihre Buchung ist bestätigt\n\nGuten Tag Marty McFly,\n\n")
    assert f"\nWas:      Check-up\nWhen:     {when}\n" in message.body
    assert '<html lang="de" dir="ltr">' in html_of(message)
    assert translation.get_language() == "en"


@pytest.mark.parametrize(
    "language", ["de", "fr", "xx", "en-GB", "", None, 7, "../../etc", "de\0", "a" * 300, ["de"]]
)
def test_language_without_a_catalogue_is_english(language: Any) -> None:
    """Dates too, though Django itself could write them in German."""
    message = compose_mail(make_letter("confirmed_customer", app=make_app(language=language)))

    assert message.subject == (
        "Confirmed: Check-up, Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)"
    )
    assert '<html lang="en" dir="ltr">' in html_of(message)


@pytest.mark.usefixtures("german")
def test_own_words_go_before_the_language() -> None:
    words = {"subject": "Hi {{ when }}", "text": "", "html": ""}

    message = compose_mail(
        make_letter("confirmed_customer", app=make_app(language="de"), template=words)
    )

    assert message.subject == "Hi Montag, 23. November 2026, 09.00 – 09.30 (Europe/Berlin)"


def test_english_is_the_language_of_the_sentences() -> None:
    assert language_of(make_app()) == "en"


# --- Catalogues -----------------------------------------------------------------------------------
MARKS = ("_", "gettext", "pgettext")


def sentences_in(folder: Path) -> set[str]:
    """What the code of a package marks to be translated."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_marked = isinstance(node, ast.Call) and getattr(node.func, "id", "") in MARKS
            if is_marked and isinstance(node.args[-1], ast.Constant):
                found.add(node.args[-1].value)
    return found


@pytest.mark.parametrize("package", ["access", "bookings", "notifications", "booking_pages"])
def test_catalogue_has_every_sentence_and_no_other(package: str) -> None:
    """If this fails: `manage.py makemessages -l en --no-location --no-wrap` in the folder."""
    catalogue = (ROOT / package / "locale" / "en" / "LC_MESSAGES" / "django.po").read_text()

    listed = {ast.literal_eval(text) for text in re.findall(r'^msgid (".*")$', catalogue, re.M)}

    assert listed - {""} == sentences_in(ROOT / package)


# --- What is accepted -----------------------------------------------------------------------------
@pytest.mark.usefixtures("german")
def test_a_language_that_is_shipped_is_kept_as_it_is_listed(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    project = tenant.make_project(resource["id"], settings={"language": "DE"})
    customer = {"name": "Ann", "email": "ann@example.com", "language": "de"}
    booking = tenant.book(resource_id=resource["id"], **NINE, customer=customer)

    app = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "De"}})

    assert (app.status, app.data["settings"]["language"]) == (200, "de")
    assert project["settings"] == {"language": "de"}
    assert Customer.objects.get(booking=booking.data["id"]).meta == {"language": "de"}


@pytest.mark.usefixtures("german")
def test_a_language_that_is_not_shipped_is_refused_with_the_list(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    customer = {"name": "Ann", "email": "ann@example.com", "language": "fr"}

    answers = [
        tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "xx-bogus"}}),
        tenant.post("/projects", {"name": "Check-up", "settings": {"language": "fr"}}),
        tenant.book(resource_id=resource["id"], **NINE, customer=customer),
    ]

    faults = [(answer.status, answer.json["errors"]) for answer in answers]
    sentence = ["Must be one of en, de."]
    assert faults == [
        (422, {"settings.language": sentence}),
        (422, {"settings.language": sentence}),
        (422, {"customer.language": sentence}),
    ]
    assert (Project.objects.count(), Booking.objects.count()) == (0, 0)


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    ("of_customer", "of_project", "language"),
    [("de", None, "de"), (None, "de", "de"), ("en", "de", "en"), (None, None, "en")],
)
def test_the_customers_language_goes_before_the_projects_and_the_apps(
    of_customer: str | None, of_project: str | None, language: str
) -> None:
    letter = make_letter("confirmed_customer", app=make_app())
    letter.customer.meta = {"language": of_customer}
    letter.booking.project = Project(app=letter.booking.app, settings={"language": of_project})

    message = compose_mail(letter)

    assert f'<html lang="{language}" dir="ltr">' in html_of(message)
