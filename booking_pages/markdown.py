"""Texts of owners in Markdown: they stay what they are, whatever they contain."""

import re

from bookings.pages.formatting import clean_lines, to_one_line

MARKS = re.compile(r"([\\`*_\[\]<>|~&])")
# What makes a heading, a list or a line of what begins with it.
BEGINNING = re.compile(r"^(\d*)([#+\-=.:)])")


def plain(text: str) -> str:
    """Return the text on one line, without a meaning in Markdown or HTML: `1\\. \\<b\\>` for
    `1. <b>`.
    """
    return BEGINNING.sub(r"\1\\\2", MARKS.sub(r"\\\1", to_one_line(text, most=8000)))


def quoted(text: str) -> str:
    """Return the text as a block quote, line by line; "" without text."""
    lines = [plain(line) for line in clean_lines(text).split("\n")]
    return "\n".join(f"> {line}".rstrip() for line in lines) if any(lines) else ""


def bullets(rows: list[tuple[str, str]]) -> str:
    """Return a list of labels and values, without empty values."""
    return "\n".join(f"- {label}: {value}" for label, value in rows if value)


def code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
