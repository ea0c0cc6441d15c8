"""The `search` of each listing: field -> how it narrows the query set (api.md section 2)."""

import re
import uuid
from collections.abc import Callable, Mapping

from django.db import connection
from django.db.models import Q, QuerySet

from scheduling.api.errors import Invalid
from scheduling.api.fields import CANONICAL_ID
from scheduling.api.query import SearchTerm

Condition = Callable[[SearchTerm], Q]


def by_id(column: str) -> Condition:
    """Matches an id exactly. A value that is no UUID: Invalid on `search`."""

    def condition(term: SearchTerm) -> Q:
        if term.wildcard_left or term.wildcard_right or not CANONICAL_ID.fullmatch(term.value):
            raise Invalid.at("search", f"{term.field} must be a UUID.")
        return Q(**{column: uuid.UUID(term.value)})

    return condition


def by_text(column: str) -> Condition:
    """Matches text in any case; `*` at an end leaves that end open."""

    def condition(term: SearchTerm) -> Q:
        if connection.vendor == "sqlite" and not term.value.isascii():
            return Q(**{f"{column}__iregex": _pattern(term)})
        lookup = _LOOKUPS[term.wildcard_left, term.wildcard_right]
        return Q(**{f"{column}__{lookup}": term.value})

    return condition


def _pattern(term: SearchTerm) -> str:
    """SQLite's own comparison knows the two cases of ASCII letters only; this is Python's."""
    start, end = "" if term.wildcard_left else r"\A", "" if term.wildcard_right else r"\Z"
    return f"{start}{re.escape(term.value)}{end}"


_LOOKUPS = {
    (False, False): "iexact",
    (False, True): "istartswith",
    (True, False): "iendswith",
    (True, True): "icontains",
}


def apply_search(
    rows: QuerySet, terms: list[SearchTerm], conditions: Mapping[str, Condition]
) -> QuerySet:
    """All terms must match."""
    for term in terms:
        rows = rows.filter(conditions[term.field](term))
    return rows


RESOURCE_SEARCH = {"name": by_text("name"), "email": by_text("email")}
CALENDAR_SEARCH = {"resource.id": by_id("resource_id")}
CREDENTIAL_SEARCH = {"resource.id": by_id("resource_id")}
EVENT_SEARCH = {"resource.id": by_id("resource_id"), "calendar.id": by_id("calendar_id")}
PROJECT_SEARCH = {"slug": by_text("slug"), "name": by_text("name")}
