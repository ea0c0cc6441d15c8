"""/v2/openapi.json: true, whole, stable, and with examples that work."""

import json
import re
import tomllib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from bookings.serializers.responses import WHOLE_BOOKING_EXAMPLE
from common.api.views import ApiView
from common.errors import STATUS
from notifications.planning import WEBHOOK_KINDS
from notifications.webhooks.bodies import CALL_EXAMPLE
from notifications.webhooks.signing import new_secret, signature_headers
from scripts.write_python_client import generated_modules
from tests.description import Operation, description, examples_of, subschemas
from tests.example_requests import example_requests
from tests.services import ROOT

# Pages; /mcp, whose tools describe themselves; OAuth, which /.well-known/oauth-authorization-server
# describes; and what programs read before they know the API.
NO_DESCRIPTION = ("/admin/", "/docs", "/book/", "/mcp", "/oauth/", "/.well-known/", "/llms.txt")
OPERATIONS = description().operations
ALWAYS = {"400", "401", "403", "404", "405", "406", "422", "429", "500", "503"}
PUBLIC = {"405", "500", "503"}
# What can also be accepted.
WITH_FURTHER_SUCCESS = {"POST /v2/bookings", "POST /v2/calendars/notifications/microsoft"}
# What only leads to another page.
REDIRECTS = {"GET /v2/calendars/callback"}
# What can be sent without the body that the operation has.
WITH_OPTIONAL_BODY = {
    "POST /v2/bookings/{booking_id}/{action}",
    "PUT /v2/bookings/{booking_id}/{action}",
    "POST /v2/calendars/{calendar_id}/feed",
    "POST /v2/templates/{template_slug}/preview",
}
WITH_BODY = {"413", "415"}


def operation_id(operation: Operation) -> str:
    return str(operation)


def walk(patterns: list[Any], prefix: str = "/") -> Iterator[tuple[str, Any]]:
    """(path as the description writes it, callback) of every URL pattern below."""
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield path, pattern.callback


def described_form(path: str) -> str:
    """`/v2/events/<uuid:event_id>` -> `/v2/events/{event_id}`."""
    parts = [part.split(":")[-1] for part in path.replace(">", "}").split("<")]
    return "{".join(parts)


def methods_of(callback: Any) -> list[str]:
    """The methods of a view, or those of a viewset's actions at this path."""
    actions = getattr(callback, "actions", None)
    return callback.cls().allowed_methods if actions is None else [*map(str.upper, actions)]


def views_of_this_service() -> dict[str, Any]:
    return {
        described_form(path): callback
        for path, callback in walk(get_resolver().url_patterns)
        if path != "/" and not path.startswith(NO_DESCRIPTION)
    }


# --- The document ---------------------------------------------------------------------------------
def test_served_document_is_the_committed_one():
    """If this fails: `manage.py write_openapi`, and read the difference before you commit it."""
    response = Client().get("/v2/openapi.json")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.content == (ROOT / "docs" / "openapi.json").read_bytes()


def test_python_client_has_the_types_of_the_document():
    """`manage.py write_openapi` writes them; after a change of aio.py, the script alone."""
    generated = generated_modules()

    assert {path: path.read_text() for path in generated} == generated


def test_unchanged_document_is_304():
    first = Client().get("/v2/openapi.json", headers={"Accept": "text/html"})
    again = Client().get("/v2/openapi.json", headers={"If-None-Match": first.headers["ETag"]})
    other = Client().get("/v2/openapi.json", headers={"If-None-Match": '"another"'})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert (other.status_code, other.content) == (200, first.content)


def test_document_needs_no_database_query(django_assert_num_queries, db):
    with django_assert_num_queries(0):
        response = Client().get("/v2/openapi.json")

    assert response.status_code == 200


def test_document_is_openapi_31():
    document = description().document

    assert document["openapi"].startswith("3.1.")
    validate_schema(document)
    for schema in subschemas(document):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_reference_resolves_and_every_component_is_used():
    document = description().document
    text = json.dumps(document)
    named = {
        f"#/components/{kind}/{name}"
        for kind, components in document["components"].items()
        for name in components
        if kind != "securitySchemes"
    }
    used = {piece.split('"')[0] for piece in text.split('"$ref": "')[1:]}

    assert used == named


def test_document_has_exactly_the_urls_and_methods():
    expected = {
        (method, path)
        for path, callback in views_of_this_service().items()
        for method in methods_of(callback)
        if method not in ("OPTIONS", "HEAD")
    }

    assert {(operation.method, operation.path) for operation in OPERATIONS} == expected
    assert all(issubclass(callback.cls, ApiView) for callback in views_of_this_service().values())


def patterns(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from patterns(value)


@pytest.mark.parametrize("pattern", sorted(set(patterns(description().document))))
def test_patterns_do_not_backtrack_exponentially(pattern):
    """Whoever checks input by our patterns must not hang: this test would."""
    for piece in (" ", "1", "a", "1a", "1 a ", "+ 1 a", "a.", "/", "?", ",attributes", "\t-1a"):
        re.search(pattern, piece * 1000 + "!")
        re.search(pattern, "https://" + piece * 1000 + "\\")


def test_names_of_operations_are_a_verb_and_a_noun():
    names = [operation.content["operationId"] for operation in OPERATIONS]

    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch("[a-z]+([A-Z][a-z]+)*", name)] == []


def test_names_of_the_operations_of_some_paths():
    paths = ("/v2/bookings", "/v2/schedules", "/v2/users", "/v2/webhooks")
    names = {
        str(operation): operation.content["operationId"]
        for operation in OPERATIONS
        if operation.path.startswith(paths)
    }

    assert names == {
        "PUT /v2/users/by-external-id/{external_id}": "putUserByExternalId",
        "PATCH /v2/users/by-external-id/{external_id}": "patchUserByExternalId",
        "GET /v2/bookings": "listBookings",
        "POST /v2/bookings": "createBooking",
        "GET /v2/bookings/{booking_id}": "retrieveBooking",
        "PUT /v2/bookings/{booking_id}": "updateBooking",
        "PATCH /v2/bookings/{booking_id}": "patchBooking",
        "DELETE /v2/bookings/{booking_id}": "deleteBooking",
        "POST /v2/bookings/{booking_id}/{action}": "applyBookingActionByPost",
        "PUT /v2/bookings/{booking_id}/{action}": "applyBookingAction",
        "GET /v2/bookings/{booking_id}/external_action/{action}": "showActionPage",
        "POST /v2/bookings/{booking_id}/external_action/{action}": "submitActionPage",
        "POST /v2/bookings/{booking_id}/reschedule": "rescheduleBooking",
        "PUT /v2/bookings/{booking_id}/reschedule": "rescheduleBookingByPut",
        "POST /v2/bookings/bulk": "createBookings",
        "PUT /v2/bookings/bulk": "updateBookings",
        "GET /v2/bookings/groups": "listGroups",
        "GET /v2/bookings/groups/{group_id}": "retrieveGroup",
        "POST /v2/bookings/reserve": "createHold",
        "DELETE /v2/bookings/reserve/{reservation_id}": "releaseHold",
        "PUT /v2/bookings/reserve/extend": "extendHold",
        "POST /v2/bookings/reserve/{reservation_id}/code": "sendNewCode",
        "POST /v2/bookings/reserve/{reservation_id}/verify": "verifyHold",
        "GET /v2/schedules": "listSchedules",
        "POST /v2/schedules": "createSchedule",
        "GET /v2/schedules/{schedule_id}": "retrieveSchedule",
        "PUT /v2/schedules/{schedule_id}": "updateSchedule",
        "PATCH /v2/schedules/{schedule_id}": "patchSchedule",
        "DELETE /v2/schedules/{schedule_id}": "deleteSchedule",
        "GET /v2/users": "listUsers",
        "POST /v2/users": "createUser",
        "GET /v2/users/{resource_id}": "retrieveUser",
        "PUT /v2/users/{resource_id}": "updateUser",
        "PATCH /v2/users/{resource_id}": "patchUser",
        "DELETE /v2/users/{resource_id}": "deleteUser",
        "POST /v2/users/resetpassword": "requestUserPassword",
        "GET /v2/users/timezone/{email}": "retrieveUserTimezone",
        "GET /v2/webhooks": "listWebhooks",
        "POST /v2/webhooks": "createWebhook",
        "GET /v2/webhooks/{webhook_id}": "retrieveWebhook",
        "PUT /v2/webhooks/{webhook_id}": "updateWebhook",
        "PATCH /v2/webhooks/{webhook_id}": "patchWebhook",
        "DELETE /v2/webhooks/{webhook_id}": "deleteWebhook",
        "GET /v2/webhooks/{webhook_id}/deliveries": "listWebhookDeliveries",
        "POST /v2/webhooks/{webhook_id}/rotate": "rotateWebhookSecret",
        "POST /v2/webhooks/{webhook_id}/test": "testWebhook",
    }


def test_the_server_is_the_public_address(settings):
    assert description().document["servers"] == [{"url": "/"}, {"url": settings.PUBLIC_URL}]


def test_every_webhook_call_is_described():
    webhooks = description().document["webhooks"]
    names = [item["post"]["operationId"] for item in webhooks.values()]

    assert set(webhooks) == {*WEBHOOK_KINDS, "booking.reminder", "webhook.test"}
    assert len(set(names)) == len(names)


def test_whole_webhook_call():
    call = description().document["webhooks"]["booking.cancelled_by_customer"]["post"]
    headers = {each["name"]: each for each in call["parameters"]}
    signed = signature_headers(message_id="1", timestamp=1, body=b"", secrets=[new_secret()])
    body = description().resolve(call["requestBody"])["content"]["application/json"]

    assert call["operationId"] == "onBookingCancelledByCustomer"
    assert call["summary"] == "A booking is cancelled by the customer"
    assert headers.keys() == {*signed, "Service-Event"}
    assert headers["webhook-id"] == {
        "name": "webhook-id",
        "in": "header",
        "description": "The delivery's id: the same in every attempt.",
        "required": True,
        "schema": {"type": "string"},
    }
    assert headers["Service-Event"]["schema"] == {
        "type": "string",
        "const": "booking.cancelled_by_customer",
    }
    assert body["schema"] == {"$ref": "#/components/schemas/BookingCall"}
    assert examples_of(body) == {"a booking": CALL_EXAMPLE}
    assert description().fault(body["schema"], CALL_EXAMPLE) is None
    assert "change" in str(description().fault(body["schema"], WHOLE_BOOKING_EXAMPLE))
    assert set(call["responses"]) == {"2XX", "410", "default"}


def test_event_notification_call_is_signed():
    call = description().document["webhooks"]["booking.reminder"]["post"]

    assert {each["name"]: each["required"] for each in call["parameters"]} == {
        "webhook-id": True,
        "webhook-timestamp": True,
        "webhook-signature": True,
        "Service-Event": True,
    }


def test_every_tag_is_explained_and_used():
    tags = {tag["name"] for tag in description().document["tags"] if tag["description"]}

    assert {tag for operation in OPERATIONS for tag in operation.content["tags"]} == tags


def test_only_findtime_is_deprecated():
    deprecated = {operation.path for operation in OPERATIONS if operation.content.get("deprecated")}

    assert deprecated == {"/v2/findtime", "/v2/findtime/bulk", "/v2/findtime/team"}


# --- For generated clients ------------------------------------------------------------------------
def test_every_success_is_a_named_schema():
    """Else clients name it after its operation: CreateBooking201Response."""
    inline = [
        (str(operation), status, kind)
        for operation in OPERATIONS
        for status, answer in operation.content["responses"].items()
        if status.startswith("2")
        for kind, content in answer.get("content", {}).items()
        if content["schema"].keys() != {"$ref"}
    ]

    assert inline == []


def test_responses_about_a_booking_have_two_names():
    schemas = description().document["components"]["schemas"]
    booking = {"$ref": "#/components/schemas/Booking"}

    assert schemas["BookingAnswer"] == {
        "type": "object",
        "properties": {"data": booking},
        "required": ["data"],
    }
    assert schemas["BookingPage"]["required"] == [
        *("total", "per_page", "current_page", "last_page", "first_page_url", "last_page_url"),
        *("next_page_url", "prev_page_url", "from", "to", "data"),
    ]
    assert schemas["BookingPage"]["properties"]["data"] == {"type": "array", "items": booking}


def test_bodies_are_required_or_optional():
    """Else OpenAPI Generator makes the body an optional argument behind the headers."""
    optional = {
        str(operation)
        for operation in OPERATIONS
        if not operation.content.get("requestBody", {"required": True}).get("required", False)
    }

    assert optional == WITH_OPTIONAL_BODY


def test_every_refusal_is_the_one_error() -> None:
    """But the report of /readyz, and the pages behind links."""
    others = {
        (str(operation), status, content["schema"]["$ref"].split("/")[-1])
        for operation in OPERATIONS
        for status, answer in operation.content["responses"].items()
        if status >= "400"
        for content in description().resolve(answer)["content"].values()
        if content["schema"] != {"$ref": "#/components/schemas/Error"}
    }
    error = description().document["components"]["schemas"]["Error"]

    assert {name for *_, name in others} == {"HtmlPage", "Readiness"}
    assert [found for found in others if "Readiness" in found] == [
        ("GET /readyz", "503", "Readiness")
    ]
    assert error["required"] == ["error", "code", "request_id"]
    assert error["properties"]["code"]["enum"] == list(STATUS)


INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")


def times_of(node: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and schema of each value of a body whose example is a time."""
    if isinstance(node, dict):
        examples = node.get("examples")
        if isinstance(examples, list) and any(INSTANT.match(str(one)) for one in examples):
            yield name, node
        for key, value in node.items():
            yield from times_of(value, key)
    if isinstance(node, list):
        for value in node:
            yield from times_of(value, name)


def test_every_time_of_a_body_is_a_date_time_or_a_text() -> None:
    """A date-time where it is one of RFC 3339, which `+0000` and wall time are not."""
    schemas = description().document["components"]["schemas"]
    times = [(name, schema) for name, schema in times_of(schemas) if "examples" in schema]

    others = [
        (name, schema)
        for name, schema in times
        if schema.get("type") not in ("string", ["string", "null"])
        or (schema.get("format") != "date-time" and "format" in schema)
    ]
    assert others == []
    assert {"start", "end", "created_at", "expires_at"} <= {name for name, _ in times}


def test_document_names_its_licence():
    info = description().document["info"]

    assert info["license"] == {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"}
    assert info["contact"] == {"name": "Scheduling and booking service"}


# --- Every operation ------------------------------------------------------------------------------
@pytest.mark.parametrize("operation", OPERATIONS, ids=operation_id)
def test_operation_has_summary_and_parameter_descriptions(operation):
    assert operation.content["summary"]
    for parameter in operation.content.get("parameters", []):
        assert description().resolve(parameter).get("description"), parameter


@pytest.mark.parametrize("operation", OPERATIONS, ids=operation_id)
def test_operation_lists_every_status(operation):
    public = operation.content["security"] == []
    expected = set(PUBLIC if public else ALWAYS)
    if operation.method in ("POST", "PUT", "PATCH") and not public:
        expected |= WITH_BODY

    answers = operation.content["responses"]

    assert expected <= set(answers)
    others = {"202"} if str(operation) in WITH_FURTHER_SUCCESS else set()
    others |= {"201"} if "/by-external-id/" in operation.path else set()
    good = "3" if str(operation) in REDIRECTS else "2"
    assert len({status for status in answers if status.startswith(good)} - others) == 1
    assert public or operation.content["security"] == [{"basic": []}, {"bearer": []}]


@pytest.mark.parametrize("operation", OPERATIONS, ids=operation_id)
def test_operation_knows_the_query_parameters_of_its_view(operation):
    callback = views_of_this_service()[operation.path]
    view = callback.cls(**getattr(callback, "initkwargs", {}))
    method = operation.method.lower()
    view.action = getattr(callback, "actions", {}).get(method)
    view.request = SimpleNamespace(method=operation.method)
    known = set(view.query_names())
    parameters = [description().resolve(one) for one in operation.content.get("parameters", [])]

    assert {parameter["name"] for parameter in parameters if parameter["in"] == "query"} == known


@pytest.mark.parametrize("operation", OPERATIONS, ids=operation_id)
def test_examples_fit_their_schemas(operation):
    bodies = []
    bodies += operation.content.get("requestBody", {}).get("content", {}).values()
    for answer in operation.content["responses"].values():
        bodies += description().resolve(answer).get("content", {}).values()

    for body in bodies:
        assert examples_of(body), body["schema"]
        for name, value in examples_of(body).items():
            assert description().fault(body["schema"], value) is None, name


def test_examples_of_components_are_valid():
    for name, schema in description().document["components"]["schemas"].items():
        for value in schema.get("examples", []):
            assert description().fault(schema, value) is None, name


# --- Named by tests -------------------------------------------------------------------------------
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


def text_of_tests(*, without: str = "") -> str:
    files = (ROOT / "tests").rglob("test_*.py")
    return "\n".join(file.read_text() for file in files if file.name != without)


def test_every_key_of_the_description_is_named_by_a_test():
    """As `"key"`, or as an argument `key=`; whether it is compared is for people to see."""
    text = text_of_tests()
    named = {one[1] or one[2] for one in re.finditer(r"""["']([\w.]+)["']|\b(\w+)=""", text)}

    assert keys_of(description().document) - named == set()


def test_every_code_of_an_error_is_named_by_a_test():
    """By another one than that which compares the table of codes."""
    named = re.findall(r'"(\w+)"', text_of_tests(without="test_errors.py"))

    assert STATUS.keys() - named == set()


def test_schemathesis_exceptions_name_existing_operations():
    config = tomllib.loads((ROOT / "tests/schemathesis.toml").read_text())
    named = {operation["include-operation-id"] for operation in config["operations"]}

    known = {operation.content["operationId"] for operation in OPERATIONS}
    assert (len(named), named - known) == (len(config["operations"]), set())


# --- Against the service --------------------------------------------------------------------------
NO_STORE = "private, no-store"
LINKS = ("bookings/{booking_id}/external_action/{action}", "resources/{resource_id}/password")
CACHED = {  # or not an answer of the API, or a page behind a signed link
    "GET /v2/openapi.json": "public, no-cache",
    "GET /v2/projects/hosted/{project_slug}": "public, max-age=60",
    "GET /v2/projects/embed/{project_id}": "private, max-age=60",  # shown to anybody, too
    "GET /v2/calendars/{calendar_id}/feed.ics": "private, no-cache",
    "GET /v2/calendars/callback": "no-store",
    **dict.fromkeys(("GET /healthz", "GET /readyz", "GET /metrics")),
    **{
        f"{method} /v2/{path}": "no-store"
        for method in ("GET", "POST")
        for path in (*LINKS, "customers/{customer_id}/unsubscribe")
    },
}
# The answer to a body, if the document names another one first.
EXPECTED = {"POST /v2/calendars/notifications/microsoft": "202"}


def described_headers(operation: Operation, status: str) -> list[str]:
    """Those that an answer of that status always carries."""
    headers = operation.content["responses"][status]["headers"]
    return [name for name in headers if description().resolve(headers[name]).get("required")]


@pytest.mark.every_case
@pytest.mark.both_databases
@pytest.mark.parametrize("operation", OPERATIONS, ids=operation_id)
def test_examples_are_accepted_and_answers_are_as_described(operation, db, example_app):
    expected = next(status for status in operation.content["responses"] if status < "400")
    expected = EXPECTED.get(str(operation), expected)
    expected = "201" if "/by-external-id/" in operation.path else expected
    for request in example_requests(*example_app, operation):
        answer = request.send()

        assert str(answer.status) == expected, (request.example, answer.content)
        fault = description().answer_fault(request.method, request.path, answer.status, answer.json)
        assert fault is None, (request.example, fault)
        for header in described_headers(operation, expected):
            assert header in answer.headers
        assert answer.headers.get("Cache-Control") == CACHED.get(str(operation), NO_STORE)
