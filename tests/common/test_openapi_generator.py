import pytest
from django.test import Client
from drf_spectacular.validation import validate_schema

pytestmark = pytest.mark.urls("tests.common.urlconf")

HEADERS = ["Service-App", "Service-Timezone"]
READ = ["400", "401", "403", "404", "405", "406", "422", "429", "500", "503"]
WRITE = sorted([*READ, "409", "408", "413", "415"])


@pytest.fixture
def document():
    return Client().get("/v2/openapi.json", headers={"Accept": "application/json"}).json()


def reference(kind, name):
    return {"$ref": f"#/components/{kind}/{name}"}


@pytest.mark.parametrize(
    ("path", "method", "operation_id", "success", "errors", "parameters"),
    [
        ("/v2/things", "get", "listThings", "200", READ, [*HEADERS, "limit", "page", "cursor"]),
        ("/v2/things", "post", "createThing", "201", WRITE, [*HEADERS, "Idempotency-Key"]),
        ("/v2/things/{id}", "get", "retrieveThing", "200", READ,
         [*HEADERS, "If-None-Match"]),
        ("/v2/things/{id}", "delete", "deleteThing", "204", sorted([*READ, "409"]),
         HEADERS),
        ("/v2/ask", "post", "ask", "200", sorted([*READ, "408", "413", "415"]), HEADERS),
    ],
)  # fmt: skip
def test_operations_of_the_document(
    document, path, method, operation_id, success, errors, parameters
):
    operation = document["paths"][path][method]
    shared = [p for p in operation["parameters"] if p.get("in") != "path"]

    assert operation["operationId"] == operation_id
    further = ["304"] if operation_id == "retrieveThing" else []
    assert sorted(operation["responses"]) == sorted([success, *further, *errors])
    assert {code: operation["responses"][code] for code in errors} == {
        code: reference("responses", f"Error{code}") for code in errors
    }
    assert shared == [reference("parameters", name) for name in parameters]
    assert operation["security"] == [{"basic": []}, {"bearer": []}]


def test_whole_described_operation(document):
    operation = document["paths"]["/v2/things"]["post"]
    assert (operation["summary"], operation["tags"]) == ("Make a thing", ["things"])
    assert operation["requestBody"] == {
        "required": True,
        "content": {
            "application/json": {
                "schema": reference("schemas", "NewThing"),
                "examples": {"Small": {"value": {"name": "a"}, "summary": "small"}},
            }
        },
    }
    assert operation["responses"]["201"] == {
        "content": {
            "application/json": {
                "schema": reference("schemas", "ThingAnswer"),
                "examples": {
                    "Example": {"value": {"data": {"id": "1", "name": "a"}}, "summary": "example"}
                },
            }
        },
        "description": "Made.",
        "headers": {
            name: reference("headers", name)
            for name in (
                "Service-Request-Id",
                "Service-TestMode",
                "Service-Ignored",
                "RateLimit",
                "RateLimit-Policy",
                "X-RateLimit-Limit",
                "X-RateLimit-Remaining",
                "X-RateLimit-Reset",
                "Idempotent-Replayed",
            )
        },
    }


def test_every_reference_resolves(document):
    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)

    for target in set(walk(document)):
        found = document
        for step in target.removeprefix("#/").split("/"):
            found = found[step]


def test_document_is_openapi_31(document):
    assert document["openapi"] == "3.1.1"
    validate_schema(document)
