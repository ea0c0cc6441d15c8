"""If-Match (RFC 9110, 13.1.1): an object changes only as it was read."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import transaction
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from common.api.etags import etag_of, matches
from common.api.views import SAFE_METHODS, ApiViewSet, Handler
from common.db.calls_outside_transaction import with_calls_outside_transaction
from common.errors import PreconditionFailed


class ConditionalWrites(ApiViewSet):
    """A viewset whose changes compare the ETag of `retrieve`, under the row's lock: those of the
    object, and those below its path, such as its actions.

    The ETag is that of GET with the same query and the same headers.
    """

    @property
    def is_conditional(self) -> bool:
        """Whether the action honours If-Match, unless its method only reads."""
        return bool(self.detail) and not self.is_query and hasattr(self, "retrieve")

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        expected = request.META.get("HTTP_IF_MATCH")
        is_compared = self.is_conditional and request.method not in SAFE_METHODS
        if expected is None or not is_compared or not self.may_compare:
            return super().run(handler, request, *args, **kwargs)
        return self.run_if_match(expected, partial(super().run, handler, request, *args, **kwargs))

    @with_calls_outside_transaction
    def run_if_match(
        self, expected: str, change: Callable[[], HttpResponseBase]
    ) -> HttpResponseBase:
        with transaction.atomic():
            self.lock_object()
            retrieve: Any = self.retrieve  # type: ignore[attr-defined]
            shown: Any = retrieve(self.request, **self.object_kwargs).data
            content: Any = self.request.accepted_renderer.render(shown)
            if not matches(expected, etag_of(content)):
                raise PreconditionFailed
            return change()

    @property
    def may_compare(self) -> bool:
        """Whether the caller may read the object; if not, its If-Match is ignored."""
        return True

    def lock_object(self) -> None:
        """Lock the object of the path; `retrieve` finds it or not."""
        rows = self.get_queryset().model._base_manager.select_for_update(no_key=True)
        [pk] = self.object_kwargs.values()
        rows.filter(pk=pk).values("pk").first()

    @property
    def object_kwargs(self) -> dict[str, Any]:
        """The argument of `retrieve`: an action may have further parts of the path."""
        name = self.lookup_url_kwarg or "pk"
        return {name: self.kwargs[name]}
