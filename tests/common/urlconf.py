"""A small API to try the floor on."""

from typing import Any

from django.db import OperationalError
from django.http import HttpResponse, UnreadablePostError
from django.urls import path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.response import Response

from common.api.fields import IdField, InstantField, ListOf, OneLineField
from common.api.pagination import Page, list_envelope
from common.api.router import ApiRouter
from common.api.serializers import ObjectSerializer
from common.api.views import ApiView, ApiViewSet
from common.errors import NotFound, Refusal
from common.openapi.generator import named_examples


class WhenSerializer(ObjectSerializer):
    start = InstantField()


class ThingSerializer(ObjectSerializer):
    examples = {"id": "1", "name": "a"}

    id = serializers.CharField(read_only=True)
    name = OneLineField(max_length=5)
    parent = IdField(write_only=True, required=False)
    times = ListOf(WhenSerializer(), max_items=2, write_only=True, required=False)


class SlotTaken(Refusal):
    code = "slot_taken"


class OpenView(ApiView):
    """Described like a view that needs a key."""

    authentication_classes = permission_classes = throttle_classes = ()


class ThingViewSet(ApiViewSet):
    serializer_class = ThingSerializer
    lookup_url_kwarg = "id"
    authentication_classes = permission_classes = throttle_classes = ()

    @extend_schema(
        summary="List things",
        examples=named_examples(response={"none": {"data": []}}),
    )
    def list(self, request):
        page = Page.read(request)
        return Response(list_envelope(request, page, 5, [1, 2, 3, 4, 5][page.start : page.stop]))

    @extend_schema(
        summary="Make a thing",
        examples=named_examples(request={"small": {"name": "a"}}),
    )
    def create(self, request):
        thing = ThingSerializer(data=request.data)
        thing.is_valid(raise_exception=True)
        return Response({"data": {"name": thing.validated_data["name"]}}, status=201)

    def retrieve(self, request, id):
        raise NotFound("Thing")

    @extend_schema(summary="Delete a thing")
    def destroy(self, request, id):
        return Response(status=204)


class Ask(OpenView):
    is_query = True

    def post(self, request):
        return Response(request.data)


class Closed(ApiView):
    def finalize_response(self, request, response, *args, **kwargs):
        response.headers["X-Decorated"] = "yes"
        return super().finalize_response(request, response, *args, **kwargs)

    def get(self, request):
        raise AssertionError


class Taken(OpenView):
    def get(self, request):
        raise SlotTaken("The time is taken.", conflicts=[{"start": "a", "end": "b"}])


class Broken(OpenView):
    def get(self, request):
        raise ZeroDivisionError("/secret/path")


class Locked(OpenView):
    def get(self, request):
        raise OperationalError("database is locked")


router = ApiRouter()
router.register("v2/things", ThingViewSet, "things")


def plain_locked(request):
    raise OperationalError("database is locked")


def plain_late(request):
    raise UnreadablePostError from TimeoutError()


def plain_cut_short(request):
    raise UnreadablePostError from ConnectionResetError()


def plain_broken(request):
    raise ZeroDivisionError("/secret/path")


def plain(request):
    return HttpResponse(request.path)


PUBLIC: dict[str, Any] = dict.fromkeys(
    ("authentication_classes", "permission_classes", "throttle_classes"), ()
)
urlpatterns = [
    *router.urls,
    path("v2/ask", Ask.as_view()),
    path("v2/closed", Closed.as_view()),
    path("v2/taken", Taken.as_view()),
    path("v2/broken", Broken.as_view()),
    path("v2/locked", Locked.as_view()),
    path("v2/plain-locked", plain_locked),
    path("v2/plain-late", plain_late),
    path("v2/plain-cut-short", plain_cut_short),
    path("v2/plain-broken", plain_broken),
    path("v2/openapi.json", SpectacularAPIView.as_view(**PUBLIC)),
    path("plain/", plain),
]
handler400 = "common.errors.bad_request"
handler403 = "common.errors.permission_denied"
handler404 = "common.errors.not_found"
handler500 = "common.errors.server_error"
