"""The router of the API: viewsets, under the paths that clients know."""

from rest_framework.routers import DynamicRoute, Route, SimpleRouter
from rest_framework.viewsets import ViewSetMixin


class ApiRouter(SimpleRouter):
    """DRF's router with typed paths, without a slash at the end, and with a partial PUT,
    which PATCH is another name of.

    A viewset with `is_singleton` is one object, not a list of them. An action whose path takes any
    text comes after those whose path is a word. `TrailingSlashMiddleware` takes off the slash that
    a client may add.
    """

    objects = Route(
        url="{prefix}",
        mapping={"get": "list", "post": "create"},
        name="{basename}-list",
        detail=False,
        initkwargs={},
    )
    one_object = Route(
        url="{prefix}/{lookup}",
        mapping={"get": "retrieve", "put": "update", "patch": "update", "delete": "destroy"},
        name="{basename}-detail",
        detail=True,
        initkwargs={},
    )
    only_object = Route(
        url="{prefix}",
        mapping={
            "get": "retrieve",
            "post": "create",
            "put": "update",
            "delete": "destroy",
        },
        name="{basename}-detail",
        detail=False,
        initkwargs={},
    )
    list_action = DynamicRoute(
        url="{prefix}/{url_path}", name="{basename}-{url_name}", detail=False, initkwargs={}
    )
    object_action = DynamicRoute(
        url="{prefix}/{lookup}/{url_path}", name="{basename}-{url_name}", detail=True, initkwargs={}
    )
    routes = [objects, list_action, one_object, object_action]

    def __init__(self) -> None:
        super().__init__(trailing_slash=False, use_regex_path=False)

    def is_already_registered(self, new_basename: str) -> bool:
        """Allow a second path of a viewset: its name is that of the permissions. Of two routes with
        a name, Django's `reverse` finds the last.
        """
        return False

    def get_routes(self, viewset: type[ViewSetMixin]) -> list[Route]:
        routes = super().get_routes(viewset)
        if getattr(viewset, "is_singleton", False):
            routes = [
                self.only_object if route == self.objects else route
                for route in routes
                if route != self.one_object
            ]
        return sorted(routes, key=lambda route: "<" in route.url)
