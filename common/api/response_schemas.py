"""The schema and the example of a serializer's field in responses. Only type, choices and bounds:
how long a text may be is a matter of requests.
"""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from common.api.fields import (
    BoundedIntegerField,
    IdField,
    InstantField,
    MetaField,
    OneOfField,
    StampField,
)
from common.openapi.component_registry import Json

STAMP_EXAMPLE = "2026-11-20T09:30:00+0000"
START_EXAMPLE, END_EXAMPLE = "2026-11-23T09:00:00+01:00", "2026-11-23T09:30:00+01:00"
FREE_OBJECT: Json = {"type": "object", "additionalProperties": True}
# Field -> its schema and its example; the first class that fits counts.
TYPES: Mapping[type[serializers.Field], tuple[Json, Any]] = {
    IdField: ({"type": "string", "format": "uuid"}, "0193a4c2-0000-7000-8000-000000000000"),
    # RFC 3339 for events and slots; stamps such as created_at have no colon in the offset.
    StampField: (
        {
            "type": "string",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$",
            "examples": [STAMP_EXAMPLE],
        },
        STAMP_EXAMPLE,
    ),
    InstantField: ({"type": "string", "format": "date-time"}, START_EXAMPLE),
    serializers.DateField: ({"type": "string", "format": "date"}, "2026-11-23"),
    serializers.URLField: ({"type": "string", "format": "uri"}, ""),
    serializers.BooleanField: ({"type": "boolean"}, False),
    serializers.IntegerField: ({"type": "integer"}, 0),
    serializers.FloatField: ({"type": "number"}, 0),
    serializers.DictField: (FREE_OBJECT, {}),
    MetaField: (FREE_OBJECT, {}),
    serializers.JSONField: ({}, {}),
}
TEXT: tuple[Json, Any] = {"type": "string"}, ""
ANY_VALUE = type(serializers.DictField.child)


def example_id(number: int) -> str:
    return f"0193a4c2-0000-7000-8000-{number:012}"


def is_nullable(field: serializers.Field) -> bool:
    """Whether responses can have null: of two ways to say that a text is empty, blank counts."""
    return field.allow_null and not getattr(field, "allow_blank", False)


def schema_of(field: Any) -> Json:
    """Return the JSON schema of a field's values in responses, with its description."""
    schema = _bare_schema(field)
    if isinstance(field, serializers.ChoiceField):
        schema = schema | {"enum": list(field.choices)}
    if isinstance(field, (serializers.IntegerField, serializers.FloatField)):
        schema = schema | _bounds_of(field)
    if is_nullable(field):
        schema = nullable(schema)
    return schema | ({"description": str(field.help_text)} if field.help_text else {})


def _bare_schema(field: Any) -> Json:
    if hasattr(field, "response_schema"):
        return field.response_schema
    if isinstance(field, OneOfField):
        return {"anyOf": [schema_of(kind) for kind in field.kinds]}
    if isinstance(field, serializers.ListSerializer):
        return {"type": "array", "items": object_of(field.child).schema}
    if isinstance(field, serializers.ListField):
        most = getattr(field, "max_length", None)
        return {
            "type": "array",
            "items": schema_of(field.child),
            **({"maxItems": most} if most else {}),
        }
    if isinstance(field, serializers.Serializer):
        return object_of(field).schema
    if isinstance(field, serializers.DictField) and isinstance(field.child, ANY_VALUE):
        return FREE_OBJECT
    if isinstance(field, serializers.DictField):
        return {"type": "object", "additionalProperties": schema_of(field.child)}
    return _type_of(field)[0]


def object_of(serializer: Any) -> Any:
    """The class of an object, which knows its own schema and example."""
    return type(serializer)


def _type_of(field: serializers.Field) -> tuple[Json, Any]:
    return next((TYPES[kind] for kind in TYPES if isinstance(field, kind)), TEXT)


def _bounds_of(field: Any) -> Json:
    """Return the bounds. A plain number has no maximum: clients would rely on it."""
    least = {} if field.min_value is None else {"minimum": field.min_value}
    most = {} if field.max_value is None else {"maximum": field.max_value}
    return least if type(field) is BoundedIntegerField else least | most


def nullable(schema: Json) -> Json:
    if "type" not in schema:
        return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [*types, "null"]} | enum


def example_of(field: Any) -> Any:
    """Return an example derived from the field: the first choice, an object's example, an empty
    list or text."""
    if is_nullable(field):
        return None
    if isinstance(field, serializers.ChoiceField):
        return next(iter(field.choices))
    if isinstance(field, OneOfField):
        return example_of(field.kinds[0])
    if isinstance(field, (serializers.ListSerializer, serializers.ListField)):
        is_object = isinstance(field.child, serializers.Serializer)
        return [object_of(field.child).example()] if is_object else []
    if isinstance(field, serializers.Serializer):
        return object_of(field).example()
    return _type_of(field)[1]
