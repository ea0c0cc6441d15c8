"""The components of the OpenAPI document that are declared beside views: schemas of responses,
headers, parameters, errors.
"""

from typing import Any

Json = dict[str, Any]

# (kind, name) -> component; the document contains those that it refers to.
COMPONENTS: dict[tuple[str, str], Json] = {}


def register_component(kind: str, name: str, content: Json) -> Json:
    """Store a component under its kind and name; return the reference to it."""
    COMPONENTS[kind, name] = content
    return {"$ref": f"#/components/{kind}/{name}"}


def find_component(reference: Json) -> Json:
    """Return the component of a reference from `register_component`."""
    kind, name = reference["$ref"].split("/")[-2:]
    return COMPONENTS[kind, name]
