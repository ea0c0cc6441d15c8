"""A small API to try the floor on."""

import json

from django.db import OperationalError
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.response import Response

from scheduling.api.errors import NotFound, Refusal, Unauthenticated
from scheduling.api.fields import IdField, InstantField, ListOf, ObjectSerializer, OneLineField
from scheduling.api.pagination import Page, envelope
from scheduling.api.schema import component, described, one, page_of
from scheduling.api.views import ApiView

THING = component(
    "Thing", {"type": "object", "properties": {"id": {"type": "string"}}}, example={"id": "1"}
)


class SlotTaken(Refusal):
    code = "slot_taken"


class WhenSerializer(ObjectSerializer):
    start = InstantField()


class ThingSerializer(ObjectSerializer):
    name = OneLineField(max_length=5)
    parent = IdField(required=False)
    times = ListOf(WhenSerializer(), max_items=2, required=False)


class Things(ApiView):
    paginated = True

    @described(summary="List things", response=page_of(THING), examples={"none": {"data": []}})
    def get(self, request):
        page = Page.read(request)
        return Response(envelope(request, page, 5, [1, 2, 3, 4, 5][page.start : page.stop]))

    @described(
        summary="Make a thing",
        request=THING,
        response=one(THING),
        status=201,
        request_examples={"small": {"id": "1"}},
    )
    def post(self, request):
        thing = ThingSerializer(data=request.data)
        thing.is_valid(raise_exception=True)
        return Response({"data": {"name": thing.validated_data["name"]}}, status=201)


class Thing(ApiView):
    def get(self, request, id):
        raise NotFound("Thing")

    @described(summary="Delete a thing", status=204)
    def delete(self, request, id):
        return Response(status=204)


class Ask(ApiView):
    query_like = True

    def post(self, request):
        return Response(json.dumps(request.data).encode())


class Closed(ApiView):
    def admit(self, request):
        raise Unauthenticated

    def decorate(self, response):
        response.headers["X-Decorated"] = "yes"

    def get(self, request):
        raise AssertionError


class Taken(ApiView):
    def get(self, request):
        raise SlotTaken("The time is taken.", conflicts=[{"start": "a", "end": "b"}])


class Broken(ApiView):
    def get(self, request):
        raise ZeroDivisionError("/secret/path")


class Locked(ApiView):
    def get(self, request):
        raise OperationalError("database is locked")


def plain_locked(request):
    raise OperationalError("database is locked")


def plain_broken(request):
    raise ZeroDivisionError("/secret/path")


def plain(request):
    return HttpResponse(request.path)


urlpatterns = [
    path("v2/things", Things.as_view()),
    path("v2/things/<uuid:id>", Thing.as_view()),
    path("v2/ask", Ask.as_view()),
    path("v2/closed", Closed.as_view()),
    path("v2/taken", Taken.as_view()),
    path("v2/broken", Broken.as_view()),
    path("v2/locked", Locked.as_view()),
    path("v2/plain-locked", plain_locked),
    path("v2/plain-broken", plain_broken),
    path("v2/openapi.json", SpectacularAPIView.as_view()),
    path("plain/", plain),
]
handler400 = "scheduling.api.errors.bad_request"
handler403 = "scheduling.api.errors.permission_denied"
handler404 = "scheduling.api.errors.not_found"
handler500 = "scheduling.api.errors.server_error"
