"""The service's URLs and two null endpoints, the denominators of the HTTP goals.

The null endpoints run in the same server, with the same authentication, permissions, parsing and
rendering.
"""

from typing import Any

from django.urls import path
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from apps_config.permissions import BOOKINGS_READ, VIEWER, Access
from scheduling import urls

handler404 = urls.handler404


def answer_of(size: int) -> str:
    """Return a string of `size` bytes in total as JSON."""
    return "x" * (size - 2)


class NullViewSet(TenantViewSet):
    query_actions = frozenset({"create"})
    access = Access(VIEWER, BOOKINGS_READ)

    def list(self, request: Any, size: int) -> Response:
        return Response(answer_of(size))

    def create(self, request: Any, size: int) -> Response:
        assert request.data is not None
        return Response(answer_of(size))


null_view = NullViewSet.as_view({"get": "list", "post": "create"}, basename="null")
urlpatterns = [*urls.urlpatterns, path("v2/null/<int:size>", null_view)]
