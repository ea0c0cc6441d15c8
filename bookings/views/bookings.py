"""Endpoints of bookings: the list, making one, one."""

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from rest_framework.response import Response

from bookings.filters import (
    FILTER_NAMES,
    ORDERS,
    SEARCH_FIELDS,
    BookingFilter,
    search_bookings,
)
from bookings.graphs import GRAPHS, STATES
from bookings.listing import page_rows, tallied_total
from bookings.models import OUTCOMES
from bookings.records import WHOLE, booking_record, changed_record, with_includes
from bookings.requests import read_new_booking
from bookings.schemas import BOOKING, CUSTOMER_EXAMPLE, WHOLE_BOOKING_EXAMPLE
from bookings.serializers import BookingBodySerializer, BookingChangeSerializer
from bookings.services import change_booking, delete_booking, make_booking
from bookings.views.scoped import INCLUDE_QUERY, BookingScopedView
from scheduling.api.bodies import read_body_as
from scheduling.api.components import FLAG, ID, text_of
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.fields import array_as_object
from scheduling.api.filters import apply_filters
from scheduling.api.ordering import BOUND, ORDER_NAMES, UPDATED_SINCE, order_query, read_order
from scheduling.api.pagination import PAGE_NAMES, Page, envelope
from scheduling.api.schema import described, one, page_of, search_of

NEW_BOOKING_WORDS = (
    "Takes the time or leaves nothing behind. Two forms, freely mixed: the keys of the event under"
    " `event`, or beside the others. Needed are `start`, `end` (at most 366 days later), a"
    " customer, one of `calendar_id`, `resource_id` and `project_id`, and `what` unless the project"
    " has one.\n\n409 `slot_taken`: the time overlaps what blocks the resource; `not_available`:"
    " availability is enforced, and the time breaks a rule. Both name the next free times."
    " `hold_expired`: the hold of `reservation_id` was used already, or has lapsed.\n\n"
    "With the project's setting `check_external` connected calendars are asked first, three seconds"
    " at most; what they are busy with is `slot_taken`.\n\n"
    "With a widget key only start, end, what, where, description, customer(s), participants,"
    " project_id, resource_id, reservation_id, graph and meta count; its rules are always enforced."
)


LISTING_NAMES = ("search", "include", "updated_since", *ORDER_NAMES)


class BookingsView(BookingScopedView):
    paginated = True
    widget_methods = frozenset({"POST"})
    query_names = {
        "GET": (*PAGE_NAMES, *FILTER_NAMES, *LISTING_NAMES),
        "POST": ("include",),
    }

    @described(
        summary="List bookings",
        response=page_of(BOOKING),
        description="Filters narrow together. `start` and `end`: bookings whose event overlaps"
        " the range, each bound open if absent.",
        query={
            "state": {
                "type": "string",
                "description": "Only bookings in this state, or in one of several separated by"
                " commas.",
                "pattern": f"^({'|'.join(STATES)})(,({'|'.join(STATES)}))*$",
                "examples": ["tentative,confirmed"],
            },
            "graph": text_of("Only bookings of this graph.", enum=list(GRAPHS)),
            "outcome": text_of("Only bookings with this outcome.", enum=list(OUTCOMES)),
            "completed": FLAG | {"description": "Only those with no action left, or with one."},
            **{
                name: ID | {"description": text}
                for name, text in (
                    ("resource_id", "Only bookings of this resource."),
                    ("project_id", "Only bookings of this project."),
                    ("calendar_id", "Only bookings in this calendar."),
                    ("series_id", "Only bookings of this series."),
                    ("owner_booking_id", "Only seats of this group."),
                )
            },
            "customer_email": text_of(
                "Only bookings of a customer with this address, in any case.",
                examples=["marty@example.com"],
            ),
            "start": BOUND,
            "end": BOUND,
            "updated_since": UPDATED_SINCE,
            "search": search_of(sorted(SEARCH_FIELDS), "customer.email:marty@example.com"),
            **INCLUDE_QUERY,
            **order_query(ORDERS),
        },
    )
    def get(self, request: Any) -> Response:
        page = Page.read(request)
        includes = self.includes()
        order = read_order(self.query, ORDERS)
        rows = self._narrowed()
        total = self._total(rows)
        found = page_rows(rows, order, page, total, with_includes(rows, includes))
        records = [booking_record(booking, includes, self.zone) for booking in found]
        return Response(envelope(request, page, total, records))

    def _narrowed(self) -> Any:
        terms = self.query.search(SEARCH_FIELDS)
        rows = search_bookings(self.bookings(), terms)
        values, zone = self.query.values, self.input_zone
        rows = apply_filters(BookingFilter, values, rows, zone=zone, now=self.now)
        return self.changed(rows)

    def _total(self, rows: Any) -> int:
        narrowing = self.query.values.keys() & {*FILTER_NAMES, "search", "updated_since"}
        if narrowing <= {"state"} and not self.caller.resource_id:
            states = self.query.text("state")
            return tallied_total(self.app, states.split(",") if states else None)
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
        booking = make_booking(new, place=place, actor=self.actor, now=self.now)
        return self.answer_booking(booking, self.includes_of_new(booking, includes), 201)


def _holds(body: Mapping[str, Any], name: str) -> bool:
    """Whether the body has the inner part of a nested include: `resource.calendars`."""
    outer, _, inner = name.partition(".")
    return isinstance(body[outer], Mapping) and inner in body[outer]


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
        summary="Change a booking",
        description="Customers, `what`, `where`, `description`, `meta` and the outcome; what is"
        " absent stays. Calendars and reminders follow; with a new address, `what` or `where` the"
        " customers and the owner are mailed (`updated`), and webhooks whose `kinds` name"
        " `booking.updated` are called. Any other key must say what GET shows: 422 on that key"
        " else. Time and resource change by POST /v2/bookings/:id/reschedule, the state by an"
        " action.",
        request=BookingChangeSerializer,
        response=one(BOOKING),
        query=INCLUDE_QUERY,
        request_examples={
            "a note": {"meta": {"invoice": "4711"}},
            "a misspelt address": {"customer": {"email": "marty@example.com"}},
            "another room": {"where": "Harbour Dental, room 2"},
            "nothing is known of the customer": {"outcome": None},
        },
    )
    def put(self, request: Any, booking_id: uuid.UUID) -> Response:
        includes = self.includes()
        given = read_body_as(BookingChangeSerializer, request)
        body = array_as_object(request.data) or {}
        self._check_others(booking_id, body.keys() - BookingChangeSerializer().fields, body)
        booking = change_booking(
            app=self.app,
            booking_id=booking_id,
            changes=given,
            actor=self.actor,
            now=self.now,
        )
        return self.answer_booking(booking, includes, 200)

    def _check_others(
        self, booking_id: uuid.UUID, names: Collection[str], body: Mapping[str, Any]
    ) -> None:
        """Keys that can't be changed may say what is shown anyway. Raises Invalid, NotFound."""
        includes = [
            include
            for name, include in self.known_includes().items()
            if include.key in names and ("." not in name or _holds(body, name))
        ]
        rows = with_includes(self.bookings().select_related("event"), includes)
        booking = rows.filter(id=booking_id).first()
        if booking is None:
            raise NotFound("Booking")
        shown = changed_record(booking, includes, self.zone)
        errors = {
            name: ["Can't be changed here."]
            for name in sorted(names)
            if name not in shown or body[name] != shown[name]
        }
        if errors:
            raise Invalid(errors)

    @described(
        summary="Hide a completed booking",
        description="It is gone from every answer. 409 `action_not_allowed` before that.",
        status=204,
    )
    def delete(self, request: Any, booking_id: uuid.UUID) -> Response:
        self.check_is_visible(booking_id)
        delete_booking(app=self.app, booking_id=booking_id, now=self.now)
        return Response(status=204)
