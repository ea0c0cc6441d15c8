"""What a request to Microsoft Graph says: its preferences, its OData parameters, its body."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.external_calendars.fakes.microsoft.events import Mailbox, zone_of
from tests.external_calendars.fakes.microsoft.schema import EXTENDED_ID, check_selected, parsed
from tests.external_calendars.fakes.server import Request, Violation

MAX_PAGE = 1000
DEFAULT_PAGE = 10
# A request header with a value, or one of them: `odata.maxpagesize=50, IdType="ImmutableId"`.
PREFERENCE = re.compile(
    r'\s*(?P<name>[\w.-]+)=(?:"(?P<quoted>[^"]*)"|(?P<plain>[^,\s]+))\s*(?:,|$)'
)
EXPAND = re.compile(r"singleValueExtendedProperties\(\$filter=(?P<conditions>.+)\)")
ID_IS = re.compile(r"id eq '(?P<id>(?:[^']|'')+)'")
PROPERTY_IS = re.compile(
    r"singleValueExtendedProperties/[aA]ny\((?P<var>\w+): ?(?P=var)/id eq '(?P<id>(?:[^']|'')+)' "
    r"and (?P=var)/value eq '(?P<value>(?:[^']|'')*)'\)"
)


class Preferences(NamedTuple):
    """zone: of start and end in the answer. page_size: None: not said."""

    zone: str
    page_size: int | None
    body_type: str


class Query(NamedTuple):
    """The OData parameters. extended: ids of extended properties to expand. having: id and value
    of the extended property that events must have."""

    top: int | None
    skip: int
    select: tuple[str, ...]
    extended: tuple[str, ...]
    having: tuple[str, str] | None
    order_by: str
    other: Mapping[str, str]


def read_preferences(request: Request, mailbox: Mailbox) -> Preferences:
    """Raise Violation where ids would not be immutable, or a preference is unknown.

    Without outlook.timezone the answer is in the mailbox's zone. The documentation says UTC; but a
    client that does not ask can't tell, so the fake takes the worse answer.
    """
    header, found = request.headers.get("prefer", ""), {}
    position = 0
    while position < len(header):
        match = PREFERENCE.match(header, position)
        if match is None:
            raise Violation(f"Prefer is {header!r}.")
        found[match["name"]] = match["quoted"] if match["plain"] is None else match["plain"]
        position = match.end()
    if found.pop("IdType", "") != "ImmutableId":
        raise Violation('The request lacks Prefer: IdType="ImmutableId".')
    zone = found.pop("outlook.timezone", mailbox.time_zone)
    zone_of(zone)
    size = found.pop("odata.maxpagesize", None)
    if size is not None and not (size.isdigit() and int(size) > 0):
        raise Violation(f"Prefer: odata.maxpagesize={size}.")
    body_type = found.pop("outlook.body-content-type", "html")
    if body_type not in ("html", "text"):
        raise Violation(f"Prefer: outlook.body-content-type={body_type}.")
    if found:
        raise Violation(f"Prefer has no {', '.join(sorted(found))}.")
    return Preferences(zone, min(int(size), MAX_PAGE) if size else None, body_type)


def read_query(request: Request, allowed: set[str], type_name: str) -> Query:
    """Raise Violation for a parameter that is not allowed, repeated, or that can't be read."""
    values: dict[str, str] = {}
    for name, given in request.query.items():
        if name not in allowed:
            raise Violation(f"No query parameter {name} here.")
        if len(given) > 1:
            raise Violation(f"{name} is repeated.")
        values[name] = given[0]
    select = tuple(name for name in values.pop("$select", "").split(",") if name)
    check_selected(type_name, select)
    return Query(
        top=_number(values.pop("$top", None), "$top"),
        skip=_number(values.pop("$skip", None), "$skip") or 0,
        select=select,
        extended=_expanded(values.pop("$expand", "")),
        having=_filtered(values.pop("$filter", "")),
        order_by=_ordered(values.pop("$orderby", "")),
        other=values,
    )


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or int(text) > MAX_PAGE * 1000:
        raise Violation(f"{name} is {text!r}.")
    return int(text)


def _ordered(text: str) -> str:
    if text not in ("", "start/dateTime"):
        raise Violation(f"The fake lacks $orderby={text}.")
    return text


def _expanded(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    match = EXPAND.fullmatch(text)
    conditions = match["conditions"].split(" or ") if match else []
    found = [ID_IS.fullmatch(condition) for condition in conditions]
    if not found or None in found:
        raise Violation(f"$expand is {text!r}.")
    return tuple(extended_id(unquoted(each["id"])) for each in found if each)


def _filtered(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    match = PROPERTY_IS.fullmatch(text)
    if match is None:
        raise Violation(f"The fake lacks $filter={text}.")
    return extended_id(unquoted(match["id"])), unquoted(match["value"])


def unquoted(literal: str) -> str:
    return literal.replace("''", "'")


def extended_id(text: str) -> str:
    """Return the id of an extended property as Graph answers it: the set in lower case."""
    match = EXTENDED_ID.fullmatch(text)
    if match is None:
        raise Violation(f"{text!r} is no id of an extended property.")
    return f"{match['kind']} {match['set'].lower()} {match['name']}"


def read_window(query: Query) -> tuple[datetime, datetime]:
    """Return startDateTime and endDateTime; without an offset they are in UTC."""
    found = []
    for name in ("startDateTime", "endDateTime"):
        if name not in query.other:
            raise Violation(f"The request lacks {name}.")
        at = parsed(datetime.fromisoformat, query.other[name], name)
        found.append(at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC))
    if found[0] > found[1]:
        raise Violation("startDateTime is after endDateTime.")
    return found[0], found[1]


def read_body(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind != "application/json":
        raise Violation(f"The body's Content-Type is {kind!r}.")
    try:
        return request.json
    except ValueError as error:
        raise Violation("The body is no JSON.") from error
