import logging
import re
import uuid

import pytest
from django.test import Client

pytestmark = pytest.mark.urls("tests.common.urlconf")

BUSY = {"error": "The service is busy, try again.", "code": "unavailable", "request_id": "r1"}
NO_PAGE = {
    "error": "No endpoint has this path. Ids in paths are UUIDs.",
    "code": "not_found",
    "model": "Page",
    "request_id": "r1",
}
OURS = {"X-Request-Id": "r1"}


@pytest.fixture
def client():
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("sent", ["r1", "A-b_c.9", "x" * 100])
def test_valid_request_id_is_kept(client, sent):
    response = client.get("/plain/", headers={"X-Request-Id": sent})

    assert response["Service-Request-Id"] == sent


@pytest.mark.parametrize("sent", ["", "a b", "x" * 101, "é", "a\n", "<b>"])
def test_other_request_ids_are_replaced(client, sent):
    response = client.get("/plain/", headers={"X-Request-Id": sent})

    assert str(uuid.UUID(response["Service-Request-Id"])) == response["Service-Request-Id"]


# A refused or broken request closes connections that are past use: the process may hold one.
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("get", "/v2/things", 200),
        ("get", "/v2/nowhere", 404),
        ("get", "/nowhere", 404),
        ("get", "/v2/broken", 500),
        ("get", "/v2/plain-broken", 500),
        ("get", "/static/admin/css/base.css", 200),
        ("options", "/v2/things", 200),
    ],
)
def test_every_response_carries_the_request_id(client, method, path, status):
    headers = {**OURS, "Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
    response = getattr(client, method)(path, headers=headers)
    response.close()

    assert (response.status_code, response["Service-Request-Id"]) == (status, "r1")


@pytest.mark.parametrize("prefix", ["Service", "Timekit"])
def test_context_is_logged_on_one_short_line(client, caplog, prefix):
    caplog.set_level(logging.INFO, "common.middleware")
    client.get("/plain/", headers={**OURS, f"{prefix}-Context": "a\x85b" + "c" * 300})

    assert caplog.messages[0] == ("context='a\\x85b" + "c" * 197 + "'")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v2/things/", 200),
        ("/v2/things/?limit=3", 200),
        ("/v2/things//", 404),
        ("/v2/", 404),
        ("/v2", 404),
        ("/plain/", 200),
        ("/plain", 404),
    ],
)
def test_trailing_slash_of_each_path(client, path, status):
    assert client.get(path).status_code == status


@pytest.mark.parametrize(
    ("received", "status"),
    [("/v2/things/", 200), ("/v2/things/?limit=3", 200), ("/v2/things%2F", 404)],
)
def test_written_slash_is_part_of_an_id(client, received, status):
    assert client.get("/v2/things/", RAW_URI=received).status_code == status


def test_both_paths_have_equal_responses(client):
    assert client.get("/v2/things/").json() == client.get("/v2/things").json()


@pytest.mark.parametrize(
    "path",
    ["/v2/things/%00", "/v2/%00", "/v2/things/%FF", "/v2/%ED%A0%80/", "/plain/%00", "/v2/%25zz"],
)
def test_unreadable_path_is_not_found(client, path):
    response = client.get(path, headers=OURS)

    assert (response.status_code, response.json()) == (404, NO_PAGE)


# A refused or broken request closes connections that are past use: the process may hold one.
@pytest.mark.django_db
def test_database_outage_outside_the_api_views_is_503(client, caplog):
    response = client.get("/v2/plain-locked", headers=OURS)

    assert (response.status_code, response.json(), response["Retry-After"]) == (503, BUSY, "1")
    assert "database unavailable: database is locked" in caplog.messages


@pytest.mark.parametrize(
    ("path", "status", "error", "code"),
    [
        ("/v2/plain-late", 408, "The body did not arrive in time. Send the request again.",
         "request_timeout"),
        ("/v2/plain-cut-short", 400, "The body is incomplete.", "malformed"),
    ],
)  # fmt: skip
def test_malformed_body_outside_the_api_views_is_refused(client, caplog, path, status, error, code):
    response = client.post(path, headers=OURS)

    assert (response.status_code, response.json()) == (
        status,
        {"error": error, "code": code, "request_id": "r1"},
    )
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_error_pages_outside_the_api_are_html(client):
    assert re.search("<title>Page not found", client.get("/nowhere").text)


def test_bug_outside_the_api_views_is_not_disclosed(client):
    response = client.get("/v2/plain-broken", headers=OURS)

    assert (response.status_code, response.json()) == (
        500,
        {"error": "Something went wrong on our side.", "code": "internal", "request_id": "r1"},
    )


# --- Homes ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("named", "status"), [("0", 200), ("7", 421), ("", 421), ("00", 421)])
@pytest.mark.parametrize("path", ["/v2/things", "/plain/", "/healthz"])
def test_request_for_another_home_is_refused(client, named, status, path):
    response = client.get(path, headers={**OURS, "Service-Home": named})

    assert response.status_code == (404 if (path, status) == ("/healthz", 200) else status)
    if status == 421:
        assert response.json() == {
            "error": "The request is for another home. Send it again, on a new connection.",
            "code": "misdirected",
            "request_id": "r1",
        }
