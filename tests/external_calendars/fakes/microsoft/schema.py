"""Types, enums and paths of Microsoft Graph, read from graph_fields.json, and checks of bodies."""

import json
import re
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.external_calendars.fakes.server import Violation

FIELDS = json.loads((Path(__file__).parent.parent / "graph_fields.json").read_text())

# The other properties of an event are read-only, or the fake lacks them.
WRITABLE = {
    "allowNewTimeProposals",
    "attendees",
    "body",
    "categories",
    "end",
    "hideAttendees",
    "importance",
    "isAllDay",
    "isOnlineMeeting",
    "isReminderOn",
    "location",
    "locations",
    "onlineMeetingProvider",
    "recurrence",
    "reminderMinutesBeforeStart",
    "responseRequested",
    "sensitivity",
    "showAs",
    "singleValueExtendedProperties",
    "start",
    "subject",
    "transactionId",
}
# Property id of a named property: "String {66f5a359-4659-4830-9070-00047ec6ac6e} Name Booking".
EXTENDED_ID = re.compile(
    r"(?P<kind>String|Integer|Boolean|SystemTime) (?P<set>\{[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-"
    r"[0-9a-fA-F]{12}\}) (?P<name>Name \S.*|Id 0x[0-9a-fA-F]+)"
)
# A property of a dateTimeTimeZone has neither "Z" nor an offset.
LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?")
PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "double": (int, float),
    "int32": int,
    "string": str,
}


class Route(NamedTuple):
    """template: as in graph_fields.json, "/me/events/{event-id}"."""

    template: str
    parameters: dict[str, str]


def find_route(method: str, segments: list[str]) -> Route:
    """Return the path's template and the values of its parameters; raise Violation for none."""
    segments = [segment.removesuffix("()") for segment in segments]
    for template, facts in FIELDS["paths"].items():
        names = template.removeprefix("/").split("/")
        pairs = list(zip(names, segments, strict=False))
        if len(names) == len(segments) and all(
            name == segment or (name.startswith("{") and segment) for name, segment in pairs
        ):
            if method not in facts["methods"]:
                raise Violation(f"{template} has no method {method}.")
            found = {name[1:-1]: segment for name, segment in pairs if name.startswith("{")}
            return Route(template, found)
    raise Violation("Unknown path.")


def properties_of(type_name: str) -> dict[str, str]:
    """Return name and type of each property, with those of the base types."""
    found: dict[str, str] = {}
    while type_name:
        facts = FIELDS["types"][type_name]
        found = facts["properties"] | found
        type_name = facts["base"]
    return found


def check_selected(type_name: str, names: Iterable[str]) -> None:
    if unknown := sorted(set(names) - set(properties_of(type_name))):
        raise Violation(f"$select: {type_name} has no {', '.join(unknown)}.")


def check_value(kind: str, value: Any, place: str) -> None:
    """Raise Violation unless the value of a body is one of this type; `place` names it."""
    if value is None:
        return
    if kind.startswith("["):
        if not isinstance(value, list):
            raise Violation(f"{place} is no list.")
        for index, inner in enumerate(value):
            check_value(kind[1:-1], inner, f"{place}[{index}]")
    elif kind in FIELDS["types"]:
        check_object(kind, value, place)
    elif kind in FIELDS["enums"]:
        if value not in FIELDS["enums"][kind]:
            raise Violation(f"{place} is {value!r}, which is no {kind}.")
    elif kind in PYTHON_TYPES:
        is_wrong_boolean = isinstance(value, bool) and kind != "boolean"
        if is_wrong_boolean or not isinstance(value, PYTHON_TYPES[kind]):
            raise Violation(f"{place} is {value!r}, which is no {kind}.")
    elif kind == "date":
        parsed(date.fromisoformat, value, place)
    elif kind == "dateTimeOffset":
        if parsed(datetime.fromisoformat, value, place).tzinfo is None:
            raise Violation(f"{place} has no offset.")
    else:
        raise Violation(f"{place} is of the type {kind}, which the fake lacks.")


def check_object(type_name: str, value: Any, place: str) -> None:
    if not isinstance(value, dict):
        raise Violation(f"{place} is no object.")
    properties = properties_of(type_name) | {"@odata.type": "string", "@odata.etag": "string"}
    for name, inner in value.items():
        if name not in properties:
            raise Violation(f"{place}: {type_name} has no {name}.")
        check_value(properties[name], inner, f"{place}.{name}")
    if type_name == "dateTimeTimeZone":
        if not LOCAL_TIME.fullmatch(value.get("dateTime") or "") or not value.get("timeZone"):
            raise Violation(f"{place} is no local time with its zone: {value}.")
        parsed(datetime.fromisoformat, value["dateTime"], place)
    if type_name == "singleValueLegacyExtendedProperty":
        if not EXTENDED_ID.fullmatch(value.get("id") or ""):
            raise Violation(f"{place} is no id of an extended property: {value.get('id')!r}.")
        if not isinstance(value.get("value"), str):
            raise Violation(f"{place} has no value.")


def parsed(read: Any, value: Any, place: str) -> Any:
    try:
        return read(value)
    except (TypeError, ValueError) as error:
        raise Violation(f"{place} is {value!r}: {error}.") from error
