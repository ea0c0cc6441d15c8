from typing import ClassVar

import psycopg
import pytest
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.db import DatabaseError, DataError, InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions as drf

from common import errors

CODES = {
    400: ["malformed"],
    401: ["unauthenticated", "second_factor_required"],
    403: ["forbidden", "address_not_allowed"],
    404: ["not_found"],
    405: ["method_not_allowed"],
    406: ["not_acceptable"],
    408: ["request_timeout"],
    409: [
        "slot_taken",
        "not_available",
        "action_not_allowed",
        "policy",
        "hold_expired",
        "group_full",
        "in_use",
        "outdated",
        "already_exists",
        "idempotency_in_progress",
    ],
    410: ["cursor_expired"],
    412: ["precondition_failed"],
    413: ["too_large"],
    415: ["unsupported_media_type"],
    421: ["misdirected"],
    422: ["idempotency_mismatch", "invalid"],
    424: ["not_attempted", "not_kept"],
    429: ["rate_limited"],
    500: ["internal"],
    503: ["unavailable"],
}


class Request:
    request_id = "r1"
    META: ClassVar[dict[str, str]] = {}


def test_status_table_matches_the_contract():
    assert {code: status for status, codes in CODES.items() for code in codes} == errors.STATUS


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (["Bad."], {"body": ["Bad."]}),
        ("Bad.", {"body": ["Bad."]}),
        ({"name": ["Bad.", "Worse."]}, {"name": ["Bad.", "Worse."]}),
        ({"non_field_errors": ["Bad."]}, {"body": ["Bad."]}),
        ({"event": {"non_field_errors": ["Bad."]}}, {"event": ["Bad."]}),
        ({"event": {"start": ["Bad."], "non_field_errors": ["Odd."]}},
         {"event.start": ["Bad."], "event": ["Odd."]}),
        ({"notes": [{}, {"when": {"unit": ["Bad."]}}]}, {"notes.1.when.unit": ["Bad."]}),
        ({"notes": {0: ["Bad."], 2: {"when": ["Odd."]}}},
         {"notes.0": ["Bad."], "notes.2.when": ["Odd."]}),
        ({"a.b": ["One."], "a": {"b": ["Two."]}}, {"a.b": ["One.", "Two."]}),
        ({}, {}),
    ],
)  # fmt: skip
def test_flatten_errors(detail, expected):
    assert errors.flatten_errors(detail) == expected


# A refused or broken request closes connections that are past use: the process may hold one.
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("exc", "status", "body", "headers"),
    [
        (errors.Malformed("No."), 400, {"error": "No.", "code": "malformed"}, {}),
        (
            errors.Unauthenticated(),
            401,
            {"error": "Valid credentials are required.", "code": "unauthenticated"},
            {"WWW-Authenticate": 'Basic realm="api", charset="UTF-8"'},
        ),
        (
            errors.NotFound("Booking"),
            404,
            {"error": "Booking not found.", "code": "not_found", "model": "Booking"},
            {},
        ),
        (
            errors.Invalid.at("event.start", "Bad."),
            422,
            {"error": "event.start: Bad.", "code": "invalid", "errors": {"event.start": ["Bad."]}},
            {},
        ),
        (
            errors.InUse("It is in use.", booking_id="b"),
            409,
            {"error": "It is in use.", "code": "in_use", "booking_id": "b"},
            {},
        ),
        (
            errors.RateLimited(2.1),
            429,
            {"error": "Too many requests.", "code": "rate_limited"},
            {"Retry-After": "3"},
        ),
        (
            drf.ValidationError({"name": ["Bad."]}),
            422,
            {"error": "name: Bad.", "code": "invalid", "errors": {"name": ["Bad."]}},
            {},
        ),
        (
            OperationalError("database is locked"),
            503,
            {"error": "The service is busy, try again.", "code": "unavailable"},
            {"Retry-After": "1"},
        ),
    ],
)
def test_whole_exception_response(exc, status, body, headers):
    response = errors.exception_response(exc, {"request": Request()})

    assert response.status_code == status
    assert response.data == {**body, "request_id": "r1"}
    assert dict(response.headers) == {"Content-Type": "text/html; charset=utf-8", **headers}


def of_postgresql(kind):
    """The server's error as Django raises it."""
    error = DatabaseError("as the server says it")
    error.__cause__ = kind()
    return error


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (drf.ParseError(), "malformed"),
        (drf.NotAuthenticated(), "unauthenticated"),
        (drf.AuthenticationFailed(), "unauthenticated"),
        (drf.PermissionDenied(), "forbidden"),
        (drf.NotFound(), "not_found"),
        (drf.MethodNotAllowed("PUT"), "method_not_allowed"),
        (drf.NotAcceptable(), "not_acceptable"),
        (drf.UnsupportedMediaType("text/xml"), "unsupported_media_type"),
        (drf.Throttled(5), "rate_limited"),
        (Http404(), "not_found"),
        (PermissionDenied(), "forbidden"),
        (SuspiciousOperation(), "malformed"),
        (BadRequest(), "malformed"),
        (UnreadablePostError(), "malformed"),
        (InterfaceError("the connection is closed"), "unavailable"),
        (OperationalError("no such table: x"), "internal"),
        (OperationalError('near "x": syntax error'), "internal"),
        (OperationalError("number of parameters must be between 0 and 65535"), "internal"),
        (of_postgresql(psycopg.errors.ReadOnlySqlTransaction), "unavailable"),
        (of_postgresql(psycopg.errors.IdleInTransactionSessionTimeout), "unavailable"),
        (of_postgresql(psycopg.errors.FeatureNotSupported), "internal"),
        (DataError("value too long"), "internal"),
        (ZeroDivisionError(), "internal"),
        (drf.APIException(), "internal"),
    ],
)
def test_refusal_of_framework_exceptions(exc, code):
    assert errors.refusal_of(exc).code == code


@pytest.mark.parametrize(
    ("exc", "marker"),
    [
        (DataError("INSERT INTO secret"), "UNEXPECTED_DB_ERROR"),
        (ZeroDivisionError("/secret/path"), "UNEXPECTED_ERROR"),
    ],
)
def test_bug_is_logged_and_not_disclosed(exc, marker, caplog):
    response = errors.exception_response(exc, {"request": Request()})

    assert response.data == {
        "error": "Something went wrong on our side.",
        "code": "internal",
        "request_id": "r1",
    }
    assert [(r.levelname, r.getMessage(), r.exc_info[1]) for r in caplog.records] == [
        ("ERROR", marker, exc)
    ]
