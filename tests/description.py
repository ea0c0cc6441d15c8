"""The API's description as tests use it: does an answer look as it says?

An answer is held to more than the description asks: a key that it does not name is a fault too.
"""

import copy
import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from common.openapi.document import document_bytes

Json = dict[str, Any]
METHODS = ("get", "put", "post", "delete", "patch", "options", "head", "trace")


class Operation(NamedTuple):
    method: str
    path: str
    content: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Description:
    def __init__(self, document: Json) -> None:
        self.document = document
        self.closed = closed(document)
        self.validators: dict[tuple[str, ...], Any] = {}

    @cached_property
    def operations(self) -> list[Operation]:
        return [
            Operation(method.upper(), path, content)
            for path, item in self.document["paths"].items()
            for method, content in item.items()
            if method in METHODS
        ]

    def resolve(self, node: Json) -> Json:
        """What a `$ref` points at, else the node itself."""
        while "$ref" in node:
            found: Any = self.document
            for step in node["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            node = found
        return node

    def operation_at(self, method: str, path: str) -> Operation | None:
        """The operation of a real path, without its query; a path of words wins."""
        path = path.split("?")[0].rstrip("/")
        fitting = [
            operation
            for operation in self.operations
            if operation.method == method and template_pattern(operation.path).fullmatch(path)
        ]
        return min(fitting, key=lambda one: one.path.count("{"), default=None)

    def parts(self, schema: Json) -> list[Json]:
        """What a schema is put together from, or may be instead."""
        return [one for key in ("allOf", "anyOf", "oneOf") for one in schema.get(key, [])]

    def body_schema(self, operation: Operation) -> Json:
        (content,) = operation.content["requestBody"]["content"].values()
        return content["schema"]

    def fault(self, schema: Json, value: Any) -> str | None:
        """Why the value does not fit a schema of the document; None: it does."""
        return first_fault(self.validator(("schema", repr(schema)), schema), value)

    def validator(self, key: tuple[str, ...], schema: Json) -> Any:
        """Of one of the document's schemas, compiled once."""
        if key not in self.validators:
            self.validators[key] = jsonschema_rs.Draft202012Validator(
                closed(schema) | {"components": self.closed["components"]}, validate_formats=True
            )
        return self.validators[key]

    def answer_fault(self, method: str, path: str, status: int, body: Any) -> str | None:
        """Why an answer is not as described; None: it is."""
        operation = self.operation_at(method, path)
        if operation is None:
            return f"{method} {path} is not described"
        response = operation.content["responses"].get(str(status))
        if response is None:
            return f"{operation}: the status {status} is not described"
        content = self.resolve(response).get("content")
        if content is not None and "application/json" not in content:
            return None if body is None else f"{operation} {status}: no page"
        if content is None or body is None:
            return None if content is body is None else f"{operation} {status}: body or no body"
        key = (operation.method, operation.path, str(status))
        fault = first_fault(self.validator(key, content["application/json"]["schema"]), body)
        return fault and f"{operation} {status}: {fault}"


def first_fault(validator: Any, value: Any) -> str | None:
    error = next(validator.iter_errors(value), None)
    if error is None:
        return None
    return f"{'/'.join(map(str, error.instance_path))}: {error.message:.500}"


@cache
def template_pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


def closed(node: Any) -> Any:
    """The same schemas without room for keys that they do not name."""
    if isinstance(node, list):
        return [closed(value) for value in node]
    if not isinstance(node, dict):
        return node
    node = {key: closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and "type" in node:
        node.setdefault("additionalProperties", False)
    return node


def subschemas(node: Any) -> Iterator[Json]:
    """Every schema of the document, outermost first."""
    if isinstance(node, dict):
        if isinstance(node.get("schema"), dict):
            yield node["schema"]
        yield from node.get("schemas", {}).values() if "securitySchemes" in node else ()
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from subschemas(value)


@cache
def description() -> Description:
    return Description(orjson.loads(document_bytes()))


def examples_of(content: Json) -> dict[str, Any]:
    """name -> value of the examples of a media type; copies, to be changed freely."""
    examples = content.get("examples", {})
    return {name: copy.deepcopy(example["value"]) for name, example in examples.items()}
