"""If-Match of PUT, PATCH and DELETE (RFC 9110, 13.1.1): an object changes only as it was read."""

from typing import Any, ClassVar

from django.db import transaction
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from common.api.etags import etag_of, matches
from common.api.views import ApiViewSet, Handler
from common.errors import PreconditionFailed


class ConditionalWrites(ApiViewSet):
    """A viewset whose `update` and `destroy` compare the ETag of `retrieve`, under the row's lock.

    The ETag is that of GET with the same query and the same headers.
    """

    conditional_actions: ClassVar[frozenset[str]] = frozenset({"update", "destroy"})

    @property
    def is_conditional(self) -> bool:
        """Whether the action honours If-Match."""
        return self.action in self.conditional_actions and hasattr(self, "retrieve")

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        expected = request.META.get("HTTP_IF_MATCH")
        if expected is None or not self.is_conditional or not self.may_compare:
            return super().run(handler, request, *args, **kwargs)
        with transaction.atomic():
            self.lock_object()
            retrieve: Any = self.retrieve  # type: ignore[attr-defined]
            shown: Any = retrieve(request, **self.object_kwargs).data
            content: Any = request.accepted_renderer.render(shown)
            if not matches(expected, etag_of(content)):
                raise PreconditionFailed
            return super().run(handler, request, *args, **kwargs)

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
