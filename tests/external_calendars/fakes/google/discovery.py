"""What Google's discovery document allows: paths, parameters, body fields, values and scopes."""

import functools
import json
import re
import urllib.parse
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.external_calendars.fakes.server import Request, Violation

PREFIX = "/calendar/v3/"
# Parameters of every method that the fake takes: of `fields` it could not give a part.
COMMON_PARAMETERS = {"alt", "prettyPrint", "quotaUser"}
NUMBERS = {"integer": int, "number": float}


class Method(NamedTuple):
    """One method of the API. `path`: its parameters by name, unquoted."""

    id: str
    parameters: Mapping[str, Any]
    schema: str  # of the body; "": no body
    scopes: frozenset[str]
    path: Mapping[str, str]


@functools.cache
def document() -> dict[str, Any]:
    return json.loads((Path(__file__).parent.parent / "calendar.v3.json").read_text())


@functools.cache
def _methods() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    found = []
    for resource in document()["resources"].values():
        for method in resource["methods"].values():
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", PREFIX + method["path"])
            found.append((method["httpMethod"], re.compile(pattern), method))
    # "events/import" before "events/{eventId}".
    return sorted(found, key=lambda entry: entry[1].pattern.count("("))


def known_scopes() -> frozenset[str]:
    return frozenset(document()["scopes"])


def find_method(request: Request) -> Method:
    """Raises Violation where the API has no such path or method."""
    for http_method, pattern, method in _methods():
        match = pattern.fullmatch(request.path)
        if match and http_method == request.method:
            schema = method.get("request", {}).get("$ref", "")
            path = {name: urllib.parse.unquote(text) for name, text in match.groupdict().items()}
            scopes = frozenset(method["scopes"])
            return Method(method["id"], method.get("parameters", {}), schema, scopes, path)
    raise Violation("the discovery document has no such path and method.")


def read_query(method: Method, request: Request) -> dict[str, Any]:
    """Return the parameters with their types, lists where they repeat. Raises Violation."""
    common = document()["parameters"]
    found: dict[str, Any] = {}
    for name, texts in request.query.items():
        schema = method.parameters.get(name)
        if schema is None and name in COMMON_PARAMETERS:
            schema = common[name]
        if schema is None or schema["location"] != "query":
            raise Violation(f"{method.id} has no parameter {name}.")
        if len(texts) > 1 and not schema.get("repeated"):
            raise Violation(f"the parameter {name} does not repeat.")
        values = [_parameter_value(name, schema, text) for text in texts]
        found[name] = values if schema.get("repeated") else values[0]
    for name, schema in method.parameters.items():
        if schema["location"] == "query" and schema.get("required") and name not in found:
            raise Violation(f"{method.id} needs the parameter {name}.")
    return found


def _parameter_value(name: str, schema: Mapping[str, Any], text: str) -> Any:
    value: Any = text
    if schema["type"] == "boolean":
        value = {"true": True, "false": False}.get(text)
    elif schema["type"] in NUMBERS:
        value = int(text) if re.fullmatch("-?[0-9]+", text) else None
        if value is None or not _is_within(schema, value):
            raise Violation(f"{name}={text} is no such number.")
    if value is None:
        raise Violation(f"{name}={text} is no {schema['type']}.")
    check_value(schema, value, name)
    return value


def _is_within(schema: Mapping[str, Any], number: int) -> bool:
    least, most = int(schema.get("minimum", number)), int(schema.get("maximum", number))
    return least <= number <= most


def read_body(method: Method, request: Request) -> dict[str, Any]:
    """Return the body; {} where the method has none. Raises Violation."""
    if not method.schema:
        if request.body:
            raise Violation(f"{method.id} has no body.")
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Violation("the body's Content-Type is not application/json.")
    try:
        body = request.json
    except ValueError as error:
        raise Violation("the body is no JSON.") from error
    schema = document()["schemas"][method.schema]
    check_value(schema, body, "body", may_be_null=request.method == "PATCH")
    for name, field in schema["properties"].items():
        if method.id in field.get("annotations", {}).get("required", ()) and name not in body:
            raise Violation(f"{method.id} needs the field {name}.")
    return body


def check_value(
    schema: Mapping[str, Any], value: Any, place: str, *, may_be_null: bool = False
) -> None:
    """Raises Violation where the value is none of the schema. `may_be_null`: in any field."""
    if "$ref" in schema:
        schema = document()["schemas"][schema["$ref"]]
    if value is None and may_be_null:
        return
    kind = schema["type"]
    if kind == "object":
        if not isinstance(value, dict):
            raise Violation(f"{place} is no object.")
        _check_fields(schema, value, place, may_be_null)
    elif kind == "array":
        if not isinstance(value, list):
            raise Violation(f"{place} is no list.")
        for index, item in enumerate(value):
            check_value(schema["items"], item, f"{place}[{index}]")
    elif kind == "boolean":
        if not isinstance(value, bool):
            raise Violation(f"{place} is neither true nor false.")
    elif kind in NUMBERS:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Violation(f"{place} is no number.")
    elif kind == "string":
        _check_text(schema, value, place)


def _check_fields(
    schema: Mapping[str, Any], value: Mapping[str, Any], place: str, may_be_null: bool
) -> None:
    for name, inner in value.items():
        field = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        if field is None:
            raise Violation(f"{place} has no field {name}.")
        check_value(field, inner, f"{place}.{name}", may_be_null=may_be_null)


def _check_text(schema: Mapping[str, Any], value: Any, place: str) -> None:
    if not isinstance(value, str):
        raise Violation(f"{place} is no text.")
    if "enum" in schema and value not in schema["enum"]:
        raise Violation(f"{place} has no value {value}.")
    try:
        if schema.get("format") == "date":
            date.fromisoformat(value)
        elif schema.get("format") == "date-time":
            if "T" not in value:
                raise ValueError
            datetime.fromisoformat(value)
        elif schema.get("format") == "int64":
            int(value)
    except ValueError as error:
        raise Violation(f"{place} is no {schema['format']}: {value}.") from error


@functools.cache
def read_only_fields() -> frozenset[str]:
    """Return the fields of an event that the server alone sets: it ignores them in bodies."""
    properties = document()["schemas"]["Event"]["properties"]
    described = {name for name, schema in properties.items() if schema.get("readOnly")}
    return frozenset(
        described | {"etag", "kind", "organizer", "originalStartTime", "recurringEventId"}
    )
