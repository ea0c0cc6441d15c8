"""Texts without signed links: whoever has one acts for its customer or owner."""

import re
from typing import Any

HIDDEN_LINK = "[link]"

_WORD = re.compile(r"[^\s\"'<>]+")
_SIGNED = re.compile(r"(?:signature|token)(?:=|%3D)", re.IGNORECASE)


def hide_signed_links(text: str) -> str:
    """Replace every word with the signature or token of a link.

    >>> hide_signed_links("See https://example.com/?token=a1.b2, please")
    'See [link] please'
    """
    if not _SIGNED.search(text):
        return text
    return _WORD.sub(lambda word: HIDDEN_LINK if _SIGNED.search(word[0]) else word[0], text)


def hide_links_in_values(value: Any) -> Any:
    """Return the JSON value with `[link]` in place of every signed link in its texts."""
    if isinstance(value, str):
        return hide_signed_links(value)
    if isinstance(value, dict):
        return {key: hide_links_in_values(each) for key, each in value.items()}
    return [hide_links_in_values(each) for each in value] if isinstance(value, list) else value
