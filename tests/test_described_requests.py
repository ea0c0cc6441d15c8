"""What the description says of requests, tried with every operation."""

import json
from typing import Any

import pytest
from django.test import Client

from tests.description import Operation, description
from tests.example_requests import ExampleRequest, example_requests
from tests.local import LocalCaller
from tests.world import Answer

OPERATIONS = description().operations
# But what a provider sends, whose keys are its own.
WITH_JSON = [
    each
    for each in OPERATIONS
    if "application/json" in each.content.get("requestBody", {}).get("content", {})
    and "/notifications/" not in each.path
]
WITHOUT_NEED_OF_BODY = [
    each
    for each in OPERATIONS
    if each.method in ("POST", "PUT", "PATCH")
    and not each.content.get("requestBody", {}).get("required")
]
# A typing error in one of these would let somebody do more than was meant.
GRANTS = {
    *("/v2/apps/{slug}/members", "/v2/auth", "/v2/credentials"),
    "/v2/calendars/clients/{provider}",
}

pytestmark = pytest.mark.every_case


def first_request(example_app: Any, operation: Operation) -> ExampleRequest:
    return next(example_requests(*example_app, operation))


def is_always_strict(operation: Operation) -> bool:
    """Also PUT of a booking: no key of it is ignored."""
    return (
        operation.path in GRANTS
        or operation.path.startswith("/v2/webhooks")
        or operation.path == "/v2/bookings/{booking_id}"
    )


def has_parameter(operation: Operation, name: str) -> bool:
    parameters = map(description().resolve, operation.content.get("parameters", []))
    return any(each["name"] == name for each in parameters)


# --- Keys -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_operation_needs_a_key_if_its_security_says_so(
    operation: Operation, db: None, example_app: Any
) -> None:
    request = first_request(example_app, operation)

    answer = LocalCaller().call(request.method, request.path, request.body)

    if operation.content["security"] == []:
        assert answer.status < 400, answer.content
    else:
        assert (answer.status, answer.json["code"]) == (401, "unauthenticated")


# --- Bodies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("operation", WITHOUT_NEED_OF_BODY, ids=str)
def test_body_that_is_not_required_may_be_missing(
    operation: Operation, db: None, example_app: Any
) -> None:
    request = first_request(example_app, operation)

    answer = Answer(Client().generic(request.method, request.path, headers=request.caller.headers))

    assert answer.status < 400, answer.content


@pytest.mark.parametrize("operation", WITH_JSON, ids=str)
def test_empty_body_is_refused_where_the_schema_does(
    operation: Operation, db: None, example_app: Any
) -> None:
    """And only there. What refuses it requires a body."""
    request = first_request(example_app, operation)
    if "/by-external-id/" in request.path:
        request.send()  # what exists needs no more

    answer = request.caller.call(request.method, request.path, {})

    body = operation.content["requestBody"]
    fault = description().fault(description().body_schema(operation), {})
    assert (answer.status in (400, 422)) == (fault is not None), answer.content
    assert fault is None or body["required"]


@pytest.mark.parametrize("operation", WITH_JSON, ids=str)
def test_unknown_key_is_named_or_refused(operation: Operation, db: None, example_app: Any) -> None:
    request = first_request(example_app, operation)
    body = json.loads(request.body or b"{}") | {"a_typo": 1}
    strict = {"Prefer": "handling=strict"}

    refused = request.caller.call(request.method, request.path, body, strict)
    answer = request.caller.call(request.method, request.path, body)

    assert (refused.status, list(refused.json["errors"])) == (422, ["a_typo"])
    if is_always_strict(operation):
        assert (answer.status, answer.json["errors"]) == (422, refused.json["errors"])
    else:
        assert answer.status < 400, answer.content
        assert answer.headers["Service-Ignored"] == "a_typo"


# --- Objects --------------------------------------------------------------------------------------
def answers_object(operation: Operation) -> bool:
    """Whether it is a GET of one object, not a list. An export of much data is streamed."""
    (content,) = operation.content["responses"].get("200", {}).get("content", {"": {}}).values()
    name = content.get("schema", {}).get("$ref", "")
    return operation.method == "GET" and name.endswith("Answer") and "export" not in operation.path


OBJECTS = [each for each in OPERATIONS if answers_object(each)]
CHANGES = {each.path: each for each in OPERATIONS if each.method == "PUT"}
CHANGEABLE = [CHANGES[each.path] for each in OBJECTS if each.path in CHANGES]


@pytest.mark.parametrize("operation", OBJECTS, ids=str)
def test_unchanged_object_is_304(operation: Operation, db: None, example_app: Any) -> None:
    request = first_request(example_app, operation)

    first = request.send()
    again = request.caller.call(
        "GET", request.path, headers={"If-None-Match": f'"x", W/{first.headers["ETag"]}'}
    )

    assert has_parameter(operation, "If-None-Match")
    assert {"ETag"} <= operation.content["responses"]["200"]["headers"].keys()
    if operation.path != "/v2/challenge":  # another one each time
        assert (again.status, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]


@pytest.mark.parametrize("operation", CHANGEABLE, ids=str)
def test_patch_is_described_as_put(operation: Operation) -> None:
    patch = description().document["paths"][operation.path]["patch"]

    assert patch | {"operationId": ""} == operation.content | {"operationId": ""}


@pytest.mark.parametrize("operation", CHANGEABLE, ids=str)
def test_object_can_be_sent_back_as_it_is(operation: Operation, db: None, example_app: Any) -> None:
    request = first_request(example_app, operation)
    shown = request.caller.get(request.path)

    for method in ("PUT", "PATCH"):
        headers = {"Prefer": "handling=strict", "If-Match": shown.headers["ETag"]}
        answer = request.caller.call(method, request.path, shown.data, headers)

        assert (answer.status, answer.json.get("errors")) == (200, None)
        shown = request.caller.get(request.path)


@pytest.mark.parametrize("operation", CHANGEABLE, ids=str)
def test_other_value_of_what_cannot_change_is_refused(
    operation: Operation, db: None, example_app: Any
) -> None:
    request = first_request(example_app, operation)
    known = description().resolve(description().body_schema(operation))["properties"]
    shown = request.caller.get(request.path).data
    fixed = sorted(shown.keys() - known.keys() - {"updated_at"})
    assert fixed

    for name in fixed:
        answer = request.caller.call("PUT", request.path, {name: "another"})

        assert (answer.status, list(answer.json["errors"])) == (422, [name])
    assert request.caller.get(request.path).data == shown


COMPARED = [each for each in OPERATIONS if has_parameter(each, "If-Match")]
# They change an object of their own, by a link, or nothing.
NOT_COMPARED = {
    "POST /v2/apps/{slug}/members",
    "DELETE /v2/apps/{slug}/members/{member_id}",
    "POST /v2/bookings/{booking_id}/external_action/{action}",
    "POST /v2/calendars/{calendar_id}/feed",
    "DELETE /v2/calendars/{calendar_id}/feed",
    "POST /v2/calendars/{calendar_id}/test",
    "POST /v2/resources/{resource_id}/password",
    "POST /v2/templates/{template_slug}/preview",
}


def changed_object(operation: Operation) -> str:
    """The path of the object that is changed, or below which something is: `GET` shows it."""
    paths = [each.path for each in OBJECTS if "{" in each.path]
    return next((path for path in paths if f"{operation.path}/".startswith(f"{path}/")), "")


@pytest.mark.parametrize("operation", COMPARED, ids=str)
def test_changes_of_an_object_and_below_it_need_its_etag(
    operation: Operation, db: None, example_app: Any
) -> None:
    request = first_request(example_app, operation)
    steps = len(changed_object(operation).split("/"))
    shown_at = "/".join(request.path.split("?")[0].split("/")[:steps])
    before = request.caller.get(shown_at) if changed_object(operation) else None

    answer = request.caller.call(
        operation.method, request.path, request.body, {"If-Match": '"other"'}
    )

    assert (answer.status, answer.json["code"]) == (412, "precondition_failed")
    assert before is None or request.caller.get(shown_at).content == before.content


def test_every_change_of_an_object_or_below_it_is_compared() -> None:
    writes = {
        str(each) for each in OPERATIONS if each.method != "GET" and changed_object(each)
    } - NOT_COMPARED
    by_external_id = {str(each) for each in COMPARED if "/by-external-id/" in each.path}

    assert {str(each) for each in COMPARED} == writes | by_external_id
