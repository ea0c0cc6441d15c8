"""Call the API's operations from a tool or a page, with everything that the API checks.

They add no second way to the services: each makes the request that a client of the REST API would
make, and the operation's view answers it. So roles, kinds of key, scopes, rates, limits of public
callers, Idempotency-Key and further attempts after a deadlock are the API's own.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.handlers.wsgi import WSGIRequest
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import resolve

from apps_config.authentication import Caller, set_authenticated_caller
from common.db.calls_outside_transaction import with_calls_outside_transaction
from common.errors import request_id_of, set_request_id

# What a request of ours takes over from the client's: where it comes from.
ORIGIN = (
    *("REMOTE_ADDR", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_HOST"),
    *("HTTP_ORIGIN", "HTTP_USER_AGENT", "SERVER_NAME", "SERVER_PORT", "wsgi.url_scheme"),
)


@dataclass(frozen=True)
class Operation:
    """A request to the API. path: below /v2. Null values of the query are left out."""

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """The response to an operation."""

    status: int
    json: Any
    headers: Mapping[str, str]

    @property
    def is_refusal(self) -> bool:
        return self.status >= 400

    @property
    def is_replay(self) -> bool:
        """Whether an earlier request with the same Idempotency-Key got it."""
        return "Idempotent-Replayed" in self.headers


def call_operation(
    operation: Operation, *, caller: Caller, origin: HttpRequest, **headers: str
) -> Answer:
    """Return the API's response to an operation of the caller.

    origin: the request of the client. headers: as in META, such as HTTP_IF_MATCH.
    """
    request = _new_request(operation, origin, headers)
    set_authenticated_caller(request, caller)
    set_request_id(request, request_id_of(origin))
    found = resolve(request.path_info)
    request.resolver_match = found
    response = _rendered(found.func(request, *found.args, **found.kwargs))
    content = getattr(response, "content", b"")
    return Answer(response.status_code, json.loads(content) if content else None, response.headers)


@with_calls_outside_transaction
def rehearse_operation(
    operation: Operation, *, caller: Caller, origin: HttpRequest, read: Any, **headers: str
) -> tuple[Answer, Any]:
    """Return the response to an operation, and what `read` returns of the changed database; then
    undo all changes.

    Nothing leaves the service meanwhile: mails and calls are rows, which are undone as well.
    """
    with transaction.atomic():
        answer = call_operation(operation, caller=caller, origin=origin, **headers)
        result = None if answer.is_refusal else read(answer)
        transaction.set_rollback(True)
    return answer, result


def _new_request(
    operation: Operation, origin: HttpRequest, headers: Mapping[str, str]
) -> WSGIRequest:
    content = b"" if operation.body is None else json.dumps(operation.body).encode()
    query = {name: value for name, value in (operation.query or {}).items() if value is not None}
    environ: dict[str, Any] = {name: origin.META[name] for name in ORIGIN if name in origin.META}
    return WSGIRequest(
        environ
        | {
            "REQUEST_METHOD": operation.method,
            "PATH_INFO": f"/v2{operation.path}",
            "QUERY_STRING": urlencode(query),
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(content)),
            "wsgi.input": io.BytesIO(content),
            **headers,
        }
    )


def _rendered(response: HttpResponseBase) -> HttpResponseBase:
    render = getattr(response, "render", None)
    return render() if render else response
