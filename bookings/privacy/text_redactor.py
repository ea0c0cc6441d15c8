"""Redaction of names and addresses in free text."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus, unquote

MIN_LENGTH = 2  # single letters can't be redacted


class Redactor:
    """Removes a person's address, name and numbers from text.

    Of addresses, only the letters a to z match in both cases: with Unicode's rules, the text
    ann@gmail.com would match somebody else's ann@gmaıl.com.

    >>> Redactor(["Ann Lee", "ann@example.com"]).cut("Check-up of Ann Lee (joann@example.com)")
    'Check-up of (joann@example.com)'
    """

    def __init__(self, words: Iterable[str]) -> None:
        known = {word.strip() for word in words}
        # Also URL-encoded.
        forms = {form for word in known for form in (word, quote(word, safe=""), quote_plus(word))}
        longest_first = sorted((form for form in forms if len(form) >= MIN_LENGTH), key=len)[::-1]
        self._pattern = re.compile("|".join(map(_bounded, longest_first)) or r"(?!)", re.IGNORECASE)

    def cut(self, value: Any) -> Any:
        """Return the text or JSON value without the words; unchanged if it contains none."""
        if isinstance(value, str):
            cut = self._pattern.sub("", value)
            return value if cut == value else re.sub(r"  +", " ", cut).strip()
        if isinstance(value, dict):
            return {self.cut(key): self.cut(element) for key, element in value.items()}
        return [self.cut(element) for element in value] if isinstance(value, list) else value

    def are_in(self, value: Any) -> bool:
        return self.cut(value) != value


def _bounded(word: str) -> str:
    """Return a pattern for the whole word: not the end of a longer address or part of a name.

    Scripts without letter case mostly have no blanks between words: no boundaries are required.
    """
    before, after = (r"\w.+-", r"(?![\w-]|\.\w)") if "@" in word else (r"\w", r"(?!\w)")
    start = f"(?<![{before}])" if _has_ends(word[0]) else ""
    letters = f"(?a:{re.escape(word)})" if "@" in unquote(word) else re.escape(word)
    return start + letters + (after if _has_ends(word[-1]) else "")


def _has_ends(letter: str) -> bool:
    return letter.isdigit() or letter.lower() != letter.upper()
