"""The language of the back office: how it is chosen, and that every text on a page is translatable.

In the pseudo-language, each translated text stands in brackets: letters outside brackets are texts
that no catalogue can translate.
"""

import re
from calendar import day_name, month_name
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import allauth
import django
import pytest
import simple_history
from babel.messages.pofile import read_po
from django.apps import apps
from django.db import models
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone, translation

from apps_config.models import Membership
from bookings.pages.formatting import short_day_words
from common.shipped_languages import TRANSLATED_PACKAGES, catalogue_folder, shipped_languages
from common.time.instants import ZONES
from notifications.mail import defaults
from office.base.dates import exact_moment_words, moment_words
from office.base.languages import menu_languages
from office.base.script_words import Plural, plain_words
from tests.office.conftest import Enter
from tests.office.test_crawl import MAX_OF_ROUTE, PageTexts, clinic, crawl
from tests.office.test_rights import foreign_tenant
from tests.world import Tenant

__all__ = ["clinic", "foreign_tenant"]

LETTERS = re.compile(r"[^\W\d_]{2,}")
# What programs read: addresses, placeholders of templates, hashes.
CODE = re.compile(
    r"https?://\S+|/book/\S+|\{\{.*?\}\}|\S*\*{3}\S*|\b[A-Z2-7]{32}\b|\b[0-9a-f]{4,}-[0-9a-f-]+\b",
    re.I,
)
# Columns with names of the API, which pages show in words.
NAMES = {"state", "from_state", "to_state", "graph", "action", "kind", "type", "recipient", "role"}
# Keys, methods of HTTP, names, and data that a history shows without its key.
UNTRANSLATED = frozenset(
    {"ctrl", "esc", "get", "post", "put", "patch", "caldav", "md5", "red", "microsoft"}
)
# Words of English dates; Babel writes those of other languages.
DATE_WORDS = {word.lower() for word in (*day_name, *month_name)}
# Lists that no page links to: their rows have names of the API.
TECHNICAL = ("notification_delete",)
# Elements with texts of the account, or of programs.
TYPED_IN = {"textarea", "pre", "code"}
OPEN, CLOSE = "⟦", "⟧"


@pytest.fixture
def pseudo_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Marks each text that passes gettext. The texts that pages asked for."""
    defaults._default_mail_words.cache_clear()
    asked: set[str] = set()

    def mark(text: str) -> str:
        asked.add(text)
        return f"{OPEN}{text}{CLOSE}" if text else text

    active: Any = translation._trans  # type: ignore[attr-defined]
    changed = {
        "gettext": mark,
        "ngettext": lambda one, many, count: mark(one) and mark(one if count == 1 else many),
        "pgettext": lambda context, text: mark(text),
        "npgettext": lambda context, one, many, count: mark(one) and mark(many),
    }
    for name, function in changed.items():
        monkeypatch.setattr(active, name, function)
    yield asked
    defaults._default_mail_words.cache_clear()


def translatable_texts() -> set[str]:
    """Return the texts of the catalogues: of ours, and of what we install, by its German ones."""
    ours = [catalogue_folder(name) / "en/LC_MESSAGES/django.po" for name in TRANSLATED_PACKAGES]
    folders = [Path(package.__file__).parent for package in (django, allauth, simple_history)]
    others = [
        file for folder in folders for file in folder.rglob("locale/de/LC_MESSAGES/django.po")
    ]
    return {
        text
        for file in (*ours, *others)
        for message in read_po(StringIO(file.read_text("utf-8")))
        for text in ((message.id,) if isinstance(message.id, str) else message.id)
    }


class AllTexts(PageTexts):
    """What a person reads on a page, also below "Advanced", without what stands in text areas."""

    def note(self, text: str, place: Any) -> None:
        if text.strip() and not place.is_silent and place.tag not in TYPED_IN:
            self.texts.append(text.strip())

    def unmarked(self) -> Iterator[tuple[str, str]]:
        """Yield (part outside brackets, whole text); a sentence may have several elements."""
        depth = 0
        for text in self.texts:
            outside = ""
            for letter in text:
                depth += (letter == OPEN) - (letter == CLOSE)
                outside += letter if depth == 0 else " "
            yield outside, text
        assert depth == 0, self.texts


def words_in_rows(*kinds: type[models.Field]) -> set[str]:
    """Return the words in columns of these types."""
    texts: list[str] = []
    for model in apps.get_models():
        columns = [
            column
            for column in model._meta.concrete_fields
            if isinstance(column, kinds) and not column.choices and column.name not in NAMES
        ]
        for row in model._default_manager.values_list(*(column.name for column in columns)):
            texts += (str(value) for value in row if value is not None)
    return {word for text in texts for word in words_of(text)}


def words_of(text: str) -> list[str]:
    return [word.lower() for word in LETTERS.findall(CODE.sub(" ", text))]


# --- Which language -------------------------------------------------------------------------------
def language_of(client: Client, path: str = "/admin/login/", **headers: str) -> str:
    answer = client.get(path, headers=headers)
    (shown,) = re.findall(r'<html lang="([^"]*)"', answer.content.decode())
    return shown


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ({}, "en"),
        ({"accept-language": "de-AT,de;q=0.9,en;q=0.8"}, "de"),
        ({"accept-language": "pt"}, "pt-br"),
        ({"accept-language": "fi, sv;q=0.5"}, "sv"),
        ({"accept-language": "fi"}, "en"),
        ({"accept-language": "*"}, "en"),
    ],
)
def test_the_browser_chooses_the_language(accepted: dict[str, str], language: str) -> None:
    assert language_of(Client(), **accepted) == language


def test_a_chosen_language_is_remembered(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    before = client.get("/admin/", headers={"accept-language": "sv"}).content.decode()

    answer = client.post("/admin/language/", {"language": "ar"}, headers={"referer": "/admin/"})

    assert re.findall(r'name="language" type="hidden" value="(.*?)"', before) == [
        code.lower() for code in shipped_languages()
    ]
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
    cookie = answer.cookies["office_language"]
    kept = {name: cookie[name] for name in ("path", "max-age", "httponly", "samesite")}
    assert (cookie.value, kept) == (
        "ar",
        {"path": "/admin/", "max-age": 31_536_000, "httponly": True, "samesite": "Lax"},
    )
    page = client.get("/admin/", headers={"accept-language": "sv"})
    assert '<html lang="ar" dir="rtl"' in page.content.decode()
    assert page.headers["Content-Language"] == "ar"


@pytest.mark.django_db
def test_the_api_stays_english(tenant: Tenant) -> None:
    client = Client(headers={"accept-language": "de"})
    client.cookies["office_language"] = "de"
    client.get("/admin/login/")

    answer = client.get("/v2/bookings")

    assert answer.json()["error"] == "Valid credentials are required."
    assert translation.get_language() == "en"


def test_dates_are_in_the_language() -> None:
    moment = datetime(2026, 11, 23, 8, tzinfo=UTC)
    with timezone.override("Europe/Berlin"), translation.override("de"):
        german = [moment_words(moment), exact_moment_words(moment), short_day_words(moment)]
    with timezone.override("Europe/Berlin"):
        english = [moment_words(moment), exact_moment_words(moment), short_day_words(moment)]

    assert german == [
        "Mo., 23. Nov. 2026, 09:00 CET",
        "Mo., 23. Nov. 2026, 09:00:00 CET",
        "Mo., 23. Nov.",
    ]
    assert english == ["Mon 23 Nov 2026, 09:00 CET", "Mon 23 Nov 2026, 09:00:00 CET", "Mon 23 Nov"]


def test_scripts_have_plural_forms_of_the_language() -> None:
    words = {"rules": {"rows": Plural("{count} row", "{count} rows")}}

    with translation.override("en"):
        english = plain_words(words)
    with translation.override("pl"):
        polish = plain_words(words)

    assert english == {"rules": {"rows": {"one": "{count} row", "other": "{count} rows"}}}
    assert sorted(polish["rules"]["rows"]) == ["few", "many", "one"]


# --- Every text -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("role", "most"),
    [
        ("superuser", 1),  # who reads most pages
        *(
            pytest.param(role, MAX_OF_ROUTE, marks=pytest.mark.deep)
            for role in ("superuser", Membership.OWNER, Membership.VIEWER)
        ),
    ],
)
def test_every_text_is_translatable(
    clinic: Tenant, enter: Enter, pseudo_language: set[str], role: str, most: int
) -> None:
    client = enter() if role == "superuser" else enter(clinic, role)
    known = words_in_rows(models.CharField, models.TextField) | UNTRANSLATED | DATE_WORDS
    known |= {word for zone in ZONES for word in words_of(zone)}
    # Every language is listed under its own name, with its code.
    shown = [text for row in menu_languages(HttpRequest()) for text in row.values()]
    known |= {word for text in shown for word in words_of(text)}
    # JSON data is shown as lines such as "Colour: red".
    in_json = known | words_in_rows(models.JSONField)
    found = defaultdict(set)

    for route, _, texts in crawl(client, AllTexts, most=most):
        if any(name in route for name in TECHNICAL):
            continue
        for outside, text in texts.unmarked():
            allowed = in_json if ":" in text else known
            if not allowed.issuperset(words_of(outside)):
                found[text[:120]].add(route)

    assert dict(found) == {}
    assert sorted(pseudo_language - translatable_texts()) == []
