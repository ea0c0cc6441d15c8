"""The service's URLs and two null endpoints, the denominators of the HTTP goals.

The null endpoints run in the same server, with the same authentication, permissions, parsing and
rendering.
"""

from typing import Any

from django.urls import path
from rest_framework.response import Response

from apps_config.base_views import TenantView
from scheduling import urls

handler404 = urls.handler404


def answer_of(size: int) -> str:
    """Return a string of `size` bytes in total as JSON."""
    return "x" * (size - 2)


class NullView(TenantView):
    query_like = True

    def get(self, request: Any, size: int) -> Response:
        return Response(answer_of(size))

    def post(self, request: Any, size: int) -> Response:
        assert request.data is not None
        return Response(answer_of(size))


urlpatterns = [*urls.urlpatterns, path("v2/null/<int:size>", NullView.as_view())]
