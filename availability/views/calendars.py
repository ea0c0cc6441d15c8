"""Endpoints of calendars."""

import uuid
from typing import Any

from rest_framework.response import Response

from availability.filters import (
    CALENDAR_SEARCH,
    apply_search,
)
from availability.models import Calendar
from availability.records import calendar_record
from availability.schemas import CALENDAR, CALENDAR_EXAMPLE, RESOURCE_EXAMPLE
from availability.serializers.resources import CalendarSerializer, NewCalendarSerializer
from availability.services import (
    change_calendar,
    create_calendar,
    delete_calendar,
)
from availability.views.scoped import BY_NAME, CHANGES, ResourceScopedView, found
from scheduling.api.bodies import read_body_as
from scheduling.api.errors import Invalid
from scheduling.api.ordering import UPDATED_SINCE, order_query
from scheduling.api.schema import described, one, page_of, search_of


class CalendarsView(ResourceScopedView):
    paginated = True
    query_names = {"GET": CHANGES}

    @described(
        summary="List calendars",
        response=page_of(CALENDAR),
        query={
            "search": search_of(CALENDAR_SEARCH, f"resource.id:{RESOURCE_EXAMPLE['id']}"),
            **order_query(BY_NAME),
            "updated_since": UPDATED_SINCE,
        },
    )
    def get(self, request: Any) -> Response:
        terms = self.query.search(CALENDAR_SEARCH)
        rows = self.listed(apply_search(self.calendars(), terms, CALENDAR_SEARCH), BY_NAME)
        return self.list_page(request, rows, calendar_record)

    @described(
        summary="Make a calendar",
        request=NewCalendarSerializer,
        response=one(CALENDAR),
        status=201,
        request_examples={
            "private": {"name": "Private", "resource_id": CALENDAR_EXAMPLE["resource_id"]}
        },
    )
    def post(self, request: Any) -> Response:
        given = read_body_as(NewCalendarSerializer, request)
        resource = self.resources().filter(id=given["resource_id"]).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        calendar = create_calendar(resource=resource, given=given)
        return Response({"data": calendar_record(calendar)}, status=201)


class CalendarView(ResourceScopedView):
    @described(summary="A calendar", response=one(CALENDAR))
    def get(self, request: Any, calendar_id: uuid.UUID) -> Response:
        return Response({"data": calendar_record(self._find(calendar_id))})

    @described(
        summary="Change a calendar",
        request=CalendarSerializer,
        response=one(CALENDAR),
        request_examples={"another colour": {"backgroundcolor": "#1f6feb"}},
    )
    def put(self, request: Any, calendar_id: uuid.UUID) -> Response:
        given = read_body_as(CalendarSerializer, request)
        calendar = change_calendar(self._find(calendar_id), given)
        return Response({"data": calendar_record(calendar)})

    @described(
        summary="Remove a calendar",
        description="What stands in it blocks no more. 409 `in_use` for a resource's last one, and"
        " while it holds bookings that are not completed.",
        status=204,
    )
    def delete(self, request: Any, calendar_id: uuid.UUID) -> Response:
        delete_calendar(self._find(calendar_id), now=self.now)
        return Response(status=204)

    def _find(self, calendar_id: uuid.UUID) -> Calendar:
        return found(self.calendars().filter(id=calendar_id).first(), "Calendar")
