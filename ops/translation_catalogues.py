"""Compile translations: `django.po` of a package and language -> `django.mo` beside it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from common.shipped_languages import OFFICE, SOURCE_LANGUAGE, TRANSLATED_PACKAGES, catalogue_folder

# Babel writes the current time into a catalogue without a date.
NO_DATE = datetime(2000, 1, 1, tzinfo=UTC)


def translation_files() -> Iterator[Path]:
    """Yield the `django.po` of each translated package and language except English, in order.

    Last comes the back office's English for texts of django-allauth.
    """
    for package in TRANSLATED_PACKAGES:
        for file in sorted(catalogue_folder(package).glob("*/LC_MESSAGES/django.po")):
            if language_of_file(file) != SOURCE_LANGUAGE:
                yield file
    yield from catalogue_folder(OFFICE).glob(f"{SOURCE_LANGUAGE}/LC_MESSAGES/django.po")


def language_of_file(file: Path) -> str:
    """Return the folder's name: `pt_BR`."""
    return file.parent.parent.name


def read_catalogue(file: Path) -> Catalog:
    """Return the parsed `django.po`. Raises PoFileError if it is malformed."""
    with file.open("rb") as content:
        return read_po(content, locale=language_of_file(file), abort_invalid=True)


def compile_catalogue(file: Path) -> bytes:
    """Return the `django.mo` of a `django.po`; the same file gives the same bytes."""
    catalogue = read_catalogue(file)
    catalogue.creation_date = catalogue.revision_date = NO_DATE
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    return compiled.getvalue()
