"""Compile translations: `django.po` of a package and language -> `django.mo` beside it."""

import os
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


def compile_outdated() -> list[Path]:
    """Write each `django.mo` that is missing or older than its `django.po`; return those written.

    Deletes those without a `django.po`: their language would still count as shipped.
    """
    sources = {file.with_suffix(".mo"): file for file in translation_files()}
    for package in TRANSLATED_PACKAGES:
        for compiled in catalogue_folder(package).glob("*/LC_MESSAGES/django.mo"):
            if compiled not in sources:
                compiled.unlink()
    outdated = [compiled for compiled, source in sources.items() if is_outdated(compiled, source)]
    for compiled in outdated:
        # Renamed, as another process may read the file or write it at the same time.
        part = compiled.with_suffix(f".{os.getpid()}.mo")
        part.write_bytes(compile_catalogue(sources[compiled]))
        part.replace(compiled)
    return outdated


def is_outdated(compiled: Path, source: Path) -> bool:
    return not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime


def compile_catalogue(file: Path) -> bytes:
    """Return the `django.mo` of a `django.po`; the same file gives the same bytes."""
    catalogue = read_catalogue(file)
    catalogue.creation_date = catalogue.revision_date = NO_DATE
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    return compiled.getvalue()
