"""Endpoints of bookings."""

import uuid
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.answers import reason_record
from availability.models import Calendar
from availability.placement import NotAvailable
from bookings.filters import (
    DIRECTIONS,
    FILTER_NAMES,
    ORDERS,
    SEARCH_FIELDS,
    BookingFilter,
    read_order,
    search_bookings,
)
from bookings.graphs import GRAPHS, STATES
from bookings.listing import page_rows, tallied_total
from bookings.models import Booking
from bookings.records import (
    INCLUDES,
    PUBLIC_INCLUDES,
    WHOLE,
    Include,
    booking_record,
    with_includes,
)
from bookings.requests import check_is_of_project, first_calendar, read_new_booking
from bookings.schemas import BOOKING, CUSTOMER_EXAMPLE, WHOLE_BOOKING_EXAMPLE
from bookings.serializers import (
    ActionInputSerializer,
    BookingBodySerializer,
    BookingChangeSerializer,
    RescheduleSerializer,
    RescheduleTargetSerializer,
)
from bookings.services import (
    Actor,
    apply_action,
    change_meta,
    create_booking,
    delete_booking,
    reschedule,
)
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import FLAG, text_of
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.fields import INSTANT_SCHEMA, LINES, array_as_object
from scheduling.api.filters import apply_filters
from scheduling.api.pagination import PAGE_NAMES, Page, envelope
from scheduling.api.schema import described, include_of, one, page_of, search_of

ACTIONS = frozenset(action for graph in GRAPHS.values() for _, action in graph.steps)
INCLUDE_QUERY = {"include": include_of(INCLUDES)}
ACTION_INPUT = {
    "type": ["object", "array", "null"],
    "maxItems": 0,
    "properties": {
        "message": {"type": ["string", "null"], "maxLength": 8000, "pattern": LINES},
    },
}
ACTION_BODY = {
    # Clients that can't write an empty object send an empty array.
    "type": ["object", "array"],
    "maxItems": 0,
    "description": "The inputs stand under the action's name.",
    "properties": dict.fromkeys(sorted(ACTIONS), ACTION_INPUT),
}
GRAPH_TABLE = "\n".join(
    ["| graph | state | action | next state |", "|---|---|---|---|"]
    + [
        f"| {graph.name} | {state} | {action} | {next_state} |"
        for graph in GRAPHS.values()
        if graph.bookable
        for (state, action), next_state in graph.steps.items()
    ]
)


NEW_BOOKING_WORDS = (
    "Takes the time or leaves nothing behind. Two forms, freely mixed: the keys of the event under"
    " `event`, or beside the others. Needed are `start`, `end` (at most 366 days later), a"
    " customer, one of `calendar_id`, `resource_id` and `project_id`, and `what` unless the project"
    " has one.\n\n409 `slot_taken`: the time overlaps what blocks the resource; `not_available`:"
    " availability is enforced, and the time breaks a rule. Both name the next free times.\n\n"
    "With a widget key only start, end, what, where, description, customer(s), participants,"
    " project_id, resource_id, graph and meta count; its rules are always enforced."
)


class BookingScopedView(TenantView):
    """What all booking endpoints share: whose bookings, which includes, who acts."""

    resource_methods = frozenset({"GET", "POST", "PUT", "DELETE"})

    def bookings(self) -> Any:
        """The bookings that the caller may see."""
        rows = Booking.objects.for_app(self.app)
        only = self.caller.resource_id
        return rows.filter(resource_id=only) if only else rows

    def includes(self, default: tuple[str, ...] = ()) -> list[Include]:
        known = PUBLIC_INCLUDES if self.caller.is_widget else INCLUDES
        names = dict.fromkeys([*default, *self.query.include(known)])
        return [known[name] for name in names]

    @property
    def actor(self) -> Actor:
        return Actor(name=self.caller.actor, source=self.caller.source)

    def check_is_visible(self, booking_id: uuid.UUID) -> None:
        """A resource's key may touch that resource's bookings only."""
        if self.caller.resource_id and not self.bookings().filter(id=booking_id).exists():
            raise NotFound("Booking")

    def answer(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Reasons are written here: what they say depends on who asks."""
        try:
            return super().answer(request, *args, **kwargs)
        except NotAvailable as refusal:
            records = [reason_record(reason) for reason in refusal.reasons]
            if self.caller.is_widget:
                records = [{key: one[key] for key in ("type", "text")} for one in records]
            refusal.fields["reasons"] = records
            raise

    def answer_booking(self, booking: Booking, includes: list[Include], status: int) -> Response:
        if includes:
            booking = with_includes(Booking.objects.all(), includes).get(id=booking.id)
        record = booking_record(booking, includes, self.zone)
        return Response({"data": record}, status=status)


class BookingsView(BookingScopedView):
    paginated = True
    widget_methods = frozenset({"POST"})
    query_names = {
        "GET": (*PAGE_NAMES, *FILTER_NAMES, "search", "include", "orderBy", "sortedBy"),
        "POST": ("include",),
    }

    @described(
        summary="List bookings",
        response=page_of(BOOKING),
        description="Filters narrow together. `start` and `end`: bookings whose event overlaps"
        " the range, each bound open if absent.",
        query={
            "state": text_of("Only bookings in this state.", enum=list(STATES)),
            "graph": text_of("Only bookings of this graph.", enum=list(GRAPHS)),
            "completed": FLAG | {"description": "Only those with no action left, or with one."},
            "start": INSTANT_SCHEMA,
            "end": INSTANT_SCHEMA,
            "updated_since": INSTANT_SCHEMA,
            "search": search_of(sorted(SEARCH_FIELDS), "customer.email:marty@example.com"),
            **INCLUDE_QUERY,
            "orderBy": text_of("What to sort by.", enum=list(ORDERS), default=ORDERS[0]),
            "sortedBy": text_of(
                "Ties go by the id, the same way.", enum=list(DIRECTIONS), default="desc"
            ),
        },
    )
    def get(self, request: Any) -> Response:
        page = Page.read(request)
        includes = self.includes()
        order = read_order(self.query)
        rows = self._narrowed()
        total = self._total(rows)
        found = page_rows(rows, order, page, total, with_includes(rows, includes))
        records = [booking_record(booking, includes, self.zone) for booking in found]
        return Response(envelope(request, page, total, records))

    def _narrowed(self) -> Any:
        terms = self.query.search(SEARCH_FIELDS)
        rows = search_bookings(self.bookings(), terms)
        return apply_filters(BookingFilter, self.query.values, rows, zone=self.input_zone)

    def _total(self, rows: Any) -> int:
        narrowing = self.query.values.keys() & {*FILTER_NAMES, "search"}
        if narrowing <= {"state"} and not self.caller.resource_id:
            return tallied_total(self.app, self.query.text("state"))
        return rows.count()

    @described(
        summary="Make a booking",
        description=NEW_BOOKING_WORDS,
        request=BookingBodySerializer,
        response=one(BOOKING),
        status=201,
        query=INCLUDE_QUERY,
        request_examples={
            "nested": {
                "graph": "instant",
                "action": "confirm",
                "event": {
                    "start": "2026-11-23T09:00:00+01:00",
                    "end": "2026-11-23T09:30:00+01:00",
                    "what": "Check-up",
                    "where": "Harbour Dental",
                    "calendar_id": "0193a4c2-0000-7000-8000-000000000012",
                },
                "customer": {key: CUSTOMER_EXAMPLE[key] for key in ("name", "email", "timezone")},
            },
            "flat": {
                "start": "2026-11-23 09:00:00",
                "end": "2026-11-23 09:30:00",
                "what": "Check-up",
                "project_id": "0193a4c2-0000-7000-8000-000000000014",
                "customer": {key: CUSTOMER_EXAMPLE[key] for key in ("name", "email")},
            },
        },
    )
    def post(self, request: Any) -> Response:
        includes = self.includes()
        new, place = read_new_booking(
            request.data, app=self.app, caller=self.caller, zone=self.input_zone, now=self.now
        )
        booking = create_booking(new, place=place, actor=self.actor, now=self.now)
        return self.answer_booking(booking, includes, 201)


class BookingView(BookingScopedView):
    query_names = {"GET": ("include",), "PUT": ("include",)}

    @described(
        summary="A booking, whole",
        description="With attributes, event, calendar, resource, customers, project, meta,"
        " available_actions and event_notifications; `include` adds the others.",
        response=one(BOOKING),
        query=INCLUDE_QUERY,
        examples={"whole": {"data": WHOLE_BOOKING_EXAMPLE}},
    )
    def get(self, request: Any, booking_id: uuid.UUID) -> Response:
        includes = self.includes(WHOLE)
        booking = with_includes(self.bookings(), includes).filter(id=booking_id).first()
        if booking is None:
            raise NotFound("Booking")
        return Response({"data": booking_record(booking, includes, self.zone)})

    @described(
        summary="Change a booking's meta",
        request=BookingChangeSerializer,
        response=one(BOOKING),
        query=INCLUDE_QUERY,
        request_examples={"a note": {"meta": {"invoice": "4711"}}},
    )
    def put(self, request: Any, booking_id: uuid.UUID) -> Response:
        includes = self.includes()
        given = read_body_as(BookingChangeSerializer, request)
        self.check_is_visible(booking_id)
        booking = change_meta(
            app=self.app, booking_id=booking_id, meta=given.get("meta", {}), now=self.now
        )
        return self.answer_booking(booking, includes, 200)

    @described(
        summary="Hide a completed booking",
        description="It is gone from every answer. 409 `action_not_allowed` before that.",
        status=204,
    )
    def delete(self, request: Any, booking_id: uuid.UUID) -> Response:
        self.check_is_visible(booking_id)
        delete_booking(app=self.app, booking_id=booking_id, now=self.now)
        return Response(status=204)


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
        message = self._read_message(request, action)
        self.check_is_visible(booking_id)
        booking = apply_action(
            app=self.app,
            booking_id=booking_id,
            action=action,
            actor=self.actor,
            now=self.now,
            message=message,
        )
        return self.answer_booking(booking, includes, 200)

    post = put

    def _read_message(self, request: Any, action: str) -> str:
        body = array_as_object(request.data)
        if not isinstance(body, dict):
            raise Invalid.at("body", "Must be an object.")
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
        " is its capability.",
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
