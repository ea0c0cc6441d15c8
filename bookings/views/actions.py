"""Endpoints that lead a booking on: its actions, and the move to another time."""

import uuid
from collections.abc import Mapping
from typing import Any

from rest_framework.response import Response

from availability.models import Calendar
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.requests import check_is_of_project, first_calendar
from bookings.schemas import BOOKING
from bookings.serializers import (
    ACTION_INPUT,
    ACTIONS,
    ActionBodySerializer,
    ActionInputSerializer,
    RescheduleSerializer,
    RescheduleTargetSerializer,
)
from bookings.services import SCOPES, THIS, apply_action, reschedule
from bookings.views.scoped import INCLUDE_QUERY, BookingScopedView
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import text_of
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.fields import array_as_object
from scheduling.api.schema import described, one

ACTION_BODY = {
    # Clients that can't write an empty object send an empty array.
    "type": ["object", "array"],
    "items": {},
    "maxItems": 0,
    "description": "The inputs stand under the action's name. `scope`: how much of its series goes"
    " along, `this` booking alone by default. `apply_to_bulked_bookings`: whether those go along,"
    " all or none, that a bulk request related to it; true by default.",
    "properties": {
        "scope": {"type": ["string", "null"], "enum": [*SCOPES, None]},
        "apply_to_bulked_bookings": {"type": ["boolean", "null"]},
        **dict.fromkeys(sorted(ACTIONS), ACTION_INPUT),
    },
}
GRAPH_TABLE = "\n".join(
    ["| graph | state | action | next state |", "|---|---|---|---|"]
    + [
        f"| {graph.name} | {state} | {action} | {next_state} |"
        for graph in GRAPHS.values()
        for (state, action), next_state in graph.steps.items()
    ]
)


class ActionView(BookingScopedView):
    query_names = {"PUT": ("include",), "POST": ("include",)}

    @described(
        summary="Lead a booking to its next state",
        description="PUT and POST are the same. 409 `action_not_allowed` where the graph does not"
        " lead on from the booking's state by this action, `slot_taken` where the next state"
        " would block and the time is gone.\n\n" + GRAPH_TABLE,
        request=ACTION_BODY,
        response=one(BOOKING),
        query=INCLUDE_QUERY,
        path={"action": text_of("An action of the booking's graph.", enum=sorted(ACTIONS))},
        request_examples={
            "with a message": {"cancel": {"message": "We are ill, sorry."}},
            "without": {},
        },
    )
    def put(self, request: Any, booking_id: uuid.UUID, action: str) -> Response:
        if action not in ACTIONS:
            raise NotFound("Action")
        includes = self.includes()
        body = array_as_object(request.data)
        if not isinstance(body, dict):
            raise Invalid.at("body", "Must be an object.")
        given = read_values_as(ActionBodySerializer, body)
        message = read_message(body, action)
        self.check_is_visible(booking_id)
        booking = apply_action(
            app=self.app,
            booking_id=booking_id,
            action=action,
            actor=self.actor,
            now=self.now,
            message=message,
            scope=given.get("scope") or THIS,
            with_bulk=given.get("apply_to_bulked_bookings") is not False,
            only_resource=self.caller.resource_id,
        )
        return self.answer_booking(booking, includes, 200)

    post = put


def read_message(body: Mapping[str, Any], action: str) -> str:
    """What the inputs under the action's name say. Raises Invalid with their paths."""
    inputs = {} if body.get(action) is None else array_as_object(body[action])
    if not isinstance(inputs, dict):
        raise Invalid.at(action, "Must be an object.")
    try:
        given = read_values_as(ActionInputSerializer, inputs)
    except Invalid as error:
        errors = error.fields["errors"].items()
        raise Invalid({f"{action}.{key}": value for key, value in errors}) from error
    return given.get("message") or ""


class RescheduleView(BookingScopedView):
    widget_methods = frozenset({"POST"})
    query_names = {"PUT": ("include",), "POST": ("include",)}

    @described(
        summary="Move a booking to another time, or to another resource",
        description="POST and PUT are the same. It keeps its id and is checked as at its making; a"
        " refused move keeps the old time. A widget key is bound by the project's policies: the id"
        " is its capability. It moves no groups, whose ids are public.",
        request=RescheduleSerializer,
        response=one(BOOKING),
        query=INCLUDE_QUERY,
        request_examples={
            "an hour later": {
                "start": "2026-11-23T10:00:00+01:00",
                "end": "2026-11-23T10:30:00+01:00",
            }
        },
    )
    def post(self, request: Any, booking_id: uuid.UUID) -> Response:
        includes = self.includes()
        booking = self.bookings().select_related("resource").filter(id=booking_id).first()
        if booking is None:
            raise NotFound("Booking")
        target = read_body_as(RescheduleTargetSerializer, request)
        calendar = self._find_calendar(booking, target.get("resource_id"))
        resource = calendar.resource if calendar else booking.resource
        given = read_body_as(RescheduleSerializer, request, zone=resource.timezone)
        booking = reschedule(
            app=self.app,
            booking_id=booking_id,
            start=given["start"],
            end=given["end"],
            calendar=calendar,
            actor=self.actor,
            now=self.now,
            message=given.get("message") or "",
            scope=THIS if self.caller.is_widget else given.get("scope") or THIS,
            only_resource=self.caller.resource_id,
        )
        return self.answer_booking(booking, includes, 200)

    put = post

    def _find_calendar(self, booking: Booking, resource_id: Any) -> Calendar | None:
        """The first calendar of the resource it moves to; None: it stays where it is."""
        if resource_id is None or resource_id == booking.resource_id:
            return None
        calendar = first_calendar(self.app, resource_id=resource_id)
        if calendar is None or self.caller.resource_id:
            raise Invalid.at("resource_id", "There is no such resource.")
        if booking.project_id and self.caller.is_widget:
            check_is_of_project(booking.project_id, calendar)
        return calendar
