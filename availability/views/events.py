"""Endpoints of events."""

import uuid
from typing import Any

from rest_framework.response import Response

from availability.filters import (
    EVENT_SEARCH,
    apply_search,
)
from availability.models import Event
from availability.records import event_record
from availability.schemas import CALENDAR_EXAMPLE, EVENT, EVENT_EXAMPLE
from availability.serializers.events import (
    EventPlaceSerializer,
    EventSerializer,
    NewEventSerializer,
)
from availability.services import (
    change_event,
    create_event,
    delete_event,
)
from availability.views.scoped import CHANGES, STAMPS, ResourceScopedView, found
from scheduling.api.bodies import read_body_as
from scheduling.api.errors import Invalid
from scheduling.api.ordering import BOUND, UPDATED_SINCE, order_query
from scheduling.api.schema import described, one, page_of, search_of

ORDERS = STAMPS | {"start": "start", "end": "end"}


class EventsView(ResourceScopedView):
    paginated = True
    query_names = {"GET": (*CHANGES, "start", "end")}

    @described(
        summary="List the events that overlap a range",
        response=page_of(EVENT),
        description="What only touches the range is left out.",
        query={
            "start": BOUND | {"required": True, "examples": ["2026-12-01T00:00:00+01:00"]},
            "end": BOUND | {"required": True, "examples": ["2026-12-31T00:00:00+01:00"]},
            "search": search_of(EVENT_SEARCH, f"calendar.id:{CALENDAR_EXAMPLE['id']}"),
            **order_query(ORDERS),
            "updated_since": UPDATED_SINCE,
        },
    )
    def get(self, request: Any) -> Response:
        start, end = self._range()
        terms = self.query.search(EVENT_SEARCH)
        rows = apply_search(self.events().overlapping(start, end), terms, EVENT_SEARCH)
        rows = self.listed(rows, ORDERS)
        return self.list_page(request, rows, lambda row: event_record(row, self.zone))

    @described(
        summary="Put an event into a calendar",
        description="An event is a fact, not a request: it may overlap anything.",
        request=NewEventSerializer,
        response=one(EVENT),
        status=201,
        request_examples={
            "a congress": {
                key: EVENT_EXAMPLE[key] for key in ("calendar_id", "what", "start", "end")
            },
            "a holiday": {
                "calendar_id": CALENDAR_EXAMPLE["id"],
                "what": "Holiday",
                "all_day": True,
                "start": "2026-12-24",
                "end": "2026-12-27",
            },
        },
    )
    def post(self, request: Any) -> Response:
        calendar_id = read_body_as(EventPlaceSerializer, request)["calendar_id"]
        calendar = self.calendars().select_related("resource").filter(id=calendar_id).first()
        if calendar is None:
            raise Invalid.at("calendar_id", "There is no such calendar.")
        given = read_body_as(NewEventSerializer, request, zone=calendar.resource.timezone)
        event = create_event(calendar=calendar, given=given)
        return Response({"data": event_record(event, self.zone)}, status=201)

    def _range(self) -> tuple[Any, Any]:
        start = self.query.bound("start", self.input_zone, self.now)
        end = self.query.bound("end", self.input_zone, self.now)
        missing = {
            name: ["Is needed."] for name, value in (("start", start), ("end", end)) if not value
        }
        if missing:
            raise Invalid(missing)
        if end <= start:
            raise Invalid.at("end", "Must be after the start.")
        return start, end


class EventView(ResourceScopedView):
    @described(summary="An event", response=one(EVENT))
    def get(self, request: Any, event_id: uuid.UUID) -> Response:
        return Response({"data": event_record(self._find(event_id), self.zone)})

    @described(
        summary="Change an event",
        description="409 `in_use` for the event of a booking: reschedule that instead.",
        request=EventSerializer,
        response=one(EVENT),
        request_examples={"let others in": {"busy": False}},
    )
    def put(self, request: Any, event_id: uuid.UUID) -> Response:
        event = self._find(event_id)
        given = read_body_as(EventSerializer, request, zone=event.resource.timezone, event=event)
        return Response({"data": event_record(change_event(event, given), self.zone)})

    @described(
        summary="Remove an event",
        description="409 `in_use` for the event of a booking: cancel that instead.",
        status=204,
    )
    def delete(self, request: Any, event_id: uuid.UUID) -> Response:
        delete_event(self._find(event_id))
        return Response(status=204)

    def _find(self, event_id: uuid.UUID) -> Event:
        return found(self.events().filter(id=event_id).first(), "Event")
