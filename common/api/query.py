"""Parse the query string: known names, strict values, search and include (api.md section 2); and
the service's own headers.
"""

import re
import uuid
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.http import HttpRequest

from common.api.fields import CANONICAL_ID
from common.errors import Invalid, Malformed
from common.messages import find_message
from common.time.durations import resolve_bound
from common.time.instants import InstantError

BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
MAX_TERMS = 20

# Pieces between semicolons; a backslash escapes the next character.
PIECE = re.compile(r"(?:\\.|[^;])+", re.DOTALL)
ESCAPED = re.compile(r"\\([;*\\])")
STAR_AT_END = re.compile(r"(?:^|[^\\])(?:\\\\)*\*\Z", re.DOTALL)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# An unescaped `+01:00` in a query string arrives with a blank instead of the plus.
LOST_PLUS = re.compile(r"(:\d\d(?:\.\d+)?) (\d\d:?\d\d)\Z", re.ASCII)


class SearchTerm(NamedTuple):
    """One `field:value`; the wildcards tell whether the value had a `*` at that end."""

    field: str
    value: str
    wildcard_left: bool
    wildcard_right: bool


def check_query(request: HttpRequest) -> None:
    """Raise Malformed if the query string is not UTF-8 or contains a NUL."""
    raw = request.META.get("QUERY_STRING", "")
    if "%" not in raw and raw.isascii() and "\0" not in raw:
        return
    try:
        text = unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise Malformed("The query string is not valid UTF-8.") from None
    if "\0" in text:
        raise Malformed("The query string contains a NUL character.")


class QueryParams:
    """The query parameters of a request; each must be known and occur at most once.

    Raises Malformed, and Invalid at an unknown or repeated parameter. Getters return None for an
    absent parameter and raise Invalid at an invalid value.
    """

    def __init__(self, request: HttpRequest, known: Iterable[str]) -> None:
        check_query(request)
        known = frozenset(known)
        errors = {
            name: [describe_query_fault(name, values, known)]
            for name, values in request.GET.lists()
            if name not in known or len(values) > 1
        }
        if errors:
            raise Invalid(errors)
        self.values: dict[str, str] = request.GET.dict()

    def text(self, name: str) -> str | None:
        return self.values.get(name)

    def boolean(self, name: str) -> bool | None:
        value = self.choice(name, BOOLEANS)
        return None if value is None else BOOLEANS[value]

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        value = self.values.get(name)
        if value is not None and value not in choices:
            raise Invalid.at(name, f"Must be one of {', '.join(choices)}.")
        return value

    def bound(self, name: str, zone_name: str, now: datetime) -> datetime | None:
        """Return an instant, a date, or a time relative to `now`, as aware UTC.

        Without an offset it is wall time in `zone_name`.
        """
        value = self.values.get(name)
        if value is None:
            return None
        try:
            return resolve_bound(LOST_PLUS.sub(r"\1+\2", value), now, zone_name)
        except InstantError as exc:
            raise Invalid.at(name, find_message(exc)) from None

    def identifier(self, name: str) -> uuid.UUID | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not CANONICAL_ID.fullmatch(value):
            raise Invalid.at(name, "Must be a UUID.")
        return uuid.UUID(value)

    def search(self, known: Collection[str]) -> list[SearchTerm]:
        return parse_search(self.values.get("search", ""), known)

    def include(self, known: Collection[str]) -> tuple[str, ...]:
        return parse_include(self.values.get("include", ""), known)


def describe_query_fault(name: str, values: list[str], known: Collection[str]) -> str:
    if name not in known:
        return "Is not a known query parameter."
    return f"Is given {len(values)} times."


def parse_search(text: str, known: Collection[str]) -> list[SearchTerm]:
    r"""Return the terms of a `search`; all must match.

    Split at `;`, the field ends at the first `:`, a `*` at either end of the value is a wildcard,
    `\;` `\*` `\\` are literal. A known name that ends in a dot stands for all that begin with it:
    `meta.`. Raises Invalid at "search".

    >>> parse_search(r"customer.name:Ann*;meta.k:a\;b", {"customer.name", "meta."})[1].value
    'a;b'
    """
    terms = [parse_search_term(piece, known) for piece in PIECE.findall(text)]
    if len(terms) > MAX_TERMS:
        raise Invalid.at("search", f"Must have at most {MAX_TERMS} terms.")
    return terms


def parse_search_term(piece: str, known: Collection[str]) -> SearchTerm:
    field, colon, value = piece.partition(":")
    if not colon:
        raise Invalid.at("search", "Must be written as field:value;field:value.")
    if not is_searchable(field, known):
        raise Invalid.at("search", f"{field:.80} can't be searched.")
    left = value.startswith("*")
    value = value[left:]
    right = bool(STAR_AT_END.search(value))
    literal = ESCAPED.sub(r"\1", value[: len(value) - right])
    return SearchTerm(field, literal, left, right)


def is_searchable(field: str, known: Collection[str]) -> bool:
    """Return whether the field is known, or is `meta.<key>` and `meta.` is known."""
    prefix, dot, key = field.partition(".")
    return (bool(key) and prefix + dot in known) or (field in known and not field.endswith("."))


def parse_include(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the distinct names of an `include`, in order. Raises Invalid at "include"."""
    given = (name.strip(" ") for name in text.split(","))
    names = tuple(dict.fromkeys(name for name in given if name))
    for name in names:
        if name not in known:
            raise Invalid.at("include", f"{name:.80} can't be included.")
    return names


# --- Headers --------------------------------------------------------------------------------------


def service_header(request: HttpRequest, name: str) -> str | None:
    """Return the value of `Service-<name>`, else of `Timekit-<name>`; None if both are absent.

    The prefixes are the setting API_HEADER_PREFIXES. Raises Malformed at control characters.
    """
    for prefix in settings.API_HEADER_PREFIXES:
        value = request.META.get(f"HTTP_{prefix}_{name}".upper().replace("-", "_"))
        if value is None:
            continue
        if CONTROL.search(value):
            raise Malformed(f"The header {prefix}-{name} contains control characters.")
        return value
    return None
