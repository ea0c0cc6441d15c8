"""Dates, times and lengths in each language: fixed in English, by CLDR in the others."""

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from babel import localedata
from django.utils import translation

from bookings.pages import formatting
from bookings.pages.formatting import (
    accepted_languages,
    activate_english_of,
    date_words,
    length_words,
    month_words,
    notice_words,
    short_month_words,
    time_words,
    weekday_words,
)

MONDAY = datetime(2026, 11, 23, 15, 5, tzinfo=UTC)
HOUR_AND_HALF = 5400
# Date, time, month, short month, weekday, length.
WORDS = {
    "en": ("Monday, 23 November 2026", "15:05", "November 2026", "Nov", "Mon", "1 h 30 min"),
    "xx": ("Monday, 23 November 2026", "15:05", "November 2026", "Nov", "Mon", "1 h 30 min"),
    "de": ("Montag, 23. November 2026", "15:05", "November 2026", "Nov", "Mo", "1 Std. 30 Min."),
    "fr": ("lundi 23 novembre 2026", "15:05", "novembre 2026", "nov.", "lun.", "1 h 30 min"),
    "es": (
        *("lunes, 23 de noviembre de 2026", "15:05", "noviembre de 2026", "nov", "lun"),
        "1 h 30 min",
    ),
    "it": ("lunedì 23 novembre 2026", "15:05", "novembre 2026", "nov", "lun", "1 h 30 min"),
    "nl": ("maandag 23 november 2026", "15:05", "november 2026", "nov", "ma", "1 uur 30 min"),
    "pt-BR": (
        *("segunda-feira, 23 de novembro de 2026", "15:05", "novembro de 2026", "nov.", "seg."),
        "1 h 30 min",
    ),
    "pl": (
        *("poniedziałek, 23 listopada 2026", "15:05", "listopad 2026", "lis", "pon."),
        "1 godz. 30 min",
    ),
    "sv": ("måndag 23 november 2026", "15:05", "november 2026", "nov.", "mån", "1 tim 30 min"),
    "ja": ("2026年11月23日月曜日", "15:05", "2026年11月", "11月", "月", "1 時間 30 分"),
    "ar": (
        *("الاثنين، 23 نوفمبر 2026", "3:05 م", "نوفمبر 2026", "نوفمبر", "الاثنين"),
        "1 س 30 د",
    ),
}


def words_in(language: str) -> tuple[str, ...]:
    with translation.override(language):
        found = (
            *(date_words(MONDAY), time_words(MONDAY), month_words(MONDAY)),
            *(short_month_words(MONDAY), weekday_words(MONDAY), length_words(HOUR_AND_HALF)),
        )
    return tuple(words.replace("\u202f", " ").replace("\xa0", " ") for words in found)


@pytest.mark.parametrize("language", list(WORDS))
def test_dates_and_times_in_each_language(language: str) -> None:
    assert words_in(language) == WORDS[language]


def test_times_have_no_line_breaks() -> None:
    with translation.override("ar"):
        assert time_words(datetime(2031, 3, 3, 15, 5)) == "3:05\u00a0م"


@pytest.mark.parametrize("languages", list(permutations(["ar", "ja", "pl"])))
def test_formatting_one_language_does_not_affect_others(
    languages: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Babel 2.18 alone writes Japanese months into Arabic dates (python-babel/babel#1234)."""
    monkeypatch.setattr(localedata, "_cache", {})
    formatting._find_locale.cache_clear()

    found = {language: words_in(language) for language in languages}

    assert found == {language: WORDS[language] for language in languages}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0, ""), (45, "45 s"), (3600, "1 h"), (93_784, "26 h 3 min 4 s")],
)
def test_lengths_in_words(seconds: int | None, words: str) -> None:
    assert length_words(seconds) == words


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("24 hours", ["24 hours", "24 Stunden", "24 ساعة", "24 godziny"]),
        (
            "1 Day 90 mins",
            ["1 Day 90 mins", "1 Tag 90 Minuten", None, "1 dzień 90 minut"],
        ),
        ("2 weeks", ["2 weeks", "2 Wochen", "2 أسابيع", "2 tygodnie"]),
        ("1 month 45 secs", ["1 month 45 secs", "1 Monat 45 Sekunden", None, None]),
        ("soon", ["soon"] * 4),
        ("0", ["0"] * 4),
        (7, ["7"] * 4),
    ],
)
def test_notice_periods_in_words(limit: Any, words: list[str | None]) -> None:
    for language, expected in zip(["en", "de", "ar", "pl"], words, strict=True):
        with translation.override(language):
            assert expected in (None, notice_words(limit))


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        ("", []),
        ("de", ["de"]),
        ("de-AT, en;q=0.5, fr;q=0.8", ["de-at", "fr", "en"]),
        ("de;q=0, en;q=0.1", ["en"]),
        ("*", ["*"]),
        ("de;q=x", []),
        ("\x00;;,", []),
        ("a" * 5000, []),
    ],
)
def test_accepted_languages_of_a_header(header: str, languages: list[str]) -> None:
    assert accepted_languages(header) == languages


@pytest.mark.parametrize(
    ("accepted", "words"),
    [
        (["en-us"], ["12:05\u00a0am", "9:05\u00a0am", "12:05\u00a0pm", "3:05\u00a0pm"]),
        (
            ["de", "en-AU", "en-gb"],
            ["12:05\u00a0am", "9:05\u00a0am", "12:05\u00a0pm", "3:05\u00a0pm"],
        ),
        (["en-gb", "en-us"], ["00:05", "09:05", "12:05", "15:05"]),
        (["en-xx"], ["00:05", "09:05", "12:05", "15:05"]),
        (["en--"], ["00:05", "09:05", "12:05", "15:05"]),
        (["de"], ["00:05", "09:05", "12:05", "15:05"]),
        ([], ["00:05", "09:05", "12:05", "15:05"]),
    ],
)
def test_english_clock_follows_the_region(accepted: list[str], words: list[str]) -> None:
    moments = [MONDAY.replace(hour=hour) for hour in (0, 9, 12, 15)]

    with activate_english_of(accepted):
        found = [time_words(moment) for moment in moments]
        with translation.override("de"):
            german = time_words(MONDAY)

    assert (found, german, time_words(MONDAY)) == (words, "15:05", "15:05")


def test_american_time_has_seconds_if_they_are_asked_for() -> None:
    with activate_english_of(["en-US"]):
        assert time_words(MONDAY, with_seconds=True) == "3:05:00\u00a0pm"
