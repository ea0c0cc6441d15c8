"""What changes for clients between two OpenAPI documents, and whether CHANGELOG.md lists it.

    python scripts/api_changes.py     # compares docs/openapi.json with the last release's

Each change is one line of the unreleased section, such as "- API: added GET /v2/rooms" or
"- API (breaking): removed schema Booking, property colour"; words may follow the line's text.
"""

import json
import re
import subprocess
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("get", "put", "post", "delete", "patch")
AT_MOST = {"maxLength", "maxItems", "maxProperties", "maximum"}
AT_LEAST = {"minLength", "minItems", "minProperties", "minimum"}
LIMITS = AT_MOST | AT_LEAST | {"pattern", "format", "const"}
SCHEMAS = "#/components/schemas/"

Json = dict[str, Any]
Place = tuple[str, ...]  # of a part in the document, outermost first


class Change(NamedTuple):
    text: str
    is_breaking: bool

    def __str__(self) -> str:
        return f"- API{' (breaking)' if self.is_breaking else ''}: {self.text}"


def list_changes(old: Json, new: Json) -> list[Change]:
    """Return what a client of `old` may notice in `new`; of what is new or gone only its name."""
    sent = sent_schemas(old) | sent_schemas(new)
    before, after = (dict(list_parts(document, sent)) for document in (old, new))
    changes = []
    for place in sorted(before.keys() | after.keys()):
        name = ", ".join(place)
        if place in before and place in after:
            if before[place] != after[place]:
                text = f"changed {name} from {before[place]} to {after[place]}"
                changes.append(Change(text, is_narrower(place[-1], before[place], after[place])))
        elif place in after and is_top_or_in(place, before):
            changes.append(Change(f"added {name}", is_demand(place)))
        elif place in before and is_top_or_in(place, after):
            changes.append(Change(f"removed {name}", not is_demand(place)))
    return changes


def is_top_or_in(place: Place, parts: Container[Place]) -> bool:
    return len(place) == 1 or place[:-1] in parts


def is_demand(place: Place) -> bool:
    """Whether the part restricts what a client may send."""
    return place[-1].startswith("required") or place[-1] in LIMITS


def is_narrower(name: str, old: Any, new: Any) -> bool:
    return new < old if name in AT_MOST else new > old if name in AT_LEAST else True


# --- Parts of a document --------------------------------------------------------------------------
def list_parts(document: Json, sent: Container[str]) -> Iterator[tuple[Place, Any]]:
    """Yield the place of each part that a client relies on, and a limit's value, else None.

    `sent`: the names of the schemas of requests.
    """
    for name, operation in operations_of(document).items():
        yield from parts_of_operation(document, (name,), operation, is_sent=True)
    for name, item in document.get("webhooks", {}).items():
        yield from parts_of_operation(document, (f"call {name}",), item["post"], is_sent=False)
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        yield (f"schema {name}",), None
        yield from parts_of_schema((f"schema {name}",), schema, is_sent=name in sent)


def parts_of_operation(
    document: Json, place: Place, operation: Json, *, is_sent: bool
) -> Iterator[tuple[Place, Any]]:
    yield place, None
    if operation.get("deprecated"):
        yield (*place, "deprecated"), None
    for given in operation.get("parameters", []):
        parameter = resolve(document, given)
        name = f"parameter {parameter['name']} in {parameter['in']}"
        inner = (*place, name)
        yield inner, None
        if parameter.get("required"):
            yield (*place, f"required {name}"), None
        yield from parts_of_schema(inner, parameter.get("schema", {}), is_sent=True)
    if "requestBody" in operation:
        body = resolve(document, operation["requestBody"])
        yield (*place, "body"), None
        if body.get("required"):
            yield (*place, "required body"), None
        yield from parts_of_content((*place, "body"), body, is_sent=is_sent)
    for status, response in operation.get("responses", {}).items():
        inner = (*place, f"response {status}")
        yield inner, None
        yield from parts_of_content(inner, resolve(document, response), is_sent=False)


def parts_of_content(place: Place, body: Json, *, is_sent: bool) -> Iterator[tuple[Place, Any]]:
    for kind, content in body.get("content", {}).items():
        yield (*place, kind), None
        yield from parts_of_schema((*place, kind), content.get("schema", {}), is_sent=is_sent)


def parts_of_schema(place: Place, schema: Json, *, is_sent: bool) -> Iterator[tuple[Place, Any]]:
    """Yield the parts of a schema; alternatives (anyOf) count as one schema with all their parts.

    A required property of a request is a demand, of a response a promise.
    """
    types = schema.get("type", [])
    for name in [types] if isinstance(types, str) else types:
        yield (*place, f"type {name}"), None
    if "$ref" in schema:
        yield (*place, f"type {schema['$ref'].removeprefix(SCHEMAS)}"), None
    for value in schema.get("enum", []):
        yield (*place, f"value {json.dumps(value)}"), None
    for name in LIMITS & schema.keys():
        yield (*place, name), schema[name]
    for name in schema.get("required", []):
        is_in = (f"required {name}",) if is_sent else (f"property {name}", "always present")
        yield (*place, *is_in), None
    inner = [(f"property {name}", part) for name, part in schema.get("properties", {}).items()]
    inner += [
        (name, schema[name])
        for name in ("items", "additionalProperties")
        if isinstance(schema.get(name), dict)
    ]
    for name, part in inner:
        yield (*place, name), None
        yield from parts_of_schema((*place, name), part, is_sent=is_sent)
    for key in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(key, []):
            yield from parts_of_schema(place, part, is_sent=is_sent)


def operations_of(document: Json) -> Json:
    """Return "GET /v2/app" -> operation."""
    return {
        f"{method.upper()} {path}": item[method]
        for path, item in document.get("paths", {}).items()
        for method in METHODS
        if method in item
    }


def sent_schemas(document: Json) -> set[str]:
    """Return the names of the schemas of all requests, and of the schemas that these use."""
    names: set[str] = set()
    for operation in operations_of(document).values():
        collect_references(document, operation.get("parameters"), names)
        collect_references(document, operation.get("requestBody"), names)
    return names


def resolve(document: Json, node: Json) -> Json:
    """Return what a reference to a parameter, a body or a response points at, else the node."""
    if "$ref" not in node:
        return node
    found: Any = document
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return resolve(document, found)


def collect_references(document: Json, node: Any, names: set[str]) -> None:
    """Add the names of all schemas that the node uses, directly or through others."""
    if isinstance(node, list):
        for value in node:
            collect_references(document, value, names)
    elif isinstance(node, dict):
        for value in node.values():
            collect_references(document, value, names)
        name = node.get("$ref", "").removeprefix(SCHEMAS)
        if name and name not in names:
            names.add(name)
            collect_references(document, resolve(document, node), names)


# --- Releases -------------------------------------------------------------------------------------
def last_release() -> str | None:
    """Return the tag of the last release before this commit; None: there is none in this clone."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def released_document(tag: str) -> Json:
    command = ["git", "show", f"{tag}:docs/openapi.json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    document: Json = json.loads(done.stdout)
    return document


def unreleased_section(changelog: str) -> str:
    """Return the text below "## Unreleased: VERSION", without that line; empty: there is none."""
    found = re.search(r"^## Unreleased: .*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    return found[1] if found else ""


def list_unlisted(changes: list[Change], section: str) -> list[str]:
    """Return the lines of changes that the section lacks."""
    lines = [str(change) for change in changes]
    return [
        line for line in lines if not re.search(rf"^{re.escape(line)}(?![^\s.:;])", section, re.M)
    ]


def main() -> str | None:
    tag = last_release()
    if tag is None:
        print("There is no release yet: no API to compare with.")
        return None
    new = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))
    section = unreleased_section((ROOT / "CHANGELOG.md").read_text("utf-8"))
    if unlisted := list_unlisted(list_changes(released_document(tag), new), section):
        return "\n".join([f"CHANGELOG.md lacks these changes since {tag}:", *unlisted])
    print(f"CHANGELOG.md lists every change of the API since {tag}.")
    return None


if __name__ == "__main__":
    sys.exit(main())
