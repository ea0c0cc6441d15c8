from http import HTTPStatus

import pytest
from django.test import Client

pytestmark = pytest.mark.urls("tests.common.urlconf")

ID = "0190a5b8-0000-7000-8000-00000000000f"
JSON_BODY = {"content_type": "application/json"}


@pytest.fixture
def client():
    return Client(raise_request_exception=False, headers={"X-Request-Id": "r1"})


def refusal(error, code, **fields):
    return {"error": error, "code": code, **fields, "request_id": "r1"}


NO_PATH = "No endpoint has this path. Ids in paths are UUIDs."
NOT_JSON = "The service returns application/json only."
NOT_UTF8 = "The body must be application/json in UTF-8."
NOT_ENCODED = "The body must be sent without a Content-Encoding."
NOT_LOGGED_IN = refusal("Valid credentials are required.", "unauthenticated")


# How each refusal is brought about, and its answer.
REFUSALS = [
    ("get", f"/v2/things/{ID}", {}, 404,
     refusal("Thing not found.", "not_found", model="Thing")),
    ("get", "/v2/nowhere", {}, 404, refusal(NO_PATH, "not_found", model="Page")),
    ("get", "/v2/closed", {}, 401, NOT_LOGGED_IN),
    ("post", "/v2/closed", {}, 401, NOT_LOGGED_IN),
    ("patch", "/v2/things", {}, 405,
     refusal("The method PATCH is not allowed here.", "method_not_allowed")),
    ("trace", "/v2/things", {}, 405,
     refusal("The method TRACE is not allowed here.", "method_not_allowed")),
    ("get", "/v2/things", {"headers": {"Accept": "text/html"}}, 406,
     refusal(NOT_JSON, "not_acceptable")),
    ("get", "/v2/things?a=%FF", {}, 400,
     refusal("The query string is not valid UTF-8.", "malformed")),
    ("get", "/v2/things?" + "a&" * 1001, {}, 400,
     refusal("The request is malformed.", "malformed")),
    ("get", "/v2/things?limit=0", {}, 422,
     refusal("limit: Must be one integer from 1 to 1000.", "invalid",
             errors={"limit": ["Must be one integer from 1 to 1000."]})),
    ("get", "/v2/taken", {}, 409,
     refusal("The time is taken.", "slot_taken", conflicts=[{"start": "a", "end": "b"}])),
    ("get", "/v2/broken", {}, 500, refusal("Something went wrong on our side.", "internal")),
    ("get", "/v2/locked", {}, 503, refusal("The service is busy, try again.", "unavailable")),
    ("post", "/v2/ask", {"data": "<a/>", "content_type": "text/xml"}, 415,
     refusal(NOT_UTF8, "unsupported_media_type")),
    ("post", "/v2/ask", {"data": "{}", "content_type": "application/json; charset=utf-16"}, 415,
     refusal(NOT_UTF8, "unsupported_media_type")),
    ("post", "/v2/ask", {"data": {"a": "b"}}, 415, refusal(NOT_UTF8, "unsupported_media_type")),
    ("post", "/v2/ask",
     {"data": "{}", "headers": {"Content-Encoding": "gzip"}, **JSON_BODY}, 415,
     refusal(NOT_ENCODED, "unsupported_media_type")),
    ("post", "/v2/ask", {"data": "[1, 1", **JSON_BODY}, 400,
     refusal("The body is not valid JSON: Expecting ',' delimiter: line 1 column 6 (char 5).",
             "malformed")),
    ("post", "/v2/ask", {"data": " " * 262_145, **JSON_BODY}, 413,
     refusal("The body is larger than 256 kB.", "too_large")),
    ("post", "/v2/things",
     {"data": {"name": "a\n", "parent": 5, "times": [{}, {"start": 1}]}, **JSON_BODY}, 422,
     refusal("name: May not contain control characters or line breaks.", "invalid",
             errors={"name": ["May not contain control characters or line breaks."],
                     "parent": ["Must be a UUID."],
                     "times.0.start": ["This field is required."],
                     "times.1.start": ["Must be a string."]})),
]  # fmt: skip


# A refused or broken request closes connections that are past use: the process may hold one.
@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path", "options", "status", "body"), REFUSALS)
def test_whole_refusals(client, method, path, options, status, body):
    response = getattr(client, method)(path, **options)

    assert (response.status_code, response.json()) == (status, body)
    assert response["Content-Type"] == "application/json"
    assert response["Content-Length"] == str(len(response.content))


PROBLEM = "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "options", "status", "body"),
    [
        *[row for row in REFUSALS if row[3] != 406],  # who takes problem details takes JSON
        ("post", "/v2/plain-late", {}, 408, None),
        ("post", "/v2/plain-cut-short", {}, 400, None),
        ("get", "/v2/plain-locked", {}, 503, None),
        ("get", "/v2/plain-broken", {}, 500, None),
        ("get", "/v2/%FF", {}, 404, None),
        ("get", "/v2/things", {"headers": {"Service-Home": "7"}}, 421, None),
        ("get", "/v2/things", {"headers": {"Host": "elsewhere.example"}}, 400, None),
    ],
)
def test_every_refusal_can_be_problem_details(client, method, path, options, status, body):
    headers = options.get("headers", {})
    plain = getattr(client, method)(path, **options)
    asked = options | {"headers": headers | {"Accept": PROBLEM}}
    problem = getattr(client, method)(path, **asked)

    assert (plain.status_code, plain["Content-Type"]) == (status, "application/json")
    assert (problem.status_code, problem["Content-Type"]) == (status, PROBLEM)
    assert problem.json() == {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": plain.json()["error"],
        **plain.json(),
    }
    assert problem.headers.keys() == plain.headers.keys()


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({"data": '{"a": [1]}', **JSON_BODY}, {"a": [1]}),
        ({"data": "[]", **JSON_BODY}, []),
        ({"data": "", **JSON_BODY}, {}),
        ({"data": "", "content_type": "text/plain"}, {}),
        ({"data": '{"a": 1}', "content_type": ""}, {"a": 1}),
        ({"data": "[]", "headers": {"Content-Encoding": "Identity"}, **JSON_BODY}, []),
        ({"data": "", "headers": {"Content-Encoding": "gzip"}, **JSON_BODY}, {}),
    ],
)
def test_forms_of_bodies(client, sent, answer):
    response = client.post("/v2/ask", **sent)

    assert (response.status_code, response.json()) == (200, answer)


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "x", "gzip;q=0"])
def test_encoded_body_is_415(client, encoding):
    sent = {"data": '{"name": "a"}', "headers": {"Content-Encoding": encoding}, **JSON_BODY}

    response = client.post("/v2/things", **sent)

    assert (response.status_code, response.headers["Accept-Encoding"]) == (415, "identity")


def test_post_is_201(client):
    response = client.post("/v2/things", {"name": "a"}, **JSON_BODY)

    assert (response.status_code, response.json()) == (201, {"data": {"name": "a"}})


def test_delete_is_204(client):
    response = client.delete(f"/v2/things/{ID}")

    assert (response.status_code, response.content) == (204, b"")
    assert sorted(response.headers) == [
        "Cache-Control",
        "Cross-Origin-Opener-Policy",
        "Referrer-Policy",
        "Service-Request-Id",
        "Vary",
        "X-Content-Type-Options",
        "X-Frame-Options",
    ]


def test_head_is_get_without_body(client):
    head, get = client.head("/v2/things"), client.get("/v2/things")

    assert (head.status_code, head.content, dict(head.headers)) == (200, b"", dict(get.headers))


def test_options_lists_methods_without_credentials(client):
    response = client.options("/v2/closed")

    assert (response.status_code, response.content) == (200, b"")
    assert response["Allow"] == "GET, HEAD, OPTIONS"


def test_method_not_allowed_lists_methods(client):
    assert client.put("/v2/things")["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_unauthenticated_response_requests_basic(client):
    response = client.get("/v2/closed")

    assert response["WWW-Authenticate"] == 'Basic realm="api", charset="UTF-8"'


def test_errors_have_headers_of_the_view(client):
    assert client.get("/v2/closed")["X-Decorated"] == "yes"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/*", 200),
        ("text/html, application/xhtml+xml, */*;q=0.8", 200),
        ("*/*;q=0, application/json", 200),
        ("application/json;q=nonsense", 200),
        ("text/html", 406),
        ("text/*", 406),
        ("application/xml", 406),
        ("application/vnd.api+json", 406),
        (",,,;", 406),
    ],
)
def test_accept_headers_that_take_json(client, accept, status):
    response = client.get("/v2/things", headers={"Accept": accept})

    assert (response.status_code, response["Content-Type"]) == (status, "application/json")
