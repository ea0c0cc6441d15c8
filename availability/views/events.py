"""Endpoints of events."""

import uuid
from datetime import datetime

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from availability.models import Event, EventQuerySet, overlap
from availability.serializers.events import NO_EVENT_TEXTS, EventCalendarSerializer, EventSerializer
from availability.services import change_event, create_event, delete_event
from availability.views.base_views import STAMPS, ResourceScopedViewSet
from common.api.ordering import BOUND
from common.api.search_conditions import EVENT_SEARCH
from common.api.serializers import read_body_as
from common.errors import Invalid
from common.openapi.component_registry import Json
from common.openapi.generator import named_examples, parameters

EVENT_EXAMPLE = EventSerializer.example()


class EventViewSet(ResourceScopedViewSet):
    serializer_class = EventSerializer
    lookup_url_kwarg = "event_id"
    search_fields = EVENT_SEARCH
    search_example = f"calendar.id:{EVENT_EXAMPLE['calendar_id']}"
    ordering_fields = STAMPS | {"start": "start", "end": "end"}

    def get_queryset(self) -> EventQuerySet:
        return self.readable_events()

    @extend_schema(
        summary="List the events that overlap a range",
        description="Events that only touch the range are omitted.",
        parameters=parameters(
            query={
                "start": BOUND | {"required": True, "examples": ["2026-12-01T00:00:00+01:00"]},
                "end": BOUND | {"required": True, "examples": ["2026-12-31T00:00:00+01:00"]},
            }
        ),
    )
    def list(self, request: Request) -> Response:
        start, end = self._range()
        rows = self.filter_queryset(self.get_queryset().filter(overlap(start, end)))
        return self.list_page(request, rows, self.record)

    @extend_schema(
        summary="Create an event",
        description="Events are not checked: an event may overlap bookings and other events.",
        examples=named_examples(
            request={
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
            }
        ),
    )
    def create(self, request: Request) -> Response:
        calendar_id = read_body_as(EventCalendarSerializer, request)["calendar_id"]
        calendar = (
            self.readable_calendars().select_related("resource").filter(id=calendar_id).first()
        )
        if calendar is None:
            raise Invalid.at("calendar_id", "There is no such calendar.")
        given = read_body_as(EventSerializer, request, zone=calendar.resource.timezone)
        event = create_event(calendar=calendar, given=given)
        return Response({"data": self.record(event)}, status=201)

    @extend_schema(summary="An event")
    def retrieve(self, request: Request, event_id: uuid.UUID) -> Response:
        return Response({"data": self.record(self.get_object())})

    @extend_schema(
        summary="Change an event",
        description="409 `in_use` for the event of a booking: reschedule the booking instead.",
        examples=named_examples(request={"no longer block the time": {"busy": False}}),
    )
    def update(self, request: Request, event_id: uuid.UUID) -> Response:
        event = self.get_object()
        given = read_body_as(
            EventSerializer, request, partial=True, zone=event.resource.timezone, event=event
        )
        return Response({"data": self.record(change_event(event, given))})

    @extend_schema(
        summary="Delete an event",
        description="409 `in_use` for the event of a booking: cancel the booking instead.",
    )
    def destroy(self, request: Request, event_id: uuid.UUID) -> Response:
        delete_event(self.get_object())
        return Response(status=204)

    def record(self, event: Event) -> Json:
        """Render the event; without texts about customers for a key that may not read people."""
        record = EventSerializer.render(event, self.zone)
        return record if self.caller.reads_people else record | NO_EVENT_TEXTS

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
