"""A small API to try the floor on."""

from django.db import OperationalError
from django.http import HttpResponse, UnreadablePostError
from django.urls import path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.response import Response

from common.api.fields import IdField, InstantField, ListOf, ObjectSerializer, OneLineField
from common.api.pagination import Page, list_envelope
from common.api.response_records import Record, field
from common.api.views import ApiView
from common.errors import NotFound, Refusal, Unauthenticated
from common.openapi.generator import data_object, describe_endpoint, page_of


class ThingRecord(Record):
    id: str = field(example="1")


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

    @describe_endpoint(
        summary="List things", response=page_of(ThingRecord), examples={"none": {"data": []}}
    )
    def get(self, request):
        page = Page.read(request)
        return Response(list_envelope(request, page, 5, [1, 2, 3, 4, 5][page.start : page.stop]))

    @describe_endpoint(
        summary="Make a thing",
        request=ThingRecord.schema,
        response=data_object(ThingRecord),
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

    @describe_endpoint(summary="Delete a thing", status=204)
    def delete(self, request, id):
        return Response(status=204)


class Ask(ApiView):
    query_like = True

    def post(self, request):
        return Response(request.data)


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


def plain_late(request):
    raise UnreadablePostError from TimeoutError()


def plain_cut_short(request):
    raise UnreadablePostError from ConnectionResetError()


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
    path("v2/plain-late", plain_late),
    path("v2/plain-cut-short", plain_cut_short),
    path("v2/plain-broken", plain_broken),
    path("v2/openapi.json", SpectacularAPIView.as_view()),
    path("plain/", plain),
]
handler400 = "common.errors.bad_request"
handler403 = "common.errors.permission_denied"
handler404 = "common.errors.not_found"
handler500 = "common.errors.server_error"
