"""The languages of pages and e-mails."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

# The language of the source texts, which needs no catalogue.
SOURCE_LANGUAGE = "en"
# The package of the back office; the others have texts for customers and owners.
OFFICE = "office"
TRANSLATED_PACKAGES = ("access", "booking_pages", "bookings", "notifications", OFFICE)


def shipped_languages() -> list[str]:
    """Return English and the languages with all compiled catalogues: `["en", "de", "pt-BR"]`.

    A language needs the catalogue of each translated package, or one in a folder of LOCALE_PATHS.
    """
    return [SOURCE_LANGUAGE, *_translated_into(settings.BASE_DIR, tuple(settings.LOCALE_PATHS))]


def find_shipped(code: str) -> str | None:
    """Return the shipped language with this code, in any case, with `-` or `_`."""
    wanted = code.lower().replace("_", "-")
    return next((language for language in shipped_languages() if language.lower() == wanted), None)


def closest_shipped(code: str) -> str | None:
    """Return the shipped language for a reader of `code`: `de` for `de-AT`, `pt-BR` for `pt`."""
    main_language = _main_language(code)
    variants = (each for each in shipped_languages() if _main_language(each) == main_language)
    return find_shipped(code) or find_shipped(main_language) or next(variants, None)


def catalogue_folder(package: str) -> Path:
    return Path(settings.BASE_DIR) / package / "locale"


@lru_cache
def _translated_into(_base: Path, extra_folders: tuple[str, ...]) -> list[str]:
    """Cached, because each page and e-mail asks and the files are part of a release."""
    in_packages = [
        _compiled_languages(catalogue_folder(package)) for package in TRANSLATED_PACKAGES
    ]
    in_extra = [_compiled_languages(Path(folder)) for folder in extra_folders]
    codes = set.intersection(*in_packages).union(*in_extra)
    return sorted(codes - {SOURCE_LANGUAGE})


def _compiled_languages(folder: Path) -> set[str]:
    catalogues = folder.glob("*/LC_MESSAGES/django.mo")
    return {file.parent.parent.name.replace("_", "-") for file in catalogues}


def _main_language(code: str) -> str:
    return code.lower().replace("_", "-").split("-")[0]
