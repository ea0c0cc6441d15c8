"""Conditions of the `search` parameter of listings (api.md section 2)."""

import re
import uuid
from collections.abc import Callable, Mapping

from django.db import connection
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from common.api.fields import CANONICAL_ID
from common.api.query import SearchTerm
from common.email_address import canonical_address
from common.errors import Invalid

Condition = Callable[[SearchTerm], Q]


def exact_id(column: str) -> Condition:
    """Match an id exactly. The condition raises Invalid on `search` for a value that is no UUID."""

    def condition(term: SearchTerm) -> Q:
        if term.wildcard_left or term.wildcard_right or not CANONICAL_ID.fullmatch(term.value):
            raise Invalid.at("search", f"{term.field} must be a UUID.")
        return Q(**{column: uuid.UUID(term.value)})

    return condition


def exact_text(column: str) -> Condition:
    """Match text exactly. The condition raises Invalid on `search` for a wildcard."""

    def condition(term: SearchTerm) -> Q:
        if term.wildcard_left or term.wildcard_right:
            text = f"{term.field} does not support wildcards; write \\* for a star."
            raise Invalid.at("search", text)
        return Q(**{column: term.value})

    return condition


def text_with_wildcards(column: str) -> Condition:
    """Match text case-insensitively; a `*` leaves that end open."""

    def condition(term: SearchTerm) -> Q:
        if connection.vendor == "sqlite" and not term.value.isascii():
            return Q(**{f"{column}__iregex": _regex(term)})
        lookup = _LOOKUPS[term.wildcard_left, term.wildcard_right]
        return Q(**{f"{column}__{lookup}": term.value})

    return condition


def address_with_wildcards(text: str, address: str = "address") -> Condition:
    """Match an e-mail address: with a `*` its text, as `text_with_wildcards`; without one the
    address itself, in its canonical form. text, address: the columns.
    """
    matches_text = text_with_wildcards(text)

    def condition(term: SearchTerm) -> Q:
        if term.wildcard_left or term.wildcard_right:
            return matches_text(term)
        return Q(**{address: canonical_address(term.value)})

    return condition


def any_list_item_with_wildcards(column: str) -> Condition:
    """Match one of the texts of a JSON list, as `text_with_wildcards`. column: with its table."""

    def condition(term: SearchTerm) -> Q:
        if connection.vendor == "sqlite":
            found = f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value REGEXP %s)"  # noqa: S608 # nosec B608
            return Q(RawSQL(found, [f"(?i){_regex(term)}"], BooleanField()))  # noqa: S611 # nosec B611
        texts = f"CASE jsonb_typeof({column}) WHEN 'array' THEN {column} ELSE '[]' END"
        found = (
            f"EXISTS (SELECT 1 FROM jsonb_array_elements_text({texts}) AS item"  # noqa: S608 # nosec B608
            " WHERE upper(item) LIKE upper(%s))"
        )
        start, end = "%" if term.wildcard_left else "", "%" if term.wildcard_right else ""
        value = connection.ops.prep_for_like_query(term.value)
        return Q(RawSQL(found, [f"{start}{value}{end}"], BooleanField()))  # noqa: S611 # nosec B611

    return condition


def _regex(term: SearchTerm) -> str:
    """Return a regular expression for SQLite, whose LIKE ignores case for ASCII letters only."""
    start, end = "" if term.wildcard_left else r"\A", "" if term.wildcard_right else r"\Z"
    return f"{start}{re.escape(term.value)}{end}"


_LOOKUPS = {
    (False, False): "iexact",
    (False, True): "istartswith",
    (True, False): "iendswith",
    (True, True): "icontains",
}


def filter_by_search(
    rows: QuerySet, terms: list[SearchTerm], conditions: Mapping[str, Condition]
) -> QuerySet:
    """Filter by all terms. The condition of `meta.` is that of every `meta.<key>`."""
    for term in terms:
        prefix = term.field.partition(".")[0] + "."
        condition = conditions.get(term.field) or conditions[prefix]
        rows = rows.filter(condition(term))
    return rows


RESOURCE_SEARCH = {
    "name": text_with_wildcards("name"),
    "email": address_with_wildcards("email"),
    "external_id": exact_text("external_id"),
    "tags": any_list_item_with_wildcards('"availability_resource"."tags"'),
}
SCHEDULE_SEARCH = {"name": text_with_wildcards("name")}
CALENDAR_SEARCH = {"resource.id": exact_id("resource_id")}
CREDENTIAL_SEARCH = {"resource.id": exact_id("resource_id")}
EVENT_SEARCH = {
    "resource.id": exact_id("resource_id"),
    "calendar.id": exact_id("calendar_id"),
}
PROJECT_SEARCH = {
    "slug": text_with_wildcards("slug"),
    "name": text_with_wildcards("name"),
    "external_id": exact_text("external_id"),
}
