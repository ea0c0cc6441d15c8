"""Endpoints of calendars."""

import uuid

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from availability.models import Calendar
from availability.serializers.calendars import CalendarSerializer
from availability.serializers.resources import RESOURCE_EXAMPLE
from availability.services import change_calendar, create_calendar, delete_calendar
from availability.views.base_views import BY_NAME, ResourceScopedViewSet
from common.api.search_conditions import CALENDAR_SEARCH
from common.api.serializers import read_body_as
from common.errors import Invalid
from common.openapi.generator import named_examples


class CalendarViewSet(ResourceScopedViewSet):
    serializer_class = CalendarSerializer
    lookup_url_kwarg = "calendar_id"
    search_fields = CALENDAR_SEARCH
    search_example = f"resource.id:{RESOURCE_EXAMPLE['id']}"
    ordering_fields = BY_NAME

    def get_queryset(self) -> QuerySet[Calendar]:
        return self.readable_calendars()

    @extend_schema(summary="List calendars")
    def list(self, request: Request) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        return self.list_page(request, rows, CalendarSerializer.render)

    @extend_schema(
        summary="Create a calendar",
        examples=named_examples(
            request={"private": {"name": "Private", "resource_id": RESOURCE_EXAMPLE["id"]}}
        ),
    )
    def create(self, request: Request) -> Response:
        given = read_body_as(CalendarSerializer, request)
        resource = self.readable_resources().filter(id=given["resource_id"]).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        calendar = create_calendar(resource=resource, given=given)
        return Response({"data": CalendarSerializer.render(calendar)}, status=201)

    @extend_schema(summary="A calendar")
    def retrieve(self, request: Request, calendar_id: uuid.UUID) -> Response:
        return Response({"data": CalendarSerializer.render(self.get_object())})

    @extend_schema(
        summary="Change a calendar",
        examples=named_examples(request={"another colour": {"backgroundcolor": "#1f6feb"}}),
    )
    def update(self, request: Request, calendar_id: uuid.UUID) -> Response:
        given = read_body_as(CalendarSerializer, request, partial=True)
        calendar = change_calendar(self.get_object(), given)
        return Response({"data": CalendarSerializer.render(calendar)})

    @extend_schema(
        summary="Delete a calendar",
        description="Its events no longer block time. 409 `in_use` for a resource's last"
        " calendar, and while the calendar has bookings that are not completed.",
    )
    def destroy(self, request: Request, calendar_id: uuid.UUID) -> Response:
        delete_calendar(self.get_object(), now=self.now)
        return Response(status=204)
