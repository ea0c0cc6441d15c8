"""Query parameters in the OpenAPI document."""

import re
from collections.abc import Collection, Iterable, Mapping

from common.openapi.component_registry import Json


def parameter_objects(schemas: Mapping[str, Json]) -> list[Json]:
    """Return the parameters of a query string; name -> schema, with `description`, `required`."""
    return [
        {
            "in": "query",
            "name": name,
            "schema": {key: schema[key] for key in schema if key not in OWN},
            **{key: schema[key] for key in OWN if schema.get(key)},
        }
        for name, schema in schemas.items()
    ]


# What belongs to the parameter, and not to its schema.
OWN = ("description", "required")


def include_of(names: Iterable[str], *, note: str = "") -> Json:
    """Return the schema of an `include` with these names; note: a sentence for the description."""
    known = list(names)
    choice = "|".join(map(re.escape, known))
    return {
        "type": "string",
        "description": f"What to add, separated by commas: {', '.join(known)}. {note}".rstrip(),
        "pattern": f"^ *(({choice}) *)?(, *(({choice}) *)?)*$",
        "examples": [known[0]],
    }


def search_of(fields: Collection[str], example: str) -> Json:
    """Return the schema of a `search` with these fields; `meta.` stands for every key of meta."""
    known = ", ".join(f"{field}<key>" if field.endswith(".") else field for field in fields)
    return {
        "type": "string",
        "description": "`field:value;field:value`: all terms must match. `*` at the beginning or"
        " end of a text is a wildcard. A backslash escapes `;`, `*` and itself."
        f" Fields: {known}.",
        "examples": [example],
    }
