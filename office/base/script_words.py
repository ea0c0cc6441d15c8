"""Texts that the back office's scripts show: `SCRIPT_WORDS` of the packages' `script_words`."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from babel import Locale
from django.utils.translation import get_language, ngettext, to_locale

from bookings.pages.formatting import SOURCE_LANGUAGE


class Plural(NamedTuple):
    """A text with `{count}` whose form the script chooses by a number. Mark both for extraction
    with `ngettext_noop`.
    """

    singular: str
    plural: str


# Script -> name -> text.
ScriptWords = Mapping[str, Mapping[str, Any]]

# Numbers that find the plural form of each of CLDR's categories.
SAMPLES = (*range(0, 121), 1_000_000)


def plain_words(words: ScriptWords) -> dict[str, dict[str, Any]]:
    """Return the texts in the active language; a plural as its forms, category -> text."""
    return {
        script: {name: _plain(text) for name, text in texts.items()}
        for script, texts in words.items()
    }


def _plain(text: Any) -> Any:
    if not isinstance(text, Plural):
        return str(text)
    samples = _plural_samples(get_language() or SOURCE_LANGUAGE)
    return {category: ngettext(*text, number) for category, number in samples.items()}


@cache
def _plural_samples(language: str) -> dict[str, int]:
    """Return each of the language's plural categories with a number of it."""
    category_of = Locale.parse(to_locale(language)).plural_form
    return {category_of(number): number for number in reversed(SAMPLES)}
