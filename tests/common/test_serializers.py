"""An object's serializer: its bodies, its responses, their schema and example."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from rest_framework import serializers

from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    BoundedIntegerField,
    DurationField,
    FewField,
    IdField,
    InstantField,
    ListOf,
    MetaField,
    OneLineField,
    OneOfField,
    SecondsField,
    StampField,
    StrictBooleanField,
)
from common.api.response_schemas import STAMP_EXAMPLE, example_id, schema_of
from common.api.serializers import ALL, ObjectSerializer, SettingsSerializer, read_values_as
from common.api.unknown_keys import find_unknown_keys
from common.errors import Invalid
from common.openapi.component_registry import find_component

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


class LeafSerializer(ObjectSerializer):
    examples = {"name": "a"}

    name = OneLineField(20)
    note = OneLineField(20, **CLEARABLE)
    remark = OneLineField(20, allow_blank=True, **CLEARABLE)
    weight = serializers.IntegerField(min_value=1, **CLEARABLE)


class FlowerSerializer(ObjectSerializer):
    examples = {}

    name = serializers.CharField()


class TreeSerializer(ObjectSerializer):
    """A tree
    of leaves."""

    only_at_creation = ("kind",)
    never_null = ("start",)
    on_request = ("owner",)
    examples = {"id": example_id(7), "count": 2}

    id = IdField(read_only=True)
    kind = serializers.ChoiceField(["oak", "fir"], source="sort")
    planted_at = StampField()
    felled_at = StampField(allow_null=True, help_text="Null: it stands.")
    start = InstantField(**CLEARABLE)
    first = LeafSerializer(allow_null=True)
    leaves = ListOf(LeafSerializer(), 9, help_text="In order.")
    flowers = FlowerSerializer(many=True, read_only=True)
    bloom = OneOfField(LeafSerializer(), FlowerSerializer(), source="first", allow_null=True)
    meta = MetaField(**OPTIONAL)
    count = serializers.IntegerField(read_only=True)
    from_ = serializers.CharField(source="origin.name", read_only=True)
    secret = OneLineField(20, write_only=True, **OPTIONAL)
    owner = serializers.ChoiceField(["me"], read_only=True, allow_null=True)

    @staticmethod
    def get_count(tree: Any) -> int:
        return len(tree.leaves)


class SaplingSerializer(TreeSerializer):
    on_request = ALL
    in_example = ("height",)
    examples = {"height": 0.5}

    height = serializers.FloatField()
    others = serializers.ListField(child=serializers.CharField())


def make_tree() -> SimpleNamespace:
    leaf = SimpleNamespace(name="b", note="", remark="", weight=0)
    return SimpleNamespace(
        id=UUID(int=1),
        sort="oak",
        planted_at=NOON,
        felled_at=None,
        start=NOON,
        first=None,
        leaves=[leaf],
        flowers=[],
        meta={"a": [1]},
        origin=SimpleNamespace(name="North"),
        owner="",
    )


RESPONSE = {
    "id": "00000000-0000-0000-0000-000000000001",
    "kind": "oak",
    "planted_at": "2026-11-23T12:00:00+0000",
    "felled_at": None,
    "start": "2026-11-23T13:00:00+01:00",
    "first": None,
    "leaves": [{"name": "b", "note": None, "remark": "", "weight": 0}],
    "flowers": [],
    "bloom": None,
    "meta": {"a": [1]},
    "count": 1,
    "from": "North",
}
EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000007",
    "kind": "oak",
    "planted_at": STAMP_EXAMPLE,
    "felled_at": None,
    "start": "2026-11-23T09:00:00+01:00",
    "first": None,
    "leaves": [{"name": "a", "note": None, "remark": "", "weight": None}],
    "flowers": [{"name": ""}],
    "bloom": None,
    "meta": {},
    "count": 2,
    "from": "",
}
ROOT_BODY = {"kind": "fir", "start": "2026-11-23T12:00:00Z", "first": None, "leaves": []}


# --- Responses ------------------------------------------------------------------------------------
def test_response_of_a_row() -> None:
    response = TreeSerializer.render(make_tree(), "Europe/Berlin")

    assert response == RESPONSE
    assert list(response) == list(RESPONSE)


def test_data_is_the_response() -> None:
    context = {"zone": "Europe/Berlin", "include": ["owner"]}

    assert TreeSerializer(make_tree(), context=context).data == RESPONSE | {"owner": None}


def test_field_on_request() -> None:
    response = TreeSerializer.render(make_tree(), "Europe/Berlin", ["owner"])

    assert response == RESPONSE | {"owner": None}


def test_dict_is_rendered_unchanged() -> None:
    assert TreeSerializer.render({"any": "thing"}) == {"any": "thing"}


def test_example() -> None:
    assert TreeSerializer.example() == EXAMPLE
    assert TreeSerializer.example("owner", kind="fir") == EXAMPLE | {"kind": "fir", "owner": None}
    assert SaplingSerializer.example() == EXAMPLE | {"height": 0.5}


def test_schema_of_responses() -> None:
    stamp = {
        "type": "string",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$",
        "examples": [STAMP_EXAMPLE],
    }
    leaf, flower = ({"$ref": f"#/components/schemas/{name}"} for name in ("Leaf", "Flower"))

    assert TreeSerializer.schema == {"$ref": "#/components/schemas/Tree"}
    assert find_component(TreeSerializer.schema) == {
        "type": "object",
        "description": "A tree of leaves.",
        "required": list(EXAMPLE),
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "kind": {"type": "string", "enum": ["oak", "fir"]},
            "planted_at": stamp,
            "felled_at": stamp | {"type": ["string", "null"], "description": "Null: it stands."},
            "start": {"type": "string", "format": "date-time"},
            "first": {"anyOf": [leaf, {"type": "null"}]},
            "leaves": {"type": "array", "items": leaf, "description": "In order."},
            "flowers": {"type": "array", "items": flower},
            "bloom": {"anyOf": [leaf, flower, {"type": "null"}]},
            "meta": {"type": "object", "additionalProperties": True},
            "count": {"type": "integer"},
            "from": {"type": "string"},
            "owner": {"type": ["string", "null"], "enum": ["me", None]},
        },
        "examples": [EXAMPLE],
    }


def test_fields_of_a_base_class_come_first() -> None:
    schema = find_component(SaplingSerializer.schema)

    assert schema["required"] == list(EXAMPLE)
    assert list(schema["properties"]) == [*EXAMPLE, "owner", "height", "others"]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (OneLineField(50), {"type": "string"}),
        (StrictBooleanField(), {"type": "boolean"}),
        (DurationField(), {"type": "string"}),
        (BoundedIntegerField(1, 9), {"type": "integer", "minimum": 1}),
        (FewField(0, 5), {"type": "integer", "minimum": 0, "maximum": 5}),
        (SecondsField(60, 3600), {"type": "integer", "minimum": 60, "maximum": 3600}),
        (serializers.ChoiceField(["warn"]), {"type": "string", "enum": ["warn"]}),
        (ListOf(OneLineField(50), 3), {"type": "array", "items": {"type": "string"}}),
        (
            serializers.DictField(child=serializers.URLField()),
            {"type": "object", "additionalProperties": {"type": "string", "format": "uri"}},
        ),
        (serializers.JSONField(), {}),
    ],
)
def test_schema_of_a_field(field: serializers.Field, expected: dict[str, Any]) -> None:
    assert schema_of(field) == expected


# --- Bodies ---------------------------------------------------------------------------------------
def test_body_of_a_new_object() -> None:
    given = read_values_as(TreeSerializer, ROOT_BODY | {"id": example_id(1), "secret": "x"})

    assert given == {"sort": "fir", "start": NOON, "first": None, "leaves": [], "secret": "x"}


def test_body_of_a_new_object_without_a_required_field() -> None:
    with pytest.raises(Invalid) as caught:
        read_values_as(TreeSerializer, ROOT_BODY | {"leaves": [{}]})

    assert caught.value.fields["errors"] == {"leaves.0.name": ["This field is required."]}


def test_body_of_a_change() -> None:
    assert read_values_as(TreeSerializer, {}, partial=True) == {}
    assert read_values_as(TreeSerializer, {"kind": "fir", "secret": "x"}, partial=True) == {
        "secret": "x"
    }


def test_nested_objects_of_a_change_are_whole() -> None:
    with pytest.raises(Invalid) as caught:
        read_values_as(TreeSerializer, {"leaves": [{}]}, partial=True)

    assert caught.value.fields["errors"] == {"leaves.0.name": ["This field is required."]}


def test_unknown_keys() -> None:
    body = ROOT_BODY | {"id": example_id(1), "leaves": [{"name": "a", "size": 1}], "weather": 2}

    assert find_unknown_keys(TreeSerializer(), body) == ["leaves.0.size", "id", "weather"]
    assert find_unknown_keys(TreeSerializer(partial=True), {"kind": "oak"}) == ["kind"]


# --- Settings -------------------------------------------------------------------------------------
class RoomSerializer(SettingsSerializer):
    """A room."""

    always = ("seats",)
    null_is_a_value = ("length",)
    examples = {"greeting": "Welcome", "seats": 3}

    greeting = OneLineField(50, help_text="On the door.", **CLEARABLE)
    seats = FewField(1, 5, initial=2, **OPTIONAL)
    lights = StrictBooleanField(initial=True, **CLEARABLE)
    length = DurationField(initial="30 minutes", **CLEARABLE)


def test_schema_of_settings() -> None:
    assert find_component(RoomSerializer.schema) == {
        "type": "object",
        "description": "A room.",
        "required": ["seats"],
        "properties": {
            "greeting": {"type": "string", "description": "On the door."},
            "seats": {"type": "integer", "minimum": 1, "maximum": 5},
            "lights": {"type": "boolean"},
            "length": {"type": ["string", "null"]},
        },
        "examples": [{"greeting": "Welcome", "seats": 3}],
    }


def test_defaults_of_settings() -> None:
    assert RoomSerializer.defaults() == {
        "greeting": "",
        "seats": 2,
        "lights": True,
        "length": "30 minutes",
    }


def test_null_removes_a_setting() -> None:
    given = read_values_as(RoomSerializer, {"greeting": None, "length": None})

    assert given == {"greeting": None, "length": None}
