"""Sentences of the services, found by their patterns."""

from pathlib import Path

import pytest
from django.utils import translation

from office.base.service_sentence_translations import PLACEHOLDER, SENTENCES, translate_sentence
from tests.services import ROOT

PACKAGES = (
    *("access", "apps_config", "availability", "bookings", "common", "external_calendars"),
    "notifications",
)


def sources() -> str:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return "".join(map(Path.read_text, sorted(files)))


def test_sentences_exist_in_the_services() -> None:
    """If this fails: a service has other words now."""
    code = sources()
    # Days, and what `availability/core/explain.py` joins from pieces.
    joined = [sentence for sentence in SENTENCES if "buffer" in sentence or "'s rule" in sentence]
    days = [sentence for sentence in SENTENCES if sentence.endswith("days") and " " not in sentence]

    missing = [
        sentence
        for sentence in SENTENCES
        for piece in [max(PLACEHOLDER.split(sentence)[::2], key=len)]
        if piece not in code and sentence not in (*joined, *days)
    ]

    assert missing == []


@pytest.mark.parametrize(
    "text",
    [
        *("Is in the past.", "Something else.", "100 % sure", ""),
        "Blocked by the resource's rule: 12:00 to 13:00 every day.",
        "Blocked by the project's rule: Lunch (Saturday and Sunday).",
        "Within the buffer of 1 hour around bookings that take all 3 places.",
    ],
)
def test_english_is_unchanged(text: str) -> None:
    assert translate_sentence(text) == text


def test_nested_parts_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {
        "Blocked by the resource's rule: %(rule)s.": "Durch die Regel %(rule)s gesperrt.",
        "%(start)s to %(end)s every day": "täglich %(start)s bis %(end)s",
    }
    active = translation._trans  # type: ignore[attr-defined]
    monkeypatch.setattr(active, "gettext", lambda text: words.get(text, text))

    sentence = translate_sentence("Blocked by the resource's rule: 12:00 to 13:00 every day.")

    assert sentence == "Durch die Regel täglich 12:00 bis 13:00 gesperrt."
