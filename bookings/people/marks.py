"""Names and addresses in free text."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

SHORTEST = 2  # of one letter no text can be cleared


class Marks:
    """What a person is known by: address, name, numbers.

    >>> Marks(["Ann Lee", "ann@example.com"]).cut("Check-up of Ann Lee (joann@example.com)")
    'Check-up of (joann@example.com)'
    """

    def __init__(self, words: Iterable[str]) -> None:
        known = {word.strip() for word in words}
        # As they stand in an address of the web too.
        forms = {form for word in known for form in (word, quote(word, safe=""), quote_plus(word))}
        longest_first = sorted((one for one in forms if len(one) >= SHORTEST), key=len)[::-1]
        self._pattern = re.compile("|".join(map(_bounded, longest_first)) or r"(?!)", re.IGNORECASE)

    def cut(self, value: Any) -> Any:
        """Text, or any JSON, without them; what does not hold them is as it was."""
        if isinstance(value, str):
            cut = self._pattern.sub("", value)
            return value if cut == value else re.sub(r"  +", " ", cut).strip()
        if isinstance(value, dict):
            return {self.cut(key): self.cut(one) for key, one in value.items()}
        return [self.cut(one) for one in value] if isinstance(value, list) else value

    def are_in(self, value: Any) -> bool:
        return self.cut(value) != value


def _bounded(word: str) -> str:
    """A pattern for the whole word: not the end of a longer address, nor a part of another name.

    Scripts without letter cases mostly write without blanks too: they know no ends of words.
    """
    before, after = (r"\w.+-", r"(?![\w-]|\.\w)") if "@" in word else (r"\w", r"(?!\w)")
    start = f"(?<![{before}])" if _has_ends(word[0]) else ""
    return start + re.escape(word) + (after if _has_ends(word[-1]) else "")


def _has_ends(letter: str) -> bool:
    return letter.isdigit() or letter.lower() != letter.upper()
