"""An answer's class: its schema, its example, and the record of a row."""

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

from common.api.response_records import (
    STAMP_EXAMPLE,
    Id,
    Json,
    Record,
    Stamp,
    Time,
    example_id,
    field,
    find_component,
)

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


class LeafRecord(Record):
    name: str = field(example="a")
    note: str | None
    weight: int | None = field(minimum=1)


class TreeRecord(Record):
    """A tree
    of records."""

    id: Id = field(example=example_id(7))
    kind: str = field(enum=["oak", "fir"], of="sort")
    planted_at: Stamp
    felled_at: Stamp | None = field("Null: it stands.")
    start: Time
    first: LeafRecord | None
    leaves: list[LeafRecord] = field("In order.", maxItems=9)
    meta: Json
    count: int | str = field(of=lambda tree: len(tree.leaves), example=2)
    from_: str = field(of="origin.name")
    owner: str | None = field(optional=True, enum=["me"])


class SaplingRecord(TreeRecord, total=False, shows=["height"]):
    height: float = field(example=0.5)
    others: list[str]


def make_tree() -> SimpleNamespace:
    leaf = SimpleNamespace(name="b", note="", weight=0)
    return SimpleNamespace(
        id=UUID(int=1),
        sort="oak",
        planted_at=NOON,
        felled_at=None,
        start=NOON,
        first=None,
        leaves=[leaf],
        meta={"a": [1]},
        origin=SimpleNamespace(name="North"),
        owner="",
    )


RECORD = {
    "id": "00000000-0000-0000-0000-000000000001",
    "kind": "oak",
    "planted_at": "2026-11-23T12:00:00+0000",
    "felled_at": None,
    "start": "2026-11-23T13:00:00+01:00",
    "first": None,
    "leaves": [{"name": "b", "note": None, "weight": 0}],
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
    "leaves": [{"name": "a", "note": None, "weight": None}],
    "meta": {},
    "count": 2,
    "from": "",
}


def test_record_of_a_row():
    record = TreeRecord.of(make_tree(), "Europe/Berlin")

    assert record == RECORD
    assert list(record) == list(RECORD)


def test_optional_field_is_included_on_request():
    assert TreeRecord.of(make_tree(), "Europe/Berlin", ["owner"]) == RECORD | {"owner": None}


def test_object_is_returned_unchanged():
    assert TreeRecord.of({"any": "thing"}) == {"any": "thing"}


def test_example_of_a_record():
    assert TreeRecord.example() == EXAMPLE
    assert TreeRecord.example("owner", kind="fir") == EXAMPLE | {"kind": "fir", "owner": None}
    assert SaplingRecord.example() == EXAMPLE | {"height": 0.5}


def test_schema_of_a_record():
    stamp = {
        "type": "string",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$",
        "examples": [STAMP_EXAMPLE],
    }
    leaf = {"$ref": "#/components/schemas/Leaf"}

    assert TreeRecord.schema == {"$ref": "#/components/schemas/Tree"}
    assert find_component(TreeRecord.schema) == {
        "type": "object",
        "description": "A tree of records.",
        "required": list(EXAMPLE),
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "kind": {"type": "string", "enum": ["oak", "fir"]},
            "planted_at": stamp,
            "felled_at": stamp | {"type": ["string", "null"], "description": "Null: it stands."},
            "start": {"type": "string", "format": "date-time"},
            "first": {"anyOf": [leaf, {"type": "null"}]},
            "leaves": {
                "type": "array",
                "items": leaf,
                "maxItems": 9,
                "description": "In order.",
            },
            "meta": {"type": "object", "additionalProperties": True},
            "count": {"type": ["integer", "string"]},
            "from": {"type": "string"},
            "owner": {"type": ["string", "null"], "enum": ["me", None]},
        },
        "examples": [EXAMPLE],
    }


def test_fields_of_a_base_class_come_first():
    schema = find_component(SaplingRecord.schema)

    assert schema["required"] == list(EXAMPLE)
    assert list(schema["properties"]) == [*EXAMPLE, "owner", "height", "others"]
    assert "description" not in schema
