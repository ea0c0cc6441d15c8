"""The languages of pages and e-mails."""

from pathlib import Path

from django.conf import settings

# The language of the source texts, which needs no catalogue.
SOURCE_LANGUAGE = "en"


def shipped_languages() -> list[str]:
    """English and each language with a compiled catalogue: `["en", "de", "pt-BR"]`."""
    folders = [Path(settings.BASE_DIR) / "bookings" / "locale", *map(Path, settings.LOCALE_PATHS)]
    catalogues = [file for folder in folders for file in folder.glob("*/LC_MESSAGES/django.mo")]
    codes = {file.parent.parent.name.replace("_", "-") for file in catalogues}
    return [SOURCE_LANGUAGE, *sorted(codes - {SOURCE_LANGUAGE})]


def find_shipped(code: str) -> str | None:
    """Return the shipped language with this code, in any case, with `-` or `_`."""
    wanted = code.lower().replace("_", "-")
    return next((language for language in shipped_languages() if language.lower() == wanted), None)
