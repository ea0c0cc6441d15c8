"""The base of every API view: DRF's APIView with a shorter way through."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.datastructures import MultiValueDict
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from scheduling.api.errors import (
    MethodNotAllowed,
    NotAcceptable,
    discard_connection,
    exception_response,
    is_read_only,
    is_stale_plan,
)
from scheduling.api.parsers import check_content_encoding, check_content_type, parse_body, read_body
from scheduling.api.query import check_query
from scheduling.api.renderers import JSONRenderer, accepts_json

Handler = Callable[..., HttpResponseBase]
Result = TypeVar("Result")

BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
RENDERER = JSONRenderer()


class ApiRequest(Request):
    """DRF's request over our body: strict JSON, also chunked and without a Content-Type."""

    def _default_negotiator(self) -> None:
        """None: ApiView looks at Accept, `_parse` at Content-Type."""

    def _parse(self) -> tuple[Any, MultiValueDict]:
        raw = read_body(self._request)
        if raw:
            check_content_type(self.content_type)
            check_content_encoding(self._request.META.get("HTTP_CONTENT_ENCODING", ""))
        return parse_body(raw), MultiValueDict()


class ApiView(APIView):
    """Method, Accept, query, admission, body, handler, answer; every exception becomes JSON.

    The room above overrides `admit` (who asks, may they?), `run` (around the handler) and
    `decorate` (headers of every answer, errors included).
    """

    # False for a view that answers with a page or a file, and so takes any Accept header.
    json_only = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        self.request = ApiRequest(request)
        try:
            response = render(self.answer(self.request, *args, **kwargs))
        except Exception as exc:
            context = {"request": self.request, "view": self}
            response = render(exception_response(exc, context))
        self.decorate(response)
        if request.method == "HEAD" and not response.streaming:
            response.content = b""
        return response

    def answer(self, request: ApiRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        handler = self.handler_of(request.method)
        if request.method == "OPTIONS":
            return handler(request, *args, **kwargs)
        if self.json_only and not accepts_json(request.META.get("HTTP_ACCEPT", "")):
            raise NotAcceptable
        check_query(request)
        self.with_retry(partial(self.admit, request))
        if request.method in BODY_METHODS:
            # Read once and bounded, before anything asks for request.body.
            read_body(request._request)
        run = partial(self.run, request, handler, *args, **kwargs)
        return self.with_retry(run, is_repeatable=self.is_repeatable(request))

    def is_repeatable(self, request: ApiRequest) -> bool:
        """Whether a handler that failed has left nothing behind, however far it came."""
        return request.method in ("GET", "HEAD")

    def with_retry(self, step: Callable[[], Result], *, is_repeatable: bool = True) -> Result:
        """The step's result; once more on a new connection where the old one was at fault.

        A session that only reads has written nothing, so what it refused is always repeatable.
        """
        try:
            return step()
        except DatabaseError as error:
            if not (is_read_only(error) or (is_repeatable and is_stale_plan(error))):
                raise
            discard_connection(error)
            return step()

    def handler_of(self, method: str) -> Handler:
        """The view's method of that name. Raises MethodNotAllowed."""
        if method not in self.allowed_methods:
            raise MethodNotAllowed(method, self.allowed_methods)
        return getattr(self, method.lower())

    def admit(self, request: ApiRequest) -> None:
        """Lets the request in or raises a Refusal."""

    def run(
        self, request: ApiRequest, handler: Handler, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Calls the handler."""
        return handler(request, *args, **kwargs)

    def decorate(self, response: HttpResponseBase) -> None:
        """Adds headers to any answer."""

    def options(self, request: ApiRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponse(
            headers={"Allow": ", ".join(self.allowed_methods), "Content-Length": "0"}
        )


def render(response: HttpResponseBase) -> HttpResponseBase:
    """Renders a DRF response as JSON and states its length, which spares chunked transfer."""
    if isinstance(response, Response):
        response.accepted_renderer = RENDERER
        response.accepted_media_type = RENDERER.media_type
        response.renderer_context = {}
        response.render()
    if not response.streaming and response.status_code not in (204, 304):
        response.headers.setdefault("Content-Length", str(len(response.content)))
    return response
