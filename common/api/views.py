"""The base class of every API view: DRF's APIView, with the handler run inside `run`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, TypeVar

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from common.api.etags import answer_conditionally
from common.api.json import MAX_BYTES, read_body
from common.api.pagination import PAGE_NAMES
from common.api.query import check_query
from common.api.serializers import READERS
from common.api.unknown_keys import (
    UnknownKeys,
    find_unknown_keys,
    ignored_header,
    prefers_strict_handling,
    unknown_keys_refused,
    without_equal_keys,
)
from common.db.calls_outside_transaction import NeedsAnswer
from common.errors import (
    MethodNotAllowed,
    NotFound,
    accepts_problems,
    discard_connection,
    is_read_only,
    is_stale_plan,
)
from common.openapi.generator import body_of, query_names_of

Handler = Callable[..., HttpResponseBase]
Result = TypeVar("Result")
Found = TypeVar("Found")

SAFE_METHODS = frozenset({"GET", "HEAD"})
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


def found_or_404(row: Found | None, model: str) -> Found:
    """Return the row. Raises NotFound, with the model's name, if it is None."""
    if row is None:
        raise NotFound(model)
    return row


def retry_once(step: Callable[[], Result], *, is_retry_safe: bool = True) -> Result:
    """Run the step; repeat it once on a new connection if the old connection caused the error.

    A read-only session has written nothing, so its errors are always safe to retry.
    """
    try:
        return step()
    except DatabaseError as error:
        if not (is_read_only(error) or (is_retry_safe and is_stale_plan(error))):
            raise
        discard_connection(error)
        return step()


class ApiView(APIView):
    """DRF's view with a bounded body, unknown keys, and `run` around the handler.

    Subclasses and mixins override `run` (a transaction, a replica) and call `super().run`.
    """

    # False for a view that returns a page or a file and so accepts any Accept header.
    json_only = True
    max_body_bytes = MAX_BYTES
    is_page = False  # the response is one page of a list
    has_etag = False  # the response has an ETag, and may be 304
    is_query = False  # a POST that is described like a GET: no Idempotency-Key, no 409
    # For objects that grant access: a key with a typing error must not widen it.
    refuses_unknown_keys = False
    unknown_keys: UnknownKeys = []
    now: datetime

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        self.now = timezone.now()
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Apply DRF's policies, read the body, and wrap the handler with `run`.

        DRF looks for the handler on the instance afterwards, as for the actions of a viewset.
        """
        retry_once(partial(super().initial, request, *args, **kwargs))
        method = (request.method or "").lower()
        if method.upper() not in self.allowed_methods or method == "options":
            return
        self.check_request(request)
        if request.method in BODY_METHODS:
            # Read it once and bounded, before the handler opens a transaction.
            read_body(request, self.max_body_bytes)
        handler = getattr(self, method)
        self.unknown_keys = self.find_unknown_keys(request)
        setattr(self, method, partial(self.run_with_retry, handler))

    def check_request(self, request: Request) -> None:
        """Check the query string and the headers. Raises Malformed, Invalid."""
        check_query(request)

    def run_with_retry(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        known = partial(self.run_with_known_keys, handler)
        run = partial(self.run, known, request, *args, **kwargs)
        return retry_once(run, is_retry_safe=self.is_retry_safe(request))

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        return handler(request, *args, **kwargs)

    @property
    def handler_name(self) -> str:
        """The name of the method that answers the request."""
        method = (self.request.method or "").lower()
        return "get" if method == "head" else method

    def find_unknown_keys(self, request: Request) -> UnknownKeys:
        """Return the paths of keys in the body that the endpoint does not know."""
        view: Any = type(self)
        body = body_of(view, self.handler_name)
        if body is None:
            return []
        serializer, is_change = body
        reader = READERS.get(serializer, partial=is_change)
        return find_unknown_keys(reader, request.data)

    def run_with_known_keys(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Run the handler unless an unknown key is refused: in strict handling, and if GET shows
        another value of it. Raises Invalid.
        """
        get = getattr(self, "get", None)
        if self.unknown_keys and request.method in ("PUT", "PATCH") and get:
            shown = get(request, *args, **kwargs).data.get("data")
            self.unknown_keys = without_equal_keys(self.unknown_keys, request.data, shown)
        if self.unknown_keys and self.is_strict(request):
            raise unknown_keys_refused(self.unknown_keys)
        return handler(request, *args, **kwargs)

    def is_strict(self, request: Request) -> bool:
        """Return whether unknown keys are refused; else they are named in Service-Ignored."""
        return self.refuses_unknown_keys or prefers_strict_handling(
            request.META.get("HTTP_PREFER", "")
        )

    def is_retry_safe(self, request: Request) -> bool:
        """Return whether a failed handler has changed nothing, wherever it failed."""
        return request.method in SAFE_METHODS

    def query_names(self) -> Collection[str]:
        """Return the query parameters that are described for the request's handler."""
        view: Any = type(self)
        return query_names_of(view, self.handler_name)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Accept every header for a page or a file; an empty header asks for nothing else, and one
        that names problem details takes JSON too.
        """
        is_empty = not request.META.get("HTTP_ACCEPT", "*/*").strip()
        return super().perform_content_negotiation(
            request, force=force or is_empty or not self.json_only or accepts_problems(request)
        )

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}

    def handle_exception(self, exc: Exception) -> Any:
        """Render the error; a question of a transaction around the request is not one."""
        if isinstance(exc, NeedsAnswer):
            raise exc
        return super().handle_exception(exc)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise MethodNotAllowed(request.method or "", self.allowed_methods)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        if self.unknown_keys:
            response.headers["Service-Ignored"] = ignored_header(self.unknown_keys)
        response = super().finalize_response(request, response, *args, **kwargs)
        if self.has_etag and request.method in SAFE_METHODS and response.status_code == 200:
            response.add_post_render_callback(partial(answer_conditionally, request))
        return response

    def render(self, response: HttpResponseBase) -> HttpResponseBase:
        """Render a response of the handler now, with the renderer that DRF has negotiated."""
        if isinstance(response, Response):
            response = super().finalize_response(self.request, response, *self.args, **self.kwargs)
            response.render()
        return response

    def options(  # type: ignore[override]  # without a body nothing is to be rendered
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        return HttpResponse(
            headers={"Allow": ", ".join(self.allowed_methods), "Content-Length": "0"}
        )


class ApiViewSet(ViewSetMixin, ApiView, GenericAPIView):
    """A viewset with what `ApiView` does. The sets below name the actions that differ."""

    lookup_value_converter = "uuid"
    is_singleton: ClassVar[bool] = False  # one object, not a list of them
    # Actions with filters, and with pages unless `pagination_class` is None.
    list_actions: ClassVar[frozenset[str]] = frozenset({"list"})
    # POST requests that change nothing.
    query_actions: ClassVar[frozenset[str]] = frozenset()
    # Actions for which a request without a body is as useful as one with it.
    optional_bodies: ClassVar[frozenset[str]] = frozenset()
    # Actions of GET whose responses have an ETag.
    etag_actions: ClassVar[frozenset[str]] = frozenset({"retrieve"})

    # For the filter backends of a list; `common.api.filter_backends` says what each one means.
    search_fields: Mapping[str, Any] | None = None
    search_example: str = ""
    filterset_class: Any = None
    ordering_fields: Mapping[str, str] | None = None
    ordering = "-created_at"

    @property
    def is_list(self) -> bool:
        return self.action in self.list_actions

    @property
    def has_etag(self) -> bool:  # type: ignore[override]
        return self.action in self.etag_actions

    @property
    def is_page(self) -> bool:  # type: ignore[override]
        return self.is_list and self.pagination_class is not None

    @property
    def is_query(self) -> bool:  # type: ignore[override]
        return self.action in self.query_actions

    @property
    def handler_name(self) -> str:
        return self.action

    def query_names(self) -> Collection[str]:
        """Add those of the filter backends and the pages of a list."""
        backends: Sequence[Any] = self.filter_backends if self.is_list else ()
        filters = (name for backend in backends for name in backend().parameters(self))
        pages = PAGE_NAMES if self.is_page else ()
        return (*super().query_names(), *filters, *pages)

    def is_retry_safe(self, request: Request) -> bool:
        return self.is_query or super().is_retry_safe(request)

    def get_object(self) -> Any:
        """Return the object of the path, from `get_queryset`. Raises NotFound."""
        rows = self.get_queryset()
        return found_or_404(
            rows.filter(pk=self.kwargs[self.lookup_url_kwarg or "pk"]).first(), rows.model.__name__
        )


class PublicApiView(ApiView):
    """A view without a key."""

    public = True
    authentication_classes = ()
    permission_classes = ()
    throttle_classes: Sequence[type[BaseThrottle]] = ()
