"""docs/api-coverage.md names tests that exist, for every endpoint of the description."""

import ast
import re
import tomllib
from typing import Any

from common.errors import STATUS
from tests.description import description
from tests.services import ROOT

PAGE = ROOT / "docs" / "api-coverage.md"
ROW = re.compile(r"^\| (.+) \| (.+) \|$")
ENDPOINT = re.compile(r"`([A-Z]+ /\S*)`")
WORD = re.compile(r"`(\w+)`")
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
HEADS = ("rule", "endpoint")


def rows() -> list[tuple[str, str]]:
    """(rule, tests) of every line of every table."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    found = [ROW.fullmatch(line) for line in lines if not line.startswith("|---")]
    pairs = [(match[1], match[2]) if match else ("", "") for match in found]
    return [pair for pair in pairs if pair[0] not in HEADS]


def names_in(path: str) -> set[str]:
    file = ROOT / "tests" / path
    if not file.is_file():
        return set()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return {one.name for one in ast.parse(file.read_text()).body if isinstance(one, functions)}


def test_every_rule_is_proved_by_a_test_that_exists() -> None:
    named = {rule: TEST.findall(tests) for rule, tests in rows()}
    wanted = {place for places in named.values() for place in places}
    known = {path: names_in(path) for path in {path for path, _ in wanted}}

    assert {rule for rule, places in named.items() if not rule or not places} == set()
    assert {place for place in wanted if place[1] not in known[place[0]]} == set()


def test_every_rule_stands_once() -> None:
    rules = [rule for rule, _ in rows()]

    assert sorted(rules) == sorted(set(rules))


def test_every_endpoint_is_named() -> None:
    found = [ENDPOINT.fullmatch(rule) for rule, _ in rows()]
    endpoints = {match[1] for match in found if match}

    assert endpoints == {str(operation) for operation in description().operations}


def test_every_code_of_a_refusal_is_named() -> None:
    named = {word for rule, _ in rows() for word in WORD.findall(rule)}

    assert STATUS.keys() - named == set()


def keys_of(node: Any) -> set[str]:
    """Every key of a body, and every query parameter, below a node of the description."""
    if isinstance(node, list):
        return set().union(*map(keys_of, node))
    if not isinstance(node, dict):
        return set()
    own = node.get("properties")
    found = set(own) if isinstance(own, dict) else set()
    if node.get("in") == "query":
        found.add(node["name"])
    return found.union(*map(keys_of, node.values()))


def test_every_key_of_the_description_is_named_by_a_test() -> None:
    """As `"key"`, or as an argument `key=`; whether it is compared is for people to see."""
    text = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = {one[1] or one[2] for one in re.finditer(r"""["']([\w.]+)["']|\b(\w+)=""", text)}

    assert keys_of(description().document) - named == set()


def test_exceptions_of_schemathesis_name_operations_that_exist() -> None:
    config = tomllib.loads((ROOT / "tests/schemathesis.toml").read_text())
    named = {operation["include-operation-id"] for operation in config["operations"]}

    known = {operation.content["operationId"] for operation in description().operations}
    assert (len(named), named - known) == (len(config["operations"]), set())
