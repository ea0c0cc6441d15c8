"""Endpoints that apply actions to a booking and reschedule it."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from availability.models import Calendar
from availability.public_access import (
    check_max_length_without_project,
    check_resources_are_in_no_project,
)
from bookings.booking_input import check_is_of_project, target_calendar
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.pages.action_links import RESCHEDULE, BadLink, read_expiry
from bookings.serializers.bodies import (
    ACTIONS,
    ActionBodySerializer,
    ActionInputSerializer,
    ActionRequestSerializer,
    RescheduleSerializer,
    RescheduleTargetSerializer,
)
from bookings.serializers.responses import BookingSerializer
from bookings.services import THIS, StepStart, apply_action, reschedule_booking
from bookings.views.base import INCLUDE_QUERY, BookingScopedViewSet
from common.api.fields import array_as_object
from common.api.serializers import read_body_as, read_values_as
from common.api.views import found_or_404
from common.errors import Forbidden, Invalid, NotFound
from common.messages import Message
from common.openapi.components import text_response
from common.openapi.generator import named_examples, parameters

BY_ID = "id"
NEEDS_SIGNATURE = (
    "Moving this booking requires the `signature` of a link in an e-mail, unless the project's"
    " setting `public_reschedule` is `id`."
)
GRAPH_TABLE = "\n".join(
    ["| graph | state | action | next state |", "|---|---|---|---|"]
    + [
        f"| {graph.name} | {state} | {action} | {next_state} |"
        for graph in GRAPHS.values()
        for (state, action), next_state in graph.steps.items()
    ]
)


def read_message(body: Mapping[str, Any], action: str) -> str:
    """Return the message in the input under the action's name. Raises Invalid with its path."""
    inputs = {} if body.get(action) is None else array_as_object(body[action])
    if not isinstance(inputs, dict):
        raise Invalid.at(action, Message("Must be an object."))
    try:
        given = read_values_as(ActionInputSerializer, inputs)
    except Invalid as error:
        errors = error.fields["errors"].items()
        raise Invalid({f"{action}.{key}": value for key, value in errors}) from error
    return given.get("message") or ""


describe_move: Any = extend_schema(
    summary="Move a booking to another time, or to another resource",
    description="POST and PUT are the same. The booking keeps its id. The new time is checked"
    " like a new booking; after a refused move the booking keeps its old time. With a"
    " widget key, the project's policies apply, and `signature` is required unless the"
    " project's `public_reschedule` is `id`. Widget keys can't move groups.",
    request=RescheduleSerializer,
    responses={200: BookingSerializer},
    parameters=parameters(query=INCLUDE_QUERY),
    examples=named_examples(
        request={
            "an hour later": {
                "start": "2026-11-23T10:00:00+01:00",
                "end": "2026-11-23T10:30:00+01:00",
            }
        }
    ),
)


class BookingActions(BookingScopedViewSet):
    """The actions of a booking's graph, and the move to another time."""

    optional_bodies = frozenset({"apply_action"})

    @property
    def may_compare(self) -> bool:
        return not self.caller.is_widget

    @extend_schema(methods=["POST"], operation_id="applyBookingActionByPost")
    @extend_schema(
        operation_id="applyBookingAction",
        summary="Apply an action to a booking",
        description="PUT and POST are the same. 409 `action_not_allowed` if the graph does not"
        " allow the action in the booking's state; `slot_taken` if the next state blocks time"
        " and the time is taken.\n\n" + GRAPH_TABLE,
        request=ActionRequestSerializer,
        responses={200: BookingSerializer},
        parameters=parameters(
            query=INCLUDE_QUERY,
            path={
                "action": text_response("An action of the booking's graph.", enum=sorted(ACTIONS))
            },
        ),
        examples=named_examples(
            request={
                "with a message": {"cancel": {"message": "We are ill, sorry."}},
                "without": {},
            }
        ),
    )
    @action(detail=True, methods=["put", "post"], url_path="<str:action>")
    def apply_action(self, request: Request, booking_id: uuid.UUID, action: str) -> Response:
        if action not in ACTIONS:
            raise NotFound("Action")
        includes = self.includes()
        body = array_as_object(request.data)
        if not isinstance(body, dict):
            raise Invalid.at("body", Message("Must be an object."))
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
            only_projects=self.caller.projects,
        )
        return self.answer_booking(booking, includes, 200)

    @describe_move
    @action(detail=True, methods=["post"])
    def reschedule(self, request: Request, booking_id: uuid.UUID) -> Response:
        includes = self.includes()
        rows = self.bookings().select_related("resource", "project", "event")
        booking = found_or_404(rows.filter(id=booking_id).first(), "Booking")
        target = read_body_as(RescheduleTargetSerializer, request)
        calendar = self._find_calendar(booking, target.get("resource_id"))
        resource = calendar.resource if calendar else booking.resource
        given = read_body_as(RescheduleSerializer, request, zone=resource.timezone)
        start = given.get("start") or booking.event.start
        end = given.get("end") or booking.event.end
        resources = given.get("resources") or {}
        step = StepStart(given["step"], given.get("start")) if given.get("step") else None
        self._check_may_choose(booking, resources, step)
        if self.caller.is_widget:
            if booking.project_id is None:
                check_resources_are_in_no_project(self.caller, [resource.id])
            check_max_length_without_project(self.caller, booking.project, start, end)
            check_may_move_publicly(booking, given.get("signature") or "", now=self.now)
            self.check_public_limits(request)
        booking = reschedule_booking(
            app=self.app,
            booking_id=booking_id,
            start=start,
            end=end,
            calendar=calendar,
            resources=resources,
            step=step,
            actor=self.actor,
            now=self.now,
            message=given.get("message") or "",
            scope=THIS if self.caller.is_widget else given.get("scope") or THIS,
            only_resource=self.caller.resource_id,
        )
        return self.answer_booking(booking, includes, 200)

    @describe_move
    @reschedule.mapping.put
    def reschedule_by_put(self, request: Request, booking_id: uuid.UUID) -> Response:
        return self.reschedule(request, booking_id)

    def _check_may_choose(
        self, booking: Booking, resources: Mapping[str, Any], step: StepStart | None
    ) -> None:
        """Raise Forbidden: a resource's key moves its own bookings, a widget key chooses only among
        what the project requires and moves visits as a whole.
        """
        if step and (self.caller.resource_id or self.caller.is_widget):
            raise Forbidden("This key can't move a step alone.")
        own = booking.requires or booking.visit
        has_requirements = own or (booking.project and booking.project.derives_resources)
        is_public = self.caller.is_widget and not has_requirements
        if resources and (self.caller.resource_id or is_public):
            raise Forbidden("This key can't change the resources of the booking.")

    def _find_calendar(self, booking: Booking, resource_id: Any) -> Calendar | None:
        """Return the first calendar of the new resource; None: the resource does not change."""
        if resource_id is None or resource_id == booking.resource_id:
            return None
        calendar = target_calendar(self.app, resource_id)
        if calendar is None or self.caller.resource_id:
            raise Invalid.at("resource_id", "There is no such resource.")
        if booking.project_id and self.caller.is_bound_to_projects:
            check_is_of_project(booking.project_id, calendar)
        return calendar


def check_may_move_publicly(booking: Booking, signature: str, *, now: datetime) -> None:
    """Raise Forbidden unless the link may move the booking, or its id is enough."""
    if booking.project and booking.project.settings.get("public_reschedule") == BY_ID:
        return
    if not signature:
        raise Forbidden(NEEDS_SIGNATURE)
    version = booking.link_version
    if now >= read_expiry(booking.id, RESCHEDULE, signature, version=version):
        raise BadLink("This link has expired.")
