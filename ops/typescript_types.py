"""The types of the TypeScript SDK, from the OpenAPI document (`manage.py write_openapi`).

`types.ts` has the schemas, and the query, body and answer of each operation. `tables.ts` is what
the SDK needs at run time: which fields of an answer are instants, and which operations take an
Idempotency-Key. An instant is a Date in answers, and a Date or a string in bodies and queries.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from common.openapi.component_registry import Json

HEAD = "// Written by `manage.py write_openapi`.\n\n"
SCHEMAS = "#/components/schemas/"
METHODS = ("get", "put", "post", "delete", "patch")
# These would hide a type of the language.
OTHER_NAMES = {"Date": "AvailableDate", "Error": "ErrorBody"}
SIMPLE = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
INSTANT_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}")

# 1: an instant. A text: the schema of that name. A list: all of its entries. A dict: by field, "*"
# for any.
Shape = int | str | list[Any] | dict[str, Any]


def typescript_files(document: Json) -> dict[str, str]:
    """Return the text of each file in `sdk/typescript/src/generated`, by its name."""
    return {"types.ts": write_schemas(document), "tables.ts": write_tables(document)}


# --- Types ----------------------------------------------------------------------------------------
def write_schemas(document: Json) -> str:
    schemas = document["components"]["schemas"]
    sent = sent_schemas(document) - answered_schemas(document)
    lines = [HEAD]
    for name, schema in schemas.items():
        text = type_of(schema, is_sent=name in sent)
        lines.append(f"{comment(schema)}export type {type_name(name)} = {text};\n\n")
    lines.append("/** The body of an error, by its `code`. */\nexport interface ErrorBodies {\n")
    lines += [f"  {code}: {name};\n" for code, name in errors_by_code(schemas).items()]
    lines.append(
        "}\n\n/** What each operation takes and answers. */\nexport interface Operations {\n"
    )
    lines += [operation_entry(document, *found) for found in operations_of(document)]
    return "".join([*lines, "}\n"])


def type_name(schema_name: str) -> str:
    return OTHER_NAMES.get(schema_name, schema_name)


def comment(schema: Json, indent: str = "") -> str:
    text = schema.get("description", "").replace("*/", "*\\/").replace("\n", f"\n{indent} * ")
    return f"{indent}/** {text} */\n" if text else ""


def type_of(schema: Json, *, is_sent: bool, indent: str = "") -> str:
    """Return the TypeScript of a schema. is_sent: it is of a body or a query only."""
    if "$ref" in schema:
        return type_name(schema["$ref"].removeprefix(SCHEMAS))
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for word, sign in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if word in schema:
            parts = [type_of(each, is_sent=is_sent, indent=indent) for each in schema[word]]
            return sign.join(dict.fromkeys(f"({part})" if " " in part else part for part in parts))
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    parts = [one_type(schema, each, is_sent=is_sent, indent=indent) for each in types]
    return " | ".join(dict.fromkeys(parts)) or "unknown"


def one_type(schema: Json, kind: str, *, is_sent: bool, indent: str) -> str:
    if kind == "string" and is_instant(schema, is_sent=is_sent):
        return "Date | string" if is_sent else "Date"
    if kind == "array":
        item = type_of(schema.get("items", {}), is_sent=is_sent, indent=indent)
        return f"Array<{item}>" if " " in item else f"{item}[]"
    return SIMPLE.get(kind) or object_type(schema, is_sent=is_sent, indent=indent)


def is_instant(schema: Json, *, is_sent: bool) -> bool:
    """Whether a text is an instant; for a body or a query, whether it may be one."""
    if schema.get("format") == "date-time" or schema.get("pattern", "").endswith(r"\+0000$"):
        return True
    return is_sent and any(
        isinstance(each, str) and INSTANT_TEXT.match(each) for each in schema.get("examples", [])
    )


def object_type(schema: Json, *, is_sent: bool, indent: str) -> str:
    properties = schema.get("properties", {})
    further = schema.get("additionalProperties", not properties)
    inner = indent + "  "
    required = schema.get("required", [])
    lines = [
        comment(each, inner)
        + f"{inner}{property_name(name)}{'' if name in required else '?'}: "
        + f"{type_of(each, is_sent=is_sent, indent=inner)};\n"
        for name, each in properties.items()
    ]
    if further:
        value = (
            type_of(further, is_sent=is_sent, indent=inner)
            if isinstance(further, dict) and not properties
            else "unknown"
        )
        lines.append(f"{inner}[key: string]: {value};\n")
    return "".join(["{\n", *lines, f"{indent}}}"]) if lines else "Record<string, never>"


def property_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


def errors_by_code(schemas: Json) -> dict[str, str]:
    """Return the type of the body, by the code of an error."""
    codes = schemas["Error"]["properties"]["code"]["enum"]
    return dict.fromkeys(sorted(codes), type_name("Error"))


# --- Operations -----------------------------------------------------------------------------------
def operations_of(document: Json) -> Iterator[tuple[str, Json, str]]:
    """Yield the name of each operation that answers JSON or nothing, with its method and path; and
    the names of its answers, separated by |."""
    for path, item in document["paths"].items():
        for method in (each for each in METHODS if each in item):
            answers = [
                content
                for status, response in item[method]["responses"].items()
                if status.startswith("2")
                for content in response.get("content", {"": {}}).items()
            ]
            if answers and all(media in ("", "application/json") for media, _ in answers):
                names = [each["schema"]["$ref"] for _, each in answers if each]
                names = [name.removeprefix(SCHEMAS) for name in names]
                yield f"{method.upper()} {path}", item[method], "|".join(names)


def operation_entry(document: Json, name: str, operation: Json, answers: str) -> str:
    given = parameters_of(document, operation)
    path = [parameter_entry(each) for each in given if each["in"] == "path"]
    query = [parameter_entry(each) for each in given if each["in"] == "query"]
    is_query_demanded = any(each["in"] == "query" and each.get("required") for each in given)
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    body = type_of(content["schema"], is_sent=True) if content else ""
    is_body_demanded = operation.get("requestBody", {}).get("required", False)
    answer = " | ".join(type_name(each) for each in answers.split("|")) if answers else "undefined"
    parts = [
        part("path", f"{{ {'; '.join(path)} }}" if path else "", is_demanded=True),
        part("query", f"{{ {'; '.join(query)} }}" if query else "", is_demanded=is_query_demanded),
        part("body", body, is_demanded=is_body_demanded),
        f"answer: {answer}",
    ]
    return (
        f"  /** {operation['summary']}. */\n  {json.dumps(name)}: {{\n    "
        + ";\n    ".join(parts)
        + ";\n  };\n"
    )


def part(name: str, type_: str, *, is_demanded: bool) -> str:
    if not type_:
        return f"{name}?: undefined"
    return f"{name}: {type_}" if is_demanded else f"{name}?: {type_} | undefined"


def parameters_of(document: Json, operation: Json) -> list[Json]:
    known = document["components"]["parameters"]
    return [
        known[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in operation.get("parameters", [])
    ]


def parameter_entry(parameter: Json) -> str:
    schema = parameter["schema"]
    text = type_of(schema, is_sent=True)
    is_list = text == "string" and "," in schema.get("pattern", "") + str(
        *schema.get("examples", [])[:1]
    )
    text += " | readonly string[]" if is_list else ""
    return f"{parameter['name']}{'' if parameter.get('required') else '?'}: {text}"


# --- Tables ---------------------------------------------------------------------------------------
def write_tables(document: Json) -> str:
    schemas = document["components"]["schemas"]
    shapes = shapes_of(schemas)
    used = answered_schemas(document)
    rows = {name: shape for name, shape in sorted(shapes.items()) if name in used}
    operations = {
        name: [
            answers.split("|")[0],
            *(int(takes(document, operation, each)) for each in ("Idempotency-Key", "page")),
        ]
        for name, operation, answers in operations_of(document)
    }
    return (
        f'{HEAD}import type {{ Shape }} from "../times.js";\nimport type {{ Operations }} from'
        ' "./types.js";\n\n/** The instants in the schemas of answers. */\n'
        f"export const SHAPES: Readonly<Record<string, Shape>> = {table(rows)};\n\n"
        "/** The schema of each operation's answer, whether it takes an Idempotency-Key, and"
        " whether it has pages. */\n"
        "export const OPERATIONS: Readonly<\n"
        "  Record<keyof Operations, readonly [string, 0 | 1, 0 | 1]>\n"
        f"> = {table(operations)};\n"
    )


def table(rows: Json) -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in rows.items()]
    return "".join(["{\n", *lines, "}"])


def takes(document: Json, operation: Json, parameter: str) -> bool:
    given = parameters_of(document, operation)
    return any(each["name"] == parameter for each in given)


def shapes_of(schemas: Json) -> dict[str, Shape]:
    """Return where the schemas have instants, by the name of each that has any."""
    shapes: dict[str, Shape] = {}
    while True:  # until no schema leads to another one with an instant
        found = {
            name: shape
            for name, schema in schemas.items()
            if (shape := shape_of(schema, shapes)) is not None
        }
        if found.keys() == shapes.keys():
            return found
        shapes = found


def shape_of(schema: Json, known: dict[str, Shape]) -> Shape | None:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SCHEMAS)
        return name if name in known else None
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            found = (shape_of(each, known) for each in schema[word])
            parts = list({json.dumps(each): each for each in found if each is not None}.values())
            return parts[0] if len(parts) == 1 else parts or None
    types = schema.get("type", [])
    if "string" in types and is_instant(schema, is_sent=False):
        return 1
    if "array" in types:
        return shape_of(schema.get("items", {}), known)
    fields = {
        name: shape
        for name, each in schema.get("properties", {}).items()
        if (shape := shape_of(each, known)) is not None
    }
    further = schema.get("additionalProperties")
    if isinstance(further, dict) and (shape := shape_of(further, known)) is not None:
        fields["*"] = shape
    return fields or None


# --- Which schemas are sent and answered ----------------------------------------------------------
def sent_schemas(document: Json) -> set[str]:
    return names_in(document, [each.get("requestBody", {}) for each in all_operations(document)])


def answered_schemas(document: Json) -> set[str]:
    """Also those of webhook calls."""
    answers = [each["responses"] for each in all_operations(document)]
    return names_in(document, [answers, document["webhooks"], document["components"]["responses"]])


def all_operations(document: Json) -> list[Json]:
    return [
        item[method] for item in document["paths"].values() for method in METHODS if method in item
    ]


def names_in(document: Json, parts: Sequence[Any]) -> set[str]:
    """Return the names of the schemas that the parts refer to, and of theirs."""
    found: set[str] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            name = part.get("$ref", "")
            if isinstance(name, str) and name.startswith("#/") and name not in found:
                found.add(name)
                section, key = name.split("/")[2:]
                waiting.append(document["components"][section][key])
    return {name.removeprefix(SCHEMAS) for name in found if name.startswith(SCHEMAS)}
