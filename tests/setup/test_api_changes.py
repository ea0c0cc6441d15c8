"""scripts/api_changes.py, and CHANGELOG.md: it lists what has changed since the last release."""

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from scripts.api_changes import (
    Change,
    last_release,
    list_changes,
    list_unlisted,
    released_document,
    unreleased_section,
)
from tests.services import ROOT

Json = dict[str, Any]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def json_content(name: str) -> Json:
    return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}


DOCUMENT = {
    "paths": {
        "/v2/rooms": {
            "get": {
                "parameters": [{"in": "query", "name": "limit", "schema": {"type": "integer"}}],
                "responses": {"200": json_content("Room")},
            },
            "post": {
                "requestBody": json_content("NewRoom") | {"required": True},
                "responses": {"201": json_content("Room")},
            },
        },
    },
    "webhooks": {"room.made": {"post": {"requestBody": json_content("Room"), "responses": {}}}},
    "components": {
        "schemas": {
            "Room": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "string"},
                    "state": {"type": "string", "enum": ["open", "closed"]},
                    "floor": {"type": ["integer", "null"]},
                },
            },
            "NewRoom": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 200},
                    "floor": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "size": {"$ref": "#/components/schemas/Size"},
                },
            },
            "Size": {"type": "object", "properties": {"seats": {"type": "integer"}}},
        }
    },
}


def edited(edit: Callable[[Json, Json], object]) -> Json:
    """A copy of the document, edited: `edit(paths, schemas)`."""
    document = copy.deepcopy(DOCUMENT)
    edit(document["paths"], document["components"]["schemas"])
    return document


EDITS: list[tuple[str, Callable[[Json, Json], object], list[str]]] = [
    ("nothing", lambda paths, schemas: None, []),
    (
        "path",
        lambda paths, schemas: paths.update({"/v2/halls": paths.pop("/v2/rooms")}),
        [
            "- API (breaking): removed GET /v2/rooms",
            "- API (breaking): removed POST /v2/rooms",
            "- API: added GET /v2/halls",
            "- API: added POST /v2/halls",
        ],
    ),
    (
        "operation",
        lambda paths, schemas: paths["/v2/rooms"].pop("post"),
        ["- API (breaking): removed POST /v2/rooms"],
    ),
    (
        "deprecated operation",
        lambda paths, schemas: paths["/v2/rooms"]["get"].update(deprecated=True),
        ["- API: added GET /v2/rooms, deprecated"],
    ),
    (
        "status",
        lambda paths, schemas: paths["/v2/rooms"]["get"]["responses"].update(
            {"404": json_content("Room")}
        ),
        ["- API: added GET /v2/rooms, response 404"],
    ),
    (
        "parameters",
        lambda paths, schemas: paths["/v2/rooms"]["get"].update(
            parameters=[{"in": "query", "name": "page", "required": True, "schema": {}}]
        ),
        [
            "- API (breaking): added GET /v2/rooms, required parameter page in query",
            "- API (breaking): removed GET /v2/rooms, parameter limit in query",
            "- API: added GET /v2/rooms, parameter page in query",
        ],
    ),
    (
        "body that must be sent",
        lambda paths, schemas: paths["/v2/rooms"]["post"]["requestBody"].pop("required"),
        ["- API: removed POST /v2/rooms, required body"],
    ),
    (
        "required property of a request",
        lambda paths, schemas: (
            schemas["NewRoom"]["properties"].update(colour={"type": "string"}),
            schemas["NewRoom"].update(required=["name", "colour"]),
        ),
        [
            "- API (breaking): added schema NewRoom, required colour",
            "- API: added schema NewRoom, property colour",
        ],
    ),
    (
        "required property of a schema inside a request",
        lambda paths, schemas: schemas["Size"].update(required=["seats"]),
        ["- API (breaking): added schema Size, required seats"],
    ),
    (
        "optional property of a request",
        lambda paths, schemas: schemas["NewRoom"].update(required=[]),
        ["- API: removed schema NewRoom, required name"],
    ),
    (
        "new property of a response",
        lambda paths, schemas: (
            schemas["Room"]["properties"].update(colour={"type": "string", "enum": ["red"]}),
            schemas["Room"].update(required=["id", "colour"]),
        ),
        ["- API: added schema Room, property colour"],
    ),
    (
        "optional property of a response",
        lambda paths, schemas: schemas["Room"].update(required=[]),
        ["- API (breaking): removed schema Room, property id, always present"],
    ),
    (
        "property",
        lambda paths, schemas: schemas["Room"]["properties"].pop("floor"),
        ["- API (breaking): removed schema Room, property floor"],
    ),
    (
        "values",
        lambda paths, schemas: schemas["Room"]["properties"]["state"].update(enum=["open", "held"]),
        [
            '- API (breaking): removed schema Room, property state, value "closed"',
            '- API: added schema Room, property state, value "held"',
        ],
    ),
    (
        "narrower type",
        lambda paths, schemas: schemas["Room"]["properties"]["floor"].update(type="integer"),
        ["- API (breaking): removed schema Room, property floor, type null"],
    ),
    (
        "narrower alternatives",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["floor"]["anyOf"].pop(),
        ["- API (breaking): removed schema NewRoom, property floor, type null"],
    ),
    (
        "type of items",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["tags"]["items"].update(
            type="null"
        ),
        [
            "- API (breaking): removed schema NewRoom, property tags, items, type string",
            "- API: added schema NewRoom, property tags, items, type null",
        ],
    ),
    (
        "another schema",
        lambda paths, schemas: schemas["NewRoom"]["properties"].update(
            size={"$ref": "#/components/schemas/Room"}
        ),
        [
            "- API (breaking): removed schema NewRoom, property size, type Size",
            "- API: added schema NewRoom, property size, type Room",
        ],
    ),
    (
        "lower maximum",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["name"].update(maxLength=100),
        ["- API (breaking): changed schema NewRoom, property name, maxLength from 200 to 100"],
    ),
    (
        "higher maximum",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["name"].update(maxLength=300),
        ["- API: changed schema NewRoom, property name, maxLength from 200 to 300"],
    ),
    (
        "higher minimum",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["floor"]["anyOf"][0].update(
            minimum=1
        ),
        ["- API (breaking): changed schema NewRoom, property floor, minimum from 0 to 1"],
    ),
    (
        "new limit",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["name"].update(pattern="^[a-z]+$"),
        ["- API (breaking): added schema NewRoom, property name, pattern"],
    ),
    (
        "limit that is gone",
        lambda paths, schemas: schemas["NewRoom"]["properties"]["name"].pop("maxLength"),
        ["- API: removed schema NewRoom, property name, maxLength"],
    ),
]


@pytest.mark.parametrize(
    ("edit", "lines"), [pytest.param(edit, lines, id=name) for name, edit, lines in EDITS]
)
def test_changes_of_a_document(edit: Callable[[Json, Json], object], lines: list[str]) -> None:
    changes = list_changes(DOCUMENT, edited(edit))

    assert sorted(str(change) for change in changes) == lines


def test_parameters_and_bodies_are_compared_behind_references() -> None:
    parameter = {"in": "query", "name": "limit", "schema": {"type": "integer"}}

    def move(paths: Json, schemas: Json) -> None:
        paths["/v2/rooms"]["get"]["parameters"] = [{"$ref": "#/components/parameters/limit"}]

    new = edited(move)
    new["components"]["parameters"] = {"limit": parameter}

    assert list_changes(DOCUMENT, new) == []


def test_call_that_is_gone_is_breaking() -> None:
    without = {**DOCUMENT, "webhooks": {}}

    assert list_changes(DOCUMENT, without) == [Change("removed call room.made", True)]


# --- The changelog --------------------------------------------------------------------------------
def test_change_is_listed_by_a_line_that_begins_with_it() -> None:
    names = ("GET /v2/a", "GET /v2/b", "GET /v2/c", "schema A", "schema B")
    changes = [Change(f"added {name}", False) for name in names]
    section = (
        "- API: added GET /v2/a\n- API: added GET /v2/b: what is free\n- API: added GET /v2/c/d\n"
        "- API: added schema A, property b\nNo line: - API: added schema B\n"
    )

    assert list_unlisted(changes, section) == [
        "- API: added GET /v2/c",
        "- API: added schema A",
        "- API: added schema B",
    ]


def test_unreleased_section_ends_at_the_next_release() -> None:
    released = "## 1.0.0 - 2026-11-27\n\nThe first.\n"

    assert (
        unreleased_section(f"# Log\n\n## Unreleased: 1.1.0\n\n- One\n\n{released}") == "\n- One\n\n"
    )
    assert unreleased_section("## Unreleased: 1.1.0\n- One") == "- One"
    assert unreleased_section(released) == ""


def test_changelog_lists_the_changes_of_the_api_since_the_last_release() -> None:
    """If this fails: write the missing lines, then ask whether the breaking ones have to be."""
    tag = last_release()
    new = json.loads((ROOT / "docs" / "openapi.json").read_text())

    if tag is None:
        # There is no release yet, or this clone lacks its tags: git fetch --tags.
        assert re.findall(r"^## (?:Unreleased: )?(\d\S*)", CHANGELOG, re.MULTILINE) == ["1.0.0"]
    else:
        changes = list_changes(released_document(tag), new)
        assert list_unlisted(changes, unreleased_section(CHANGELOG)) == []
