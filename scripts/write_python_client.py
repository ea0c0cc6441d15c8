"""Writes the generated modules of sdk/python: the types of docs/openapi.json, and the synchronous
client, which is the asynchronous one without its `await`.

    python scripts/write_python_client.py     # after a change of the API or of aio.py
"""

import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sdk" / "python" / "scheduling_client"
SCHEMAS = "#/components/schemas/"
METHODS = ("get", "put", "post", "delete")  # PATCH is another name of PUT
ENVELOPE = re.compile(r"(Answer|Page|List|Lists)$")
AN_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")

Json = dict[str, Any]

HEAD = '"""{text}\n\nMade by scripts/write_python_client.py: don\'t change it by hand."""\n\n'
NO_DELEGATION = "# ruff: noqa: UP028\n\n"  # asynchronous generators have no `yield from`
LONG_LINES = "# ruff: noqa: E501\n\n"
MODELS = """from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from scheduling_client.model import Model

"""
INPUTS = """from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, Required, TypedDict

"""


class Types:
    """The types of one direction: what the service answers, or what it is sent."""

    def __init__(self, document: Json, *, answers: bool) -> None:
        self.schemas: Json = document["components"]["schemas"]
        self.answers = answers
        self.named: dict[str, str] = {}  # the text of each class, by its name

    def name(self, reference: str) -> str:
        """Return the name of a schema's type, and write its class if it is new."""
        name = reference.removeprefix(SCHEMAS)
        schema = self.schemas[name]
        if "properties" not in schema and "anyOf" in schema:
            return self.expression(schema)
        if schema.get("type") == "string":
            return "str"
        if name not in self.named:
            self.named[name] = ""  # a schema may contain itself
            self.named[name] = self.class_text(name, schema)
        return name

    def class_text(self, name: str, schema: Json, *, is_called: bool = False) -> str:
        """`is_called`: the keys are arguments of a method, which can't be `from`."""
        if schema.get("maxProperties") == 1:  # one key of many: kept as JSON
            return f"{name} = dict[str, Any]\n"
        properties = schema.get("properties", {})
        if not self.answers and not is_called and any(map(keyword.iskeyword, properties)):
            return self.functional_text(name, schema)
        base = "Model" if self.answers else "TypedDict, total=False"
        lines = [f"class {name}({base}):", *docstring(schema.get("description", ""))]
        required = schema.get("required", ())
        for key, value in properties.items():
            lines.append(f"    {attribute(key)}: {self.field(value, key in required)}")
        if len(lines) == 1:
            lines.append("    pass")
        return "\n".join(lines) + "\n"

    def functional_text(self, name: str, schema: Json) -> str:
        required = schema.get("required", ())
        fields = {
            key: self.field(value, key in required) for key, value in schema["properties"].items()
        }
        return f"{name} = TypedDict({name!r}, {fields!r}, total=False)\n"

    def field(self, schema: Json, is_required: bool) -> str:
        expression = self.expression(schema)
        if not self.answers:
            return f"Required[{expression}]" if is_required else expression
        return expression if is_required or "None" in parts(expression) else f"{expression} | None"

    def expression(self, schema: Json) -> str:
        """Return a type expression of Python."""
        if "$ref" in schema:
            return self.name(schema["$ref"])
        if "allOf" in schema:
            (only,) = schema["allOf"]
            return self.expression(only)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return union(self.expression(each) for each in schema[key])
        if "enum" in schema:
            values = [value for value in schema["enum"] if value is not None]
            literal = f"Literal[{', '.join(json.dumps(value) for value in values)}]"
            return union([literal, "None"] if None in schema["enum"] else [literal])
        kinds = schema.get("type", "object")
        return union(
            self.kind(kind, schema) for kind in (kinds if isinstance(kinds, list) else [kinds])
        )

    def kind(self, kind: str, schema: Json) -> str:
        match kind:
            case "array":
                items = self.expression(schema.get("items", {}))
                return f"list[{items}]" if self.answers else f"Sequence[{items}]"
            case "object":
                value = schema.get("additionalProperties")
                inner = self.expression(value) if isinstance(value, dict) and value else "Any"
                return f"dict[str, {inner}]" if self.answers else f"Mapping[str, {inner}]"
            case "string":
                return self.text(schema)
        return {"integer": "int", "number": "float", "boolean": "bool", "null": "None"}[kind]

    def text(self, schema: Json) -> str:
        pattern = schema.get("pattern", "")
        if schema.get("format") == "date":
            return "date" if self.answers else "date | str"
        if schema.get("format") == "date-time" or pattern.startswith(
            "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"
        ):
            return "datetime" if self.answers else "datetime | str"
        if self.answers:
            return "str"
        if pattern.startswith("^(19[7-9][0-9]|2") or any(
            AN_INSTANT.match(str(example)) for example in schema.get("examples", ())
        ):
            return "datetime | date | str"
        # Several values with commas between them: a list is sent as such a text.
        return "str | Sequence[str]" if ", *(" in pattern or ",(" in pattern else "str"


def parts(expression: str) -> list[str]:
    return expression.split(" | ")


def union(expressions: Any) -> str:
    """`A | B`, each once and None last."""
    found = dict.fromkeys(part for each in expressions for part in split_union(each))
    found.update({"None": found.pop("None")} if "None" in found else {})
    return " | ".join(found)


def split_union(expression: str) -> list[str]:
    """The alternatives outside of brackets."""
    found, depth = [""], 0
    for word in re.split(r"( \| |\[|\])", expression):
        depth += (word == "[") - (word == "]")
        if word == " | " and not depth:
            found.append("")
        else:
            found[-1] += word
    return found


def attribute(key: str) -> str:
    """`from` is no name in Python: `from_`."""
    return f"{key}_" if keyword.iskeyword(key) else key


def docstring(text: str) -> list[str]:
    first = text.split("\n")[0].replace("\\", "\\\\")
    if not first:
        return []
    lines = textwrap.wrap(first, width=90, initial_indent='"""')
    end = ['"""'] if len(lines) > 1 else []
    lines[-1] += "" if end else '"""'
    return [*textwrap.indent("\n".join([*lines, *end]), "    ").splitlines(), ""]


def operations(document: Json) -> Iterator[Json]:
    for operation in document["paths"].values():
        yield from (operation[method] for method in METHODS if method in operation)


def body_schema(document: Json, holder: Json) -> Json | None:
    """Of a request or a response; None: it has no JSON."""
    if "$ref" in holder:
        section, name = holder["$ref"].split("/")[-2:]
        holder = document["components"][section][name]
    return holder.get("content", {}).get("application/json", {}).get("schema")


def write_models(document: Json) -> str:
    types = Types(document, answers=True)
    roots = [
        body_schema(document, response)
        for operation in operations(document)
        for status, response in operation["responses"].items()
        if status < "300"
    ]
    roots += [
        body_schema(document, call["post"]["requestBody"]) for call in document["webhooks"].values()
    ]
    for schema in filter(None, roots):
        content = types.schemas[schema["$ref"].removeprefix(SCHEMAS)] if "$ref" in schema else {}
        is_envelope = ENVELOPE.search(schema.get("$ref", "")) and "data" in content["properties"]
        types.expression(content["properties"]["data"] if is_envelope else schema)
    return HEAD.format(text="What the service answers.") + MODELS + classes(types)


def write_inputs(document: Json) -> str:
    types = Types(document, answers=False)
    for operation in operations(document):
        body = body_schema(document, operation.get("requestBody", {}))
        if body and "$ref" in body:
            called = body["$ref"].removeprefix(SCHEMAS)
            if "properties" in types.schemas[called]:
                schema = types.schemas[called]
                types.named[called] = types.class_text(called, schema, is_called=True)
        name = operation["operationId"][0].upper() + operation["operationId"][1:]
        query = list(query_parameters(document, operation))
        if query and name.startswith(("List", "Get")):
            properties = {each["name"]: each["schema"] for each in query}
            required = [each["name"] for each in query if each.get("required")]
            schema = {"properties": properties, "required": required}
            types.named[name] = types.class_text(name, schema, is_called=True)
    return HEAD.format(text="What the service is sent.") + LONG_LINES + INPUTS + classes(types)


def query_parameters(document: Json, operation: Json) -> Iterator[Json]:
    for parameter in operation.get("parameters", ()):
        if "$ref" in parameter:
            name = parameter["$ref"].rsplit("/", 1)[-1]
            parameter = document["components"]["parameters"][name]
        if parameter["in"] == "query":
            yield parameter


def classes(types: Types) -> str:
    return "\n\n".join(types.named[name] for name in sorted(types.named))


SYNCHRONOUS = (
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Iterable|Generator)\b", r"\1"),
    (r"\bAsync(?=[A-Z]\w*)", ""),
    (r"\bhttpx\.Async", "httpx."),
    (r"__a(iter|next|enter|exit)__", r"__\1__"),
    (r"\banext\(", "next("),
    (r"\baclose\b", "close"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"^import asyncio$", "import time"),
)


def write_synchronous(source: str) -> str:
    code = source.split('"""', 2)[2].lstrip("\n")
    for pattern, replacement in SYNCHRONOUS:
        code = re.sub(pattern, replacement, code, flags=re.MULTILINE)
    return (
        HEAD.format(text="The synchronous client: aio.py without its `await`.")
        + NO_DELEGATION
        + code
    )


def formatted(code: str, name: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    sort = [*ruff, "check", "--quiet", "--fix-only", "--select=I", "--stdin-filename", name, "-"]
    layout = [*ruff, "format", "--stdin-filename", name, "-"]
    for command in (sort, layout):
        done = subprocess.run(command, input=code, text=True, stdout=subprocess.PIPE, check=True)
        code = done.stdout
    return code


def generated_modules() -> dict[Path, str]:
    """Return the text of each generated module."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    version = HEAD.format(text="The service's version that the package was made for.")
    texts = {
        "version.py": f'{version}VERSION = "{document["info"]["version"]}"\n',
        "models.py": write_models(document),
        "inputs.py": write_inputs(document),
        "client.py": write_synchronous((PACKAGE / "aio.py").read_text()),
    }
    return {PACKAGE / name: formatted(text, str(PACKAGE / name)) for name, text in texts.items()}


if __name__ == "__main__":
    for path, text in generated_modules().items():
        path.write_text(text)
