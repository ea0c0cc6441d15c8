"""Endpoints of events."""

import uuid
from datetime import datetime

from rest_framework.response import Response

from availability.models import Event, overlap
from availability.records import EventRecord
from availability.serializers.events import (
    EventCalendarSerializer,
    EventSerializer,
    NewEventSerializer,
)
from availability.services import change_event, create_event, delete_event
from availability.views.base_views import STAMPS, ResourceScopedView
from common.api.ordering import BOUND, order_query_parameters
from common.api.search_conditions import EVENT_SEARCH, filter_by_search
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.errors import Invalid
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of

EVENT_EXAMPLE = EventRecord.example()
ORDERS = STAMPS | {"start": "start", "end": "end"}


class EventsView(ResourceScopedView):
    paginated = True

    @describe_endpoint(
        summary="List the events that overlap a range",
        response=page_of(EventRecord),
        description="Events that only touch the range are omitted.",
        query={
            "start": BOUND | {"required": True, "examples": ["2026-12-01T00:00:00+01:00"]},
            "end": BOUND | {"required": True, "examples": ["2026-12-31T00:00:00+01:00"]},
            "search": search_of(EVENT_SEARCH, f"calendar.id:{EVENT_EXAMPLE['calendar_id']}"),
            **order_query_parameters(ORDERS),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        start, end = self._range()
        terms = self.query.search(EVENT_SEARCH)
        rows = filter_by_search(
            self.readable_events().filter(overlap(start, end)), terms, EVENT_SEARCH
        )
        return self.list_page(
            request,
            self.filter_and_order(rows, ORDERS),
            lambda row: EventRecord.of(row, self.zone),
        )

    @describe_endpoint(
        summary="Create an event",
        description="Events are not checked: an event may overlap bookings and other events.",
        request=NewEventSerializer,
        response=data_object(EventRecord),
        status=201,
        request_examples={
            "a congress": {
                key: EVENT_EXAMPLE[key] for key in ("calendar_id", "what", "start", "end")
            },
            "a holiday": {
                "calendar_id": EVENT_EXAMPLE["calendar_id"],
                "what": "Holiday",
                "all_day": True,
                "start": "2026-12-24",
                "end": "2026-12-27",
            },
        },
    )
    def post(self, request: ApiRequest) -> Response:
        calendar_id = read_body_as(EventCalendarSerializer, request)["calendar_id"]
        calendar = (
            self.readable_calendars().select_related("resource").filter(id=calendar_id).first()
        )
        if calendar is None:
            raise Invalid.at("calendar_id", "There is no such calendar.")
        given = read_body_as(NewEventSerializer, request, zone=calendar.resource.timezone)
        event = create_event(calendar=calendar, given=given)
        return Response({"data": EventRecord.of(event, self.zone)}, status=201)

    def _range(self) -> tuple[datetime, datetime]:
        start = self.query.bound("start", self.input_zone, self.now)
        end = self.query.bound("end", self.input_zone, self.now)
        if start is None or end is None:
            bounds = {"start": start, "end": end}
            raise Invalid(
                {name: ["This field is required."] for name, value in bounds.items() if not value}
            )
        if end <= start:
            raise Invalid.at("end", "Must be after the start.")
        return start, end


class EventView(ResourceScopedView):
    @describe_endpoint(summary="An event", response=data_object(EventRecord))
    def get(self, request: ApiRequest, event_id: uuid.UUID) -> Response:
        return Response({"data": EventRecord.of(self._find(event_id), self.zone)})

    @describe_endpoint(
        summary="Change an event",
        description="409 `in_use` for the event of a booking: reschedule the booking instead.",
        request=EventSerializer,
        response=data_object(EventRecord),
        request_examples={"no longer block the time": {"busy": False}},
    )
    def put(self, request: ApiRequest, event_id: uuid.UUID) -> Response:
        event = self._find(event_id)
        given = read_body_as(EventSerializer, request, zone=event.resource.timezone, event=event)
        return Response({"data": EventRecord.of(change_event(event, given), self.zone)})

    @describe_endpoint(
        summary="Delete an event",
        description="409 `in_use` for the event of a booking: cancel the booking instead.",
        status=204,
    )
    def delete(self, request: ApiRequest, event_id: uuid.UUID) -> Response:
        delete_event(self._find(event_id))
        return Response(status=204)

    def _find(self, event_id: uuid.UUID) -> Event:
        return found_or_404(self.readable_events().filter(id=event_id).first(), "Event")
