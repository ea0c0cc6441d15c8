"""Endpoints of calendars."""

import uuid

from rest_framework.response import Response

from availability.models import Calendar
from availability.records import RESOURCE_EXAMPLE, CalendarRecord
from availability.serializers.resources import CalendarSerializer, NewCalendarSerializer
from availability.services import change_calendar, create_calendar, delete_calendar
from availability.views.base_views import BY_NAME, ResourceScopedView
from common.api.ordering import order_query_parameters
from common.api.search_conditions import CALENDAR_SEARCH, filter_by_search
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.errors import Invalid
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of


class CalendarsView(ResourceScopedView):
    paginated = True

    @describe_endpoint(
        summary="List calendars",
        response=page_of(CalendarRecord),
        query={
            "search": search_of(CALENDAR_SEARCH, f"resource.id:{RESOURCE_EXAMPLE['id']}"),
            **order_query_parameters(BY_NAME),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        terms = self.query.search(CALENDAR_SEARCH)
        rows = self.filter_and_order(
            filter_by_search(self.readable_calendars(), terms, CALENDAR_SEARCH), BY_NAME
        )
        return self.list_page(request, rows, CalendarRecord.of)

    @describe_endpoint(
        summary="Create a calendar",
        request=NewCalendarSerializer,
        response=data_object(CalendarRecord),
        status=201,
        request_examples={"private": {"name": "Private", "resource_id": RESOURCE_EXAMPLE["id"]}},
    )
    def post(self, request: ApiRequest) -> Response:
        given = read_body_as(NewCalendarSerializer, request)
        resource = self.readable_resources().filter(id=given["resource_id"]).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        calendar = create_calendar(resource=resource, given=given)
        return Response({"data": CalendarRecord.of(calendar)}, status=201)


class CalendarView(ResourceScopedView):
    @describe_endpoint(summary="A calendar", response=data_object(CalendarRecord))
    def get(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        return Response({"data": CalendarRecord.of(self._find(calendar_id))})

    @describe_endpoint(
        summary="Change a calendar",
        request=CalendarSerializer,
        response=data_object(CalendarRecord),
        request_examples={"another colour": {"backgroundcolor": "#1f6feb"}},
    )
    def put(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        given = read_body_as(CalendarSerializer, request)
        calendar = change_calendar(self._find(calendar_id), given)
        return Response({"data": CalendarRecord.of(calendar)})

    @describe_endpoint(
        summary="Delete a calendar",
        description="Its events no longer block time. 409 `in_use` for a resource's last"
        " calendar, and while the calendar has bookings that are not completed.",
        status=204,
    )
    def delete(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        delete_calendar(self._find(calendar_id), now=self.now)
        return Response(status=204)

    def _find(self, calendar_id: uuid.UUID) -> Calendar:
        return found_or_404(self.readable_calendars().filter(id=calendar_id).first(), "Calendar")
