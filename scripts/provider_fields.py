"""What the providers' APIs have: paths, parameters, fields and values, for the fakes of the tests.

    python scripts/provider_fields.py      # writes the files of tests/external_calendars/fakes

Each file is made from a published package, which is downloaded, read and not installed. To follow a
new revision, raise the version here and run it.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "external_calendars" / "fakes"
GOOGLE_PACKAGE = "google-api-python-client==2.202.0"
GOOGLE_DOCUMENT = "googleapiclient/discovery_cache/documents/calendar.v3.json"
# Resource -> methods of the API that the fake has.
GOOGLE_METHODS = {
    "calendarList": ("get", "list"),
    "calendars": ("get",),
    "channels": ("stop",),
    "events": (
        "delete",
        "get",
        "import",
        "insert",
        "instances",
        "list",
        "patch",
        "update",
        "watch",
    ),
    "freebusy": ("query",),
}
GRAPH_PACKAGE = "msgraph-sdk==1.65.0"
GRAPH_TYPES = (
    "attendee",
    "attendee_base",
    "calendar",
    "date_time_time_zone",
    "directory_object",
    "email_address",
    "entity",
    "event",
    "item_body",
    "location",
    "online_meeting_info",
    "outlook_geo_coordinates",
    "outlook_item",
    "patterned_recurrence",
    "phone",
    "physical_address",
    "recipient",
    "recurrence_pattern",
    "recurrence_range",
    "response_status",
    "single_value_legacy_extended_property",
    "subscription",
    "time_slot",
    "user",
)
GRAPH_ENUMS = (
    "attendee_type",
    "body_type",
    "calendar_color",
    "day_of_week",
    "event_type",
    "free_busy_status",
    "importance",
    "location_type",
    "location_unique_id_type",
    "online_meeting_provider_type",
    "phone_type",
    "recurrence_pattern_type",
    "recurrence_range_type",
    "response_type",
    "sensitivity",
    "week_index",
)
# Modules with the paths of the API that the fake has.
GRAPH_BUILDERS = (
    "subscriptions/item/reauthorize/reauthorize_request_builder",
    "subscriptions/item/subscription_item_request_builder",
    "subscriptions/subscriptions_request_builder",
    "users/item/calendars/calendars_request_builder",
    "users/item/calendars/item/calendar_item_request_builder",
    "users/item/calendars/item/calendar_view/calendar_view_request_builder",
    "users/item/calendars/item/calendar_view/delta/delta_request_builder",
    "users/item/calendars/item/events/events_request_builder",
    "users/item/calendars/item/events/item/event_item_request_builder",
    "users/item/events/item/event_item_request_builder",
    "users/item/user_item_request_builder",
)
# How the package reads a value -> the type of Graph's metadata.
GRAPH_PRIMITIVES = {
    "bool": "boolean",
    "date": "date",
    "datetime": "dateTimeOffset",
    "float": "double",
    "int": "int32",
    "str": "string",
}
# In many enums: a client of an older version gets it for a newer value.
UNKNOWN_FUTURE_VALUE = "unknownFutureValue"

Json = dict[str, Any]


def main() -> None:
    for name, fields in FILES.items():
        (FOLDER / name).write_text(file_text(fields()))


def file_text(fields: Json) -> str:
    """Return the text of a file, with a line for each object of the upper levels."""
    return json.dumps(fields, indent=1, sort_keys=True) + "\n"


def downloaded_package(requirement: str, folder: str) -> zipfile.ZipFile:
    """Return the wheel of "name==version" from the package index, downloaded to the folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", folder]
    subprocess.run([*command, requirement], check=True)
    [wheel] = Path(folder).glob("*.whl")
    return zipfile.ZipFile(wheel)


# --- Google Calendar ------------------------------------------------------------------------------
def google_calendar() -> Json:
    """Return what the fake needs of Google's discovery document, without descriptions.

    Where only a description names the values of a field, or says that it is read-only, the schema
    gets `enum` and `readOnly`.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        downloaded_package(GOOGLE_PACKAGE, folder) as wheel,
    ):
        document = json.loads(wheel.read(GOOGLE_DOCUMENT))
    resources = {
        resource: {
            "methods": {name: document["resources"][resource]["methods"][name] for name in names}
        }
        for resource, names in GOOGLE_METHODS.items()
    }
    schemas = {
        name: document["schemas"][name]
        for name in sorted(used_schemas(resources, document["schemas"]))
    }
    return {
        "source": f"{GOOGLE_PACKAGE}, {GOOGLE_DOCUMENT}; licence: Apache-2.0; excerpt",
        **{name: document[name] for name in ("id", "revision", "rootUrl", "servicePath")},
        "scopes": sorted(document["auth"]["oauth2"]["scopes"]),
        "parameters": without_descriptions(document["parameters"]),
        "resources": without_descriptions(resources),
        "schemas": without_descriptions(schemas),
    }


def used_schemas(part: Any, schemas: Json) -> set[str]:
    """Return the names of the schemas to which the part refers, and to which these refer."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        for name in set(list_references(waiting.pop())) - found:
            found.add(name)
            waiting.append(schemas[name])
    return found


def list_references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from list_references(inner)


def without_descriptions(part: Any) -> Any:
    if isinstance(part, list):
        return [without_descriptions(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    kept = {
        name: without_descriptions(inner)
        for name, inner in part.items()
        if name != "enumDescriptions" and not (name == "description" and isinstance(inner, str))
    }
    text = part.get("description")
    return described_facts(text) | kept if isinstance(text, str) else kept


def described_facts(text: str) -> Json:
    """Return {"enum": [...]} and {"readOnly": True} where a description says so.

    Example: 'Status of the event. Possible values are:  \\n- "confirmed" - ... \\n- "tentative"'.
    """
    facts: Json = {}
    if re.search(r"(?<!Some of the )[Pp]ossible values are:", text):
        facts["enum"] = sorted(re.findall(r'^- "(\w+)"', text, re.MULTILINE))
    if "Valid values are" in text:
        facts["enum"] = sorted(re.findall(r'(?<=")\w+(?=")|\w+(?=, meaning)', text))
    if re.search(r"\bRead-[oO]nly\b(?!, except)", text):
        facts["readOnly"] = True
    return {name: value for name, value in facts.items() if value}


# --- Microsoft Graph ------------------------------------------------------------------------------
def microsoft_graph() -> Json:
    """Return the properties of Graph's types, the values of its enums, and its paths.

    Types are named as in Graph's metadata, collections with brackets: "[attendee]". Paths of the
    signed-in user begin with /me, which the package calls /users/{user-id}.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        downloaded_package(GRAPH_PACKAGE, folder) as wheel,
    ):
        sources = {
            name: wheel.read(f"msgraph/generated/{name}.py").decode()
            for name in [f"models/{model}" for model in (*GRAPH_TYPES, *GRAPH_ENUMS)]
            + list(GRAPH_BUILDERS)
        }
    return {
        "source": f"{GRAPH_PACKAGE}, msgraph/generated; licence: MIT; excerpt",
        "types": dict(graph_type(sources[f"models/{model}"]) for model in GRAPH_TYPES),
        "enums": dict(graph_enum(sources[f"models/{model}"]) for model in GRAPH_ENUMS),
        "paths": dict(graph_path(sources[builder]) for builder in GRAPH_BUILDERS),
    }


def graph_type(source: str) -> tuple[str, Json]:
    """Return name, base type and properties of a model, of the model's own properties only."""
    match = re.search(r"^class (\w+)\((\w+)", source, re.MULTILINE)
    if match is None:
        raise ValueError("The source has no class.")
    fields = re.findall(
        r'^ +"([^"]+)": lambda n : setattr\(self, \'\w+\', n\.get_(\w+)_values?\((\w*)\)\)',
        source,
        re.MULTILINE,
    )
    base = graph_name(match[2]) if match[2] != "AdditionalDataHolder" else None
    properties = {name: property_type(kind, inner) for name, kind, inner in fields}
    return graph_name(match[1]), {"base": base, "properties": properties}


def property_type(kind: str, inner: str) -> str:
    """Example: ("collection_of_object", "Attendee") -> "[attendee]"."""
    if kind.startswith("collection_of_"):
        return f"[{property_type(kind.removeprefix('collection_of_'), inner)}]"
    if kind in ("object", "enum"):
        return graph_name(inner)
    return GRAPH_PRIMITIVES[inner if kind == "primitive" else kind]


def graph_enum(source: str) -> tuple[str, list[str]]:
    match = re.search(r"^class (\w+)\(str, Enum\)", source, re.MULTILINE)
    if match is None:
        raise ValueError("The source has no enum.")
    values = re.findall(r'^ +\w+ = "(\w+)"', source, re.MULTILINE)
    return graph_name(match[1]), sorted(value for value in values if value != UNKNOWN_FUTURE_VALUE)


def graph_path(source: str) -> tuple[str, Json]:
    """Return the path of a request builder, its methods and the query parameters of its GET."""
    match = re.search(r'"\{\+baseurl\}([^"{?]*(?:\{\w+%2Did\}[^"{?]*)*)(.*?)", path', source)
    if match is None:
        raise ValueError("The source has no template of a path.")
    path = match[1].replace("%2D", "-").replace("()", "").replace("/users/{user-id}", "/me")
    names = re.findall(r"(?<=[?&{,])[%\w]+(?=[=,}&])", match[2])
    return path, {
        "methods": sorted(set(re.findall(r"\bMethod\.([A-Z]+)", source))),
        "query": sorted({name.replace("%24", "$") for name in names}),
    }


def graph_name(name: str) -> str:
    """Example: "DateTimeTimeZone" -> "dateTimeTimeZone"."""
    return name[0].lower() + name[1:]


# File -> its contents.
FILES: dict[str, Callable[[], Json]] = {
    "calendar.v3.json": google_calendar,
    "graph_fields.json": microsoft_graph,
}

if __name__ == "__main__":
    main()
