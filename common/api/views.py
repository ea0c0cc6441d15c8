"""The base class of every API view: DRF's APIView with a shorter request cycle."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.datastructures import MultiValueDict
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api.json_parser import check_content_encoding, check_content_type, parse_body, read_body
from common.api.pagination import PAGE_NAMES
from common.api.query import check_query
from common.api.renderers import JSONRenderer, accepts_json
from common.api.unknown_keys import (
    find_unknown_keys,
    ignored_header,
    prefers_strict_handling,
    unknown_keys_refused,
    without_equal_keys,
)
from common.api.validated_input import READERS
from common.errors import (
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    discard_connection,
    exception_response,
    is_read_only,
    is_stale_plan,
)

Handler = Callable[..., HttpResponseBase]
Result = TypeVar("Result")
Found = TypeVar("Found")

BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
RENDERER = JSONRenderer()


def found_or_404(row: Found | None, model: str) -> Found:
    """Return the row. Raises NotFound, with the model's name, if it is None."""
    if row is None:
        raise NotFound(model)
    return row


class ApiRequest(Request):
    """DRF's request with the strict JSON parser, also for chunked bodies without a Content-Type."""

    def _default_negotiator(self) -> None:
        """Return None: ApiView checks Accept, `_parse` checks Content-Type."""

    def _parse(self) -> tuple[Any, MultiValueDict]:
        raw = read_body(self._request)
        if raw:
            check_content_type(self.content_type)
            check_content_encoding(self._request.META.get("HTTP_CONTENT_ENCODING", ""))
        return parse_body(raw), MultiValueDict()


class ApiView(APIView):
    """Method, Accept, query, admission, body, handler, response; every exception becomes JSON.

    Subclasses override `admit` (authentication and permission), `run` (around the handler) and
    `decorate` (headers of every response, errors included).
    """

    # False for a view that returns a page or a file and so accepts any Accept header.
    json_only = True
    paginated = False
    # For objects that grant access: a key with a typing error must not widen it.
    refuses_unknown_keys = False
    unknown_keys: list[str] = []

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        self.request = ApiRequest(request)
        try:
            response = render_json_response(self.handle_request(self.request, *args, **kwargs))
        except Exception as exc:
            context = {"request": self.request, "view": self}
            response = render_json_response(exception_response(exc, context))
        self.decorate(response)
        if request.method == "HEAD" and isinstance(response, HttpResponse):
            response.content = b""
        return response

    def handle_request(self, request: ApiRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        handler = self.handler_of(request.method or "")
        if request.method == "OPTIONS":
            return handler(request, *args, **kwargs)
        if self.json_only and not accepts_json(request.META.get("HTTP_ACCEPT", "")):
            raise NotAcceptable
        check_query(request)
        self.with_retry(partial(self.admit, request))
        if request.method in BODY_METHODS:
            # Read it once and bounded, before anything accesses request.body.
            read_body(request._request)
        self.unknown_keys = self.find_unknown_keys(request, handler)
        known = partial(self.run_with_known_keys, handler)
        run = partial(self.run_handler, request, known, *args, **kwargs)
        return self.with_retry(run, is_retry_safe=self.is_retry_safe(request))

    def find_unknown_keys(self, request: ApiRequest, handler: Handler) -> list[str]:
        """Return the paths of keys in the body that the endpoint does not know."""
        serializer = getattr(handler, "body_serializer", None)
        return find_unknown_keys(READERS.get(serializer), request.data) if serializer else []

    def run_with_known_keys(
        self, handler: Handler, request: ApiRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Run the handler unless an unknown key is refused: in strict handling, and if GET shows
        another value of it. Raises Invalid.
        """
        get = getattr(self, "get", None)
        if self.unknown_keys and request.method == "PUT" and get:
            shown = get(request, *args, **kwargs).data.get("data")
            self.unknown_keys = without_equal_keys(self.unknown_keys, request.data, shown)
        if self.unknown_keys and self.is_strict(request):
            raise unknown_keys_refused(self.unknown_keys)
        return handler(request, *args, **kwargs)

    def is_strict(self, request: ApiRequest) -> bool:
        """Return whether unknown keys are refused; else they are named in Service-Ignored."""
        return self.refuses_unknown_keys or prefers_strict_handling(
            request.META.get("HTTP_PREFER", "")
        )

    def is_retry_safe(self, request: ApiRequest) -> bool:
        """Return whether a failed handler has changed nothing, wherever it failed."""
        return request.method in ("GET", "HEAD")

    def with_retry(self, step: Callable[[], Result], *, is_retry_safe: bool = True) -> Result:
        """Run the step; retry once on a new connection if the old connection caused the error.

        A read-only session has written nothing, so its errors are always safe to retry.
        """
        try:
            return step()
        except DatabaseError as error:
            if not (is_read_only(error) or (is_retry_safe and is_stale_plan(error))):
                raise
            discard_connection(error)
            return step()

    def handler_of(self, method: str) -> Handler:
        """Return the handler of the HTTP method. Raises MethodNotAllowed."""
        if method not in self.allowed_methods:
            raise MethodNotAllowed(method, self.allowed_methods)
        return getattr(self, method.lower())

    def query_names(self, method: str) -> Collection[str]:
        """Return the query parameters that `describe_endpoint` declares for the method."""
        names = getattr(getattr(self, method.lower(), None), "query_names", ())
        return (*names, *PAGE_NAMES) if method == "GET" and self.paginated else names

    def admit(self, request: ApiRequest) -> None:
        """Admit the request or raise a Refusal."""

    def run_handler(
        self, request: ApiRequest, handler: Handler, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        return handler(request, *args, **kwargs)

    def decorate(self, response: HttpResponseBase) -> None:
        """Add headers to any response."""
        if self.unknown_keys:
            response.headers["Service-Ignored"] = ignored_header(self.unknown_keys)

    def options(  # type: ignore[override]  # without a body nothing is to be rendered
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        return HttpResponse(
            headers={"Allow": ", ".join(self.allowed_methods), "Content-Length": "0"}
        )


def render_json_response(response: HttpResponseBase) -> HttpResponseBase:
    """Render a DRF response as JSON and set Content-Length, which avoids chunked transfer."""
    if isinstance(response, Response):
        response.accepted_renderer = RENDERER
        response.accepted_media_type = RENDERER.media_type
        vars(response)["renderer_context"] = {}
        response.render()
    if isinstance(response, HttpResponse) and response.status_code not in (204, 304):
        response.headers.setdefault("Content-Length", str(len(response.content)))
    return response
