"""The paths that a viewset gets on the router of the API."""

from typing import Any

from django.urls import reverse
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.router import ApiRouter
from common.api.views import ApiViewSet


class RoomViewSet(ApiViewSet):
    lookup_url_kwarg = "room_id"

    def list(self, request: Request) -> Response: ...
    def create(self, request: Request) -> Response: ...
    def retrieve(self, request: Request, room_id: Any) -> Response: ...
    def update(self, request: Request, room_id: Any) -> Response: ...

    @action(detail=True, methods=["post"], url_path="<str:verb>")
    def apply(self, request: Request, room_id: Any, verb: str) -> Response: ...

    @action(detail=True, methods=["put"])
    def clean(self, request: Request, room_id: Any) -> Response: ...

    @action(detail=False)
    def export(self, request: Request) -> Response: ...


class ClockViewSet(ApiViewSet):
    is_singleton = True

    def retrieve(self, request: Request) -> Response: ...
    def destroy(self, request: Request) -> Response: ...


def paths_of(router: ApiRouter) -> list[tuple[str, dict[str, str]]]:
    return [(str(pattern.pattern), pattern.callback.actions) for pattern in router.urls]


def test_paths_have_types_and_words_come_before_any_text() -> None:
    router = ApiRouter()
    router.register("rooms", RoomViewSet, "rooms")

    assert paths_of(router) == [
        ("rooms", {"get": "list", "post": "create"}),
        ("rooms/export", {"get": "export"}),
        ("rooms/<uuid:room_id>", {"get": "retrieve", "put": "update", "patch": "update"}),
        ("rooms/<uuid:room_id>/clean", {"put": "clean"}),
        ("rooms/<uuid:room_id>/<str:verb>", {"post": "apply"}),
    ]


def test_singleton_has_one_path() -> None:
    router = ApiRouter()
    router.register("clock", ClockViewSet, "clock")

    assert paths_of(router) == [("clock", {"get": "retrieve", "delete": "destroy"})]


def test_second_path_has_the_same_name_and_the_last_one_is_reversed() -> None:
    router = ApiRouter()
    router.register("watch", ClockViewSet, "clock")
    router.register("clock", ClockViewSet, "clock")

    assert [(str(pattern.pattern), pattern.name) for pattern in router.urls] == [
        ("watch", "clock-detail"),
        ("clock", "clock-detail"),
    ]
    assert reverse("resources-list") == "/v2/resources"
