"""Translations: complete, and compiled when they have changed."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from gettext import GNUTranslations
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import allauth
import pytest
from babel.messages.catalog import Catalog, Message
from django.core.management import call_command
from django.utils import translation
from django.utils.translation import gettext, pgettext, to_locale

from common.shipped_languages import (
    SOURCE_LANGUAGE,
    TRANSLATED_PACKAGES,
    catalogue_folder,
    closest_shipped,
    shipped_languages,
)
from ops.office_texts import (
    complete_catalogue,
    english_file,
    find_sentences,
    is_reworded,
    render_catalogue,
)
from ops.translation_catalogues import language_of_file, read_catalogue, translation_files
from tests.services import ROOT

PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{\w*\}|%\(\w+\)[a-z]|%s")
HEAD = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
ENGLISH = """\
msgid "Hello {{ name }}"
msgstr ""

msgctxt "whole days"
msgid "all day"
msgstr ""

msgid "%(count)s seat"
msgid_plural "%(count)s seats"
msgstr[0] ""
msgstr[1] ""
"""
GERMAN = """\
msgid "Hello {{ name }}"
msgstr "Guten Tag {{ name }}"

msgctxt "whole days"
msgid "all day"
msgstr "ganztägig"

msgid "%(count)s seat"
msgid_plural "%(count)s seats"
msgstr[0] "Ein Platz"
msgstr[1] "%(count)s Plätze"
"""


def write_po(base: Path, package: str, language: str, sentences: str) -> Path:
    folder = base / package / "locale" / language / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "django.po").write_text(HEAD + sentences)
    return folder / "django.po"


def placeholders(text: str) -> set[str]:
    return set(PLACEHOLDER.findall(text))


def faults_of(english: Catalog, translated: Catalog) -> Iterator[str]:
    """What a translation lacks, has wrong or has for no English sentence: one text for each."""
    for sentence in english:
        if not sentence.id:
            continue
        found = translated.get(sentence.id, sentence.context)
        forms = forms_of(found) if found else []
        expected = placeholders(" ".join(forms_of(sentence, of_id=True)))
        wanted = translated.num_plurals if sentence.pluralizable else 1
        if len(forms) != wanted or not all(forms):
            yield f"missing: {sentence.id}"
        elif found and found.fuzzy:
            yield f"fuzzy: {sentence.id}"
        # "one seat" may leave out its number.
        elif placeholders(forms[-1]) != expected or placeholders(" ".join(forms)) != expected:
            yield f"other placeholders: {sentence.id}"
    for sentence in translated:
        if sentence.id and english.get(sentence.id, sentence.context) is None:
            yield f"unused: {sentence.id}"


def forms_of(sentence: Message, *, of_id: bool = False) -> list[str]:
    text: Any = sentence.id if of_id else sentence.string
    return [text] if isinstance(text, str) else [*text]


# --- The committed ones ---------------------------------------------------------------------------
def test_each_translation_is_complete() -> None:
    """If this fails: fill in the `django.po`."""
    faults = [
        f"{file.relative_to(ROOT)}: {fault}"
        for file in translation_files()
        if language_of_file(file) != SOURCE_LANGUAGE
        for fault in faults_of(
            read_catalogue(file.parents[2] / "en" / "LC_MESSAGES" / "django.po"),
            read_catalogue(file),
        )
    ]

    assert faults == []


def test_each_language_is_in_every_package() -> None:
    files = [file for file in translation_files() if language_of_file(file) != SOURCE_LANGUAGE]

    packages: dict[str, list[str]] = {}
    for file in files:
        package = file.relative_to(ROOT).parts[0]
        packages.setdefault(language_of_file(file).replace("_", "-"), []).append(package)
    assert packages == {language: [*TRANSLATED_PACKAGES] for language in packages}
    assert shipped_languages() == ["en", *sorted(packages)]


def test_reworded_texts_exist_in_allauth() -> None:
    """If this fails after an upgrade: allauth has other texts now."""
    english = filter(is_reworded, read_catalogue(english_file()))
    german = Path(allauth.__file__).parent / "locale" / "de" / "LC_MESSAGES" / "django.po"
    known = {sentence.id for sentence in read_catalogue(german)}

    assert [sentence.id for sentence in english if sentence.id not in known] == []


def test_every_text_of_the_office_is_in_its_catalogue() -> None:
    """If this fails: `manage.py extract_office_texts`, and translate the new texts."""
    assert english_file().read_bytes() == render_catalogue(complete_catalogue())


def test_only_texts_of_allauth_are_reworded() -> None:
    """What the English catalogue rewords are allauth's texts only."""
    reworded = {message.id for message in read_catalogue(english_file()) if is_reworded(message)}

    assert [sentence for sentence in find_sentences() if sentence.id in reworded] == []


# --- The checks and the command -------------------------------------------------------------------
@pytest.mark.parametrize("language", shipped_languages()[1:])
def test_texts_of_other_packages_do_not_override_ours(language: str) -> None:
    """Django's admin has "Save" and "History", too, in other words. And none of our packages has
    another translation than the others: Django would take one of them for all.
    """
    files = [
        catalogue_folder(name) / to_locale(language) / "LC_MESSAGES" / "django.po"
        for name in TRANSLATED_PACKAGES
    ]
    ours: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for message in (message for file in files for message in read_catalogue(file)):
        if isinstance(message.id, str) and message.id:
            ours[message.id, message.context].add(str(message.string))

    with translation.override(language):
        shown = {key: pgettext(key[1], key[0]) if key[1] else gettext(key[0]) for key in ours}

    assert {key: text for key, text in shown.items() if {text} != ours[key]} == {}


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("", "", []),
        ('"ganztägig"', '""', ["missing: all day"]),
        ('msgctxt "whole days"\n', "", ["missing: all day", "unused: all day"]),
        (
            'msgstr "Guten Tag {{ name }}"',
            'msgstr "Guten Tag"',
            ["other placeholders: Hello {{ name }}"],
        ),
        ("Guten Tag {{ name }}", "Guten Tag {{ nome }}", ["other placeholders: Hello {{ name }}"]),
        (
            '"%(count)s Plätze"',
            '"Plätze"',
            ["other placeholders: ('%(count)s seat', '%(count)s seats')"],
        ),
        ('"%(count)s Plätze"', '""', ["missing: ('%(count)s seat', '%(count)s seats')"]),
        (
            'msgid "Hello {{ name }}"',
            '#, fuzzy\nmsgid "Hello {{ name }}"',
            ["fuzzy: Hello {{ name }}"],
        ),
    ],
)
def test_control_faults_are_found(tmp_path: Path, old: str, new: str, faults: list[str]) -> None:
    english = read_catalogue(write_po(tmp_path, "bookings", "en", ENGLISH))

    changed = GERMAN.replace(old, new) if old else GERMAN
    german = read_catalogue(write_po(tmp_path, "bookings", "de", changed))

    assert [*faults_of(english, german)] == faults


def compile_in(folder: Path) -> list[str]:
    """What the command says that it wrote."""
    out = StringIO()
    call_command("compile_languages", stdout=out)
    return out.getvalue().replace(f"{folder}/", "").splitlines()


def test_command_compiles_only_what_has_changed(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    german = write_po(tmp_path, "bookings", "de", GERMAN)
    write_po(tmp_path, "bookings", "fr", GERMAN)
    swedish = write_po(tmp_path, "bookings", "sv", GERMAN)

    first, second = compile_in(tmp_path), compile_in(tmp_path)
    german.write_text(german.read_text().replace("Guten Tag", "Hallo"))
    later = german.with_suffix(".mo").stat().st_mtime + 1
    os.utime(german, (later, later))
    swedish.unlink()
    third = compile_in(tmp_path)

    line = "Wrote bookings/locale/{}/LC_MESSAGES/django.mo."
    assert first == [line.format(language) for language in ("de", "fr", "sv")]
    assert second == []
    assert third == [line.format("de")]
    assert sorted(path.parts[-3:] for path in tmp_path.rglob("*.mo")) == [
        (language, "LC_MESSAGES", "django.mo") for language in ("de", "fr")
    ]
    read = GNUTranslations(BytesIO(german.with_suffix(".mo").read_bytes()))
    assert read.gettext("Hello {{ name }}") == "Hallo {{ name }}"


def test_command_compiles_what_django_reads(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    for package in TRANSLATED_PACKAGES:
        write_po(tmp_path, package, "en", ENGLISH)
        write_po(tmp_path, package, "de", GERMAN)
        write_po(tmp_path, package, "pt_BR", GERMAN)
    call_command("compile_languages", verbosity=0)
    (tmp_path / "access" / "locale" / "pt_BR" / "LC_MESSAGES" / "django.mo").unlink()

    compiled = tmp_path / "bookings" / "locale" / "de" / "LC_MESSAGES" / "django.mo"
    read = GNUTranslations(BytesIO(compiled.read_bytes()))
    assert read.gettext("Hello {{ name }}") == "Guten Tag {{ name }}"
    assert read.pgettext("whole days", "all day") == "ganztägig"
    assert read.ngettext("%(count)s seat", "%(count)s seats", 2) == "%(count)s Plätze"
    # Only the back office rewords English texts, those of django-allauth.
    english = tmp_path.glob("*/locale/en/LC_MESSAGES/django.mo")
    assert [file.relative_to(tmp_path).parts[0] for file in english] == ["office"]
    assert shipped_languages() == ["en", "de"]


@pytest.mark.parametrize(
    ("code", "language"),
    [("de-AT", "de"), ("pt", "pt-BR"), ("pt_br", "pt-BR"), ("pt-PT", "pt-BR"), ("fi", None)],
)
def test_closest_shipped_language(code: str, language: str | None) -> None:
    assert closest_shipped(code) == language
