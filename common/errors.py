"""Refusals of the service and their one JSON shape (api.md section 1, Errors).

Lower layers raise a `Refusal` named for the fact. This module has the HTTP status of each code and
translates the exceptions of Django, DRF and the database.
"""

import logging
import math
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, ClassVar

import orjson
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
)
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseServerError,
    UnreadablePostError,
)
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation.trans_real import parse_accept_lang_header
from django.views import defaults
from rest_framework import exceptions as drf
from rest_framework.response import Response

from common.messages import Message, find_message
from common.shipped_languages import SOURCE_LANGUAGE, closest_shipped

logger = logging.getLogger(__name__)

PROBLEM = "application/problem+json"

STATUS = {
    "malformed": 400,
    "unauthenticated": 401,
    "second_factor_required": 401,
    "forbidden": 403,
    "address_not_allowed": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "request_timeout": 408,
    "slot_taken": 409,
    "not_available": 409,
    "action_not_allowed": 409,
    "policy": 409,
    "hold_expired": 409,
    "group_full": 409,
    "in_use": 409,
    "already_exists": 409,
    "outdated": 409,
    "idempotency_in_progress": 409,
    "cursor_expired": 410,
    "precondition_failed": 412,
    "too_large": 413,
    "unsupported_media_type": 415,
    "misdirected": 421,
    "idempotency_mismatch": 422,
    "invalid": 422,
    "not_attempted": 424,
    "not_kept": 424,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
}

# SQLite calls a missing table or a bad statement an OperationalError too; those are bugs.
BUG_WORDS = ("no such ", "syntax error", "too many SQL variables", "number of parameters must be")

# Transient PostgreSQL errors that psycopg does not raise as OperationalError.
READ_ONLY = "25006"  # a standby, or a primary that accepts no more writes
SESSION_ENDED = frozenset({"25P03", "25P04"})  # idle in a transaction, or transaction timeout


class Refusal(Exception):
    """An error response: a sentence for a person, a code, and further fields.

    `SlotTaken("The time is taken.", conflicts=[...])` is a 409 with `conflicts` in the body.
    Subclasses set `code`, one of STATUS; `headers` are added to the response.
    """

    code: ClassVar[str] = "internal"

    def __init__(
        self, message: str, *, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})
        self.fields = fields

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def body(self, request_id: str) -> dict[str, Any]:
        return {
            "error": self.message,
            "code": self.code,
            **self.fields,
            "request_id": request_id,
        }


class Malformed(Refusal):
    code = "malformed"


BASIC_CHALLENGE = 'Basic realm="api", charset="UTF-8"'


class Unauthenticated(Refusal):
    """The same response for every cause, so that it does not reveal which accounts exist."""

    code = "unauthenticated"

    def __init__(self, message: str = "Valid credentials are required.") -> None:
        super().__init__(message, headers={"WWW-Authenticate": BASIC_CHALLENGE})


class SecondFactorRequired(Unauthenticated):
    """The password is right, but does not suffice."""

    code = "second_factor_required"


class Forbidden(Refusal):
    code = "forbidden"

    def __init__(
        self, message: str = "These credentials lack the required permission.", **fields: Any
    ) -> None:
        super().__init__(message, **fields)


class AddressNotAllowed(Refusal):
    """The key works in other networks than the client's."""

    code = "address_not_allowed"

    def __init__(self) -> None:
        super().__init__("This key can't be used from your network address.")


class NotFound(Refusal):
    """The object does not exist or belongs to another app."""

    code = "not_found"

    def __init__(self, model: str, message: str = "") -> None:
        super().__init__(message or f"{model} not found.", model=model)


class PathNotFound(NotFound):
    """No endpoint has the path: it is misspelt, or has a slug in place of an id."""

    def __init__(self) -> None:
        super().__init__("Page", "No endpoint has this path. Ids in paths are UUIDs.")


class MethodNotAllowed(Refusal):
    code = "method_not_allowed"

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        super().__init__(
            f"The method {method} is not allowed here.", headers={"Allow": ", ".join(allowed)}
        )


class NotAcceptable(Refusal):
    code = "not_acceptable"

    def __init__(self, message: str = "The service returns application/json only.") -> None:
        super().__init__(message)


class RequestTimeout(Refusal):
    code = "request_timeout"

    def __init__(self) -> None:
        super().__init__("The body did not arrive in time. Send the request again.")


class TooLarge(Refusal):
    code = "too_large"

    def __init__(self, message: str = "The body is larger than 256 kB.") -> None:
        super().__init__(message)


class Misdirected(Refusal):
    """A router sent the request to the wrong cell."""

    code = "misdirected"

    def __init__(self) -> None:
        super().__init__("The request is for another home. Send it again, on a new connection.")


class UnsupportedMediaType(Refusal):
    code = "unsupported_media_type"

    def __init__(
        self,
        message: str = "The body must be application/json in UTF-8.",
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, headers=headers)


class Invalid(Refusal):
    """Invalid values: `errors` maps dotted paths or names of query parameters to sentences."""

    code = "invalid"

    def __init__(
        self, errors: Mapping[str, list[str]], message: str | None = None, **fields: Any
    ) -> None:
        super().__init__(message or first_error(errors), errors=dict(errors), **fields)

    @classmethod
    def at(cls, path: str, message: str) -> "Invalid":
        """Make one invalid value: `Invalid.at("event.start", "Must be before the end.")`."""
        return cls({path: [message]})

    @classmethod
    def check_known(
        cls, path: str, items: Iterable[Any], known: Container[Any], message: str
    ) -> None:
        """Raise Invalid at `path.N` for each item of a list that is not known."""
        errors = {
            f"{path}.{position}": [message]
            for position, item in enumerate(items)
            if item not in known
        }
        if errors:
            raise cls(errors)


class AlreadyExists(Refusal):
    code = "already_exists"


@contextmanager
def taken_external_id_is_refused(model: str) -> Iterator[None]:
    """Raise AlreadyExists if the database refuses the `external_id` of another row of the model.

    model: its name in lower case. After AlreadyExists, the caller's transaction ends.
    """
    try:
        yield
    except IntegrityError as error:
        # PostgreSQL names the constraint, SQLite its columns.
        names = (f"{model}_external_id_once", f"{model}.external_id")
        if not any(name in str(error) for name in names):
            raise
        raise AlreadyExists(f"Another {model} has this external_id.") from error


class CursorExpired(Refusal):
    """What a cursor refers to is no longer stored."""

    code = "cursor_expired"

    def __init__(self) -> None:
        super().__init__("Changes after this cursor are no longer stored. Read everything anew.")


class PreconditionFailed(Refusal):
    code = "precondition_failed"

    def __init__(self) -> None:
        super().__init__("The object has changed: its ETag is not that of If-Match.")


class InUse(Refusal):
    code = "in_use"


class Outdated(Refusal):
    """The state that the request refers to has changed."""

    code = "outdated"


class RateLimited(Refusal):
    """`retry_after` in seconds, rounded up."""

    code = "rate_limited"

    def __init__(self, retry_after: float, message: str = "Too many requests.") -> None:
        super().__init__(message, headers=retry_header(retry_after))


class Unavailable(Refusal):
    """`retry_after` in seconds, rounded up."""

    code = "unavailable"

    def __init__(
        self, retry_after: float = 1, message: str = "The service is busy, try again."
    ) -> None:
        super().__init__(message, headers=retry_header(retry_after))


class Internal(Refusal):
    """A bug. The details are in the log only."""

    code = "internal"

    def __init__(self) -> None:
        super().__init__("Something went wrong on our side.")


def retry_header(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


_AT_PATH = "%(path)s: %(fault)s"


def first_error(errors: Mapping[str, list[str]]) -> str:
    for path, messages in errors.items():
        return Message(_AT_PATH, path=path, fault=messages[0])
    return "A value is invalid."


def flatten_errors(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Flatten DRF's nested error detail to dotted paths; errors of the whole body are at `body`.

    >>> flatten_errors({"event": {"start": ["Bad."], "non_field_errors": ["Odd."]}})
    {'event.start': ['Bad.'], 'event': ['Odd.']}
    """
    flat: dict[str, list[str]] = {}
    for step, value in error_items(detail):
        below = f"{path}.{step}".strip(".")
        if isinstance(value, (dict, list)):
            found = flatten_errors(value, below)
        else:
            found = {below or "body": [find_message(value)]}
        for key, messages in found.items():
            flat.setdefault(key, []).extend(messages)
    return flat


def error_items(detail: Any) -> Iterable[tuple[str, Any]]:
    """Return the (path step, value) pairs one level down; sentences have the step ""."""
    if isinstance(detail, dict):
        return [("" if k == "non_field_errors" else str(k), v) for k, v in detail.items()]
    if isinstance(detail, list):
        return [(str(i) if isinstance(v, (dict, list)) else "", v) for i, v in enumerate(detail)]
    return [("", detail)]


def unreadable_body(exc: BaseException) -> Refusal:
    """Return the refusal for an error of reading the body: it is late, or incomplete."""
    cause: BaseException | None = exc
    while cause:  # Django's UnreadablePostError has one, or two
        if isinstance(cause, TimeoutError):
            return RequestTimeout()
        cause = cause.__cause__
    return Malformed("The body is incomplete.")


# The first matching class applies.
TRANSLATIONS: list[tuple[type[Exception], Callable[[Any], Refusal]]] = [
    (Refusal, lambda exc: exc),
    (drf.ValidationError, lambda exc: Invalid(flatten_errors(exc.detail))),
    (drf.ParseError, lambda exc: Malformed(str(exc.detail))),
    (drf.NotAuthenticated, lambda exc: Unauthenticated()),
    (drf.AuthenticationFailed, lambda exc: Unauthenticated()),
    (drf.PermissionDenied, lambda exc: Forbidden()),
    (drf.NotFound, lambda exc: PathNotFound()),
    (drf.MethodNotAllowed, lambda exc: MethodNotAllowed(exc.args[0] if exc.args else "", ())),
    (drf.NotAcceptable, lambda exc: NotAcceptable()),
    (drf.UnsupportedMediaType, lambda exc: UnsupportedMediaType()),
    (drf.Throttled, lambda exc: RateLimited(exc.wait or 1)),
    (Http404, lambda exc: PathNotFound()),
    (PermissionDenied, lambda exc: Forbidden()),
    (SuspiciousOperation, lambda exc: Malformed("The request is malformed.")),
    (BadRequest, lambda exc: Malformed("The request is malformed.")),
    (UnreadablePostError, unreadable_body),
]


def sqlstate_of(exc: BaseException | None) -> str:
    """Return PostgreSQL's code of the error, else ""."""
    return getattr(getattr(exc, "__cause__", None), "sqlstate", None) or ""


def is_outage(exc: BaseException | None) -> bool:
    """Return whether the database is unavailable for now: locked, timed out, read-only, gone."""
    if isinstance(exc, (OperationalError, InterfaceError)):
        return not any(words in str(exc) for words in BUG_WORDS)
    return sqlstate_of(exc) in SESSION_ENDED or is_read_only(exc) or is_stale_plan(exc)


def is_read_only(exc: BaseException | None) -> bool:
    """Return whether PostgreSQL refused a write because the server or the session is read-only."""
    return sqlstate_of(exc) == READ_ONLY


def is_stale_plan(exc: BaseException | None) -> bool:
    """Return whether a prepared statement is outdated: a migration changed a column's type.

    Identified by the name of PostgreSQL's function, since the message is localised.
    """
    diagnostics = getattr(getattr(exc, "__cause__", None), "diag", None)
    return getattr(diagnostics, "source_function", None) == "RevalidateCachedQuery"


@contextmanager
def ignore_database_outage() -> Iterator[None]:
    """Ignore a database outage during a write that the request can do without."""
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise


def discard_connection(exc: BaseException) -> None:
    """After an error, close a connection that is unusable or would fail again.

    A session opened on a read-only server may stay read-only after the server has become writable.
    """
    if (is_read_only(exc) or is_stale_plan(exc)) and not connection.in_atomic_block:
        connection.close()
    elif is_outage(exc):
        close_old_connections()


def refusal_of(exc: Exception) -> Refusal:
    """Return the refusal for an exception; an unknown exception is a bug."""
    for kind, translate in TRANSLATIONS:
        if isinstance(exc, kind):
            return translate(exc)
    return Unavailable() if is_outage(exc) else Internal()


def set_request_id(request: HttpRequest, request_id: str) -> None:
    vars(request)["request_id"] = request_id


def request_id_of(request: HttpRequest | None) -> str:
    return getattr(request, "request_id", "")


def log_refusal(exc: Exception, refusal: Refusal, request: HttpRequest | None) -> None:
    """Log outages as warnings and bugs with their traceback; the client caused other refusals."""
    if refusal.code == "unavailable" and isinstance(exc, DatabaseError | InterfaceError):
        logger.warning("database unavailable: %s", exc)
    if refusal.code != "internal":
        return
    marker = "UNEXPECTED_DB_ERROR" if isinstance(exc, DatabaseError) else "UNEXPECTED_ERROR"
    logger.error(marker, exc_info=exc)
    # Error trackers and Django's test client subscribe to this signal.
    got_request_exception.send(sender=None, request=request)


def exception_response(exc: Exception, context: Mapping[str, Any]) -> Response:
    """Render any exception of a view as the API's error response: DRF's EXCEPTION_HANDLER."""
    request = context.get("request")
    refusal = refusal_of(exc)
    log_refusal(exc, refusal, request)
    discard_connection(exc)
    body = refusal.body(request_id_of(request))
    content_type = None
    if request is not None and accepts_problems(request):
        body, content_type = as_problem(refusal, body), PROBLEM
    return Response(body, status=refusal.status, headers=refusal.headers, content_type=content_type)


def json_error(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Render the same response outside of DRF's views, for middleware and Django's handlers."""
    body, content_type = refusal.body(request_id_of(request)), "application/json"
    if accepts_problems(request):
        body, content_type = as_problem(refusal, body), PROBLEM
    content = orjson.dumps(body)
    headers = {**refusal.headers, "Content-Length": str(len(content))}
    return HttpResponse(content, status=refusal.status, headers=headers, content_type=content_type)


def accepts_problems(request: HttpRequest) -> bool:
    """Return whether the client asks for errors as problem details (RFC 9457)."""
    return PROBLEM in request.META.get("HTTP_ACCEPT", "").lower()


def as_problem(refusal: Refusal, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an error with the members of RFC 9457, which begin it."""
    status = HTTPStatus(refusal.status)
    members = {"type": "about:blank", "title": status.phrase, "status": refusal.status}
    return {**members, "detail": refusal.message, **body}


AGENTS = "/mcp"  # the endpoint of the Model Context Protocol


def is_api_path(request: HttpRequest) -> bool:
    return request.path_info in ("/v2", AGENTS) or request.path_info.startswith("/v2/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400."""
    if is_api_path(request):
        return json_error(request, Malformed("The request is malformed."))
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    if is_api_path(request):
        return json_error(request, Forbidden())
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404. The back office has set the language of its pages."""
    if is_api_path(request):
        return json_error(request, PathNotFound())
    is_office = request.path_info.startswith("/admin/")
    with translation.override(translation.get_language() if is_office else _language_of(request)):
        return defaults.page_not_found(request, exception)


def _language_of(request: HttpRequest) -> str:
    """Return the first shipped language that the browser accepts, else English."""
    accepted = parse_accept_lang_header(request.headers.get("Accept-Language", ""))
    found = (closest_shipped(code) for code, quality in accepted if quality)
    return next(filter(None, found), SOURCE_LANGUAGE)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500, called while the exception is being handled."""
    error = sys.exc_info()[1]
    if error is not None and is_outage(error):
        discard_connection(error)
        return json_error(request, Unavailable())
    if is_api_path(request):
        return json_error(request, Internal())
    page = render_to_string("500.html", {"request_id": request_id_of(request)})
    return HttpResponseServerError(page)
