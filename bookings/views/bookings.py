"""Endpoints of bookings: list, create, read, change, delete."""

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.models import Credential, ListingTally
from apps_config.pagination import tally_of
from bookings.booking_input import check_may_write_note, parse_new_booking, public_body
from bookings.filters import FILTER_NAMES, ORDERS, SEARCH, BookingFilter, is_about_person
from bookings.models import Booking
from bookings.serializers.bodies import BookingBodySerializer, BookingChangeSerializer
from bookings.serializers.customers import CustomerSerializer
from bookings.serializers.responses import (
    ALL_INCLUDES,
    WHOLE_BOOKING_EXAMPLE,
    WRITTEN,
    BookingEntrySerializer,
    BookingSerializer,
    UnverifiedSerializer,
    booking_record,
    booking_writer,
    with_includes,
)
from bookings.services import (
    change_booking,
    delete_completed_booking,
    hold_until_verified,
    make_booking,
    needs_verification,
)
from bookings.views.actions import BookingActions
from bookings.views.base import INCLUDE_QUERY
from common.api.fields import array_as_object
from common.api.serializers import read_body_as
from common.api.unknown_keys import UnknownKeys
from common.errors import Invalid
from common.limits.rate_limit import customer_network
from common.openapi.generator import named_examples, parameters

CUSTOMER_EXAMPLE = CustomerSerializer.example()
NEW_BOOKING_WORDS = (
    "The keys of the event can be nested under `event` or beside the others. Required: `start`,"
    " `end` (at most 366 days later), a customer, one of `calendar_id`, `resource_id` and"
    " `project_id`, and `what` unless the project has one. A refused request changes"
    " nothing.\n\n409 `slot_taken`: the time overlaps an event, a booking or a hold."
    " `not_available`: availability is enforced, and the time breaks a rule. Both list the"
    " next free times. `hold_expired`: the hold of `reservation_id` has expired or was"
    " already used.\n\nWith the project's setting `check_external`, the service first queries"
    " the connected calendars, for at most three seconds. If a calendar is busy:"
    " `slot_taken`.\n\nWith a widget key, only these keys are used: start, end, what, where,"
    " description, customer(s), project_id, resource_id, reservation_id, graph, related and meta."
    " `project_id` is required (403 `forbidden`); without it, the app's setting"
    " `public_resources` allows resources that are in no project, for at most 24 hours. The rules"
    " are always enforced, and the start must be one that the project offers. `what`, `where` and"
    " `description` count only if the project has none, and customers do not read them. The"
    " project's `public_customers` limits the customers. Above a limit of the app's settings: 429."
    " If its `errors` name `challenge`, the request passes with a solved challenge (GET"
    " /v2/challenge). The app can require one always. The response to a widget key"
    " can include `customer_action_links`, also with `reschedule` and, if the booking takes place,"
    " `calendar` (a file for the customer's calendar), and `pay` while the payment is awaited."
)
VERIFICATION_TEXT = (
    "With a widget key and the project's setting `verify_email`: the time is held for 15 minutes,"
    " and the customer gets a code by e-mail. POST /v2/bookings/reserve/:id/verify makes the"
    " booking. At most three codes an hour and address; then 429. The same request again with the"
    " `reservation_id` gets the same answer; another body replaces the first one, and a new code is"
    " sent.\n\nThe body is"
    ' `{"data": {"reservation_id", "expires_at", "verification": "email"}}`. It has no schema here:'
    " in typed clients, `data` of other keys would no longer be a booking alone."
)


def _has_nested_include(body: Mapping[str, Any], include: str) -> bool:
    """Return whether the body has the inner part of a nested include: `resource.calendars`."""
    outer, _, inner = include.partition(".")
    return isinstance(body[outer], Mapping) and inner in body[outer]


ENTRY_COLUMNS = tuple(BookingEntrySerializer.response_fields())


class BookingViewSet(BookingActions):
    serializer_class = BookingSerializer
    lookup_url_kwarg = "booking_id"
    limited_actions = counted_actions = frozenset({"create", "reschedule"})
    creator_actions = frozenset({"create"})
    search_fields = SEARCH
    search_example = "customer.email:marty@example.com"
    filterset_class = BookingFilter
    ordering_fields = ORDERS

    def get_queryset(self) -> QuerySet[Booking]:
        return self.bookings()

    @extend_schema(
        summary="List bookings",
        description="All filters must match. `start` and `end`: bookings that overlap the range."
        " Absent: no limit.",
        parameters=parameters(query=INCLUDE_QUERY),
    )
    def list(self, request: Request) -> Response:
        includes = self.includes()
        self._check_may_ask()
        rows = with_includes(self.filter_queryset(self.bookings()), includes)
        if not includes:
            rows = rows.only(*ENTRY_COLUMNS)
        write = booking_writer(includes, self.zone)
        return self.list_page(request, rows, write, tally=self._tally())

    def _check_may_ask(self) -> None:
        """Raise Forbidden if the query asks for what the key may not read of people."""
        terms = self.query.search(SEARCH)
        names = ("customer_email", "customer_external_id")
        if any(map(self.query.text, names)) or any(is_about_person(term.field) for term in terms):
            self.caller.check_scopes(Credential.PEOPLE_READ)

    def _tally(self) -> QuerySet[ListingTally] | None:
        """Return the tally of the bookings that match the query; None if none counts them."""
        conditions = self.query.values.keys() & {*FILTER_NAMES, "search", "updated_since"}
        if self._scope() or not conditions <= {"state"}:
            return None
        states = self.query.text("state")
        parts = {"part__in": states.split(",")} if states else {}
        return tally_of(self.app, ListingTally.BOOKINGS, **parts)

    @extend_schema(
        summary="Create a booking",
        description=NEW_BOOKING_WORDS,
        request=BookingBodySerializer,
        responses={201: BookingSerializer, 202: OpenApiResponse(None, VERIFICATION_TEXT)},
        parameters=parameters(query=INCLUDE_QUERY),
        examples=named_examples(
            request={
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
                    "customer": {
                        key: CUSTOMER_EXAMPLE[key] for key in ("name", "email", "timezone")
                    },
                },
                "flat": {
                    "start": "2026-11-23 09:00:00",
                    "end": "2026-11-23 09:30:00",
                    "what": "Check-up",
                    "project_id": "0193a4c2-0000-7000-8000-000000000014",
                    "customer": {key: CUSTOMER_EXAMPLE[key] for key in ("name", "email")},
                },
            }
        ),
    )
    def create(self, request: Request) -> Response:
        includes = self.includes()
        new, target = parse_new_booking(
            request.data, app=self.app, caller=self.caller, zone=self.input_zone, now=self.now
        )
        waits_for_code = self.caller.is_widget and needs_verification(target.project)
        target.public_request = self.check_public_limits(request)
        self.made_at_once = target.quantity
        if waits_for_code:
            row = hold_until_verified(
                new,
                target=target,
                body=public_body(request.data),
                zone=self.input_zone,
                client_address=customer_network(request),
                now=self.now,
            )
            return Response({"data": UnverifiedSerializer.render(row, self.zone)}, status=202)
        booking = make_booking(new, target=target, actor=self.actor, now=self.now)
        return self.answer_booking(booking, self.includes_with_series(booking, includes), 201)

    @extend_schema(
        summary="Get a booking",
        description="Contains attributes, event, calendar, resource, customers, project, meta,"
        " available_actions and event_notifications. `include` adds other parts.",
        parameters=parameters(query=INCLUDE_QUERY),
        examples=named_examples(response={"whole": {"data": WHOLE_BOOKING_EXAMPLE}}),
    )
    def retrieve(self, request: Request, booking_id: uuid.UUID) -> Response:
        includes = self.includes(ALL_INCLUDES)
        booking = self.find_booking(booking_id, includes)
        return Response({"data": booking_record(booking, includes, self.zone)})

    @extend_schema(
        summary="Change a booking",
        description="Changes customers, `what`, `where`, `description`, `meta`, `external_id`, the"
        " outcome, the internal `note` and the `quantity`. Absent keys do not change. Calendars and"
        " reminders use the new values. A new e-mail address, `what`, `where` or `quantity` causes"
        " `updated` e-mails to customers and owner, and calls of webhooks with `booking.updated` in"
        " `kinds`."
        " A new address also ends the links in earlier e-mails. A changed `note` causes neither. A"
        " new address may exceed the limits per customer: they are not checked. More units or seats"
        " must be free. Every other key must equal the value in GET; otherwise 422 on this key. To"
        " change time or resource, use POST /v2/bookings/:id/reschedule. To change the state, use"
        " an action.",
        request=BookingChangeSerializer,
        parameters=parameters(query=INCLUDE_QUERY),
        examples=named_examples(
            request={
                "a note": {"meta": {"invoice": "4711"}},
                "a misspelt address": {"customer": {"email": "marty@example.com"}},
                "another room": {"where": "Harbour Dental, room 2"},
                "clear the outcome": {"outcome": None},
            }
        ),
    )
    def update(self, request: Request, booking_id: uuid.UUID) -> Response:
        includes = self.includes()
        given = read_body_as(BookingChangeSerializer, request)
        check_may_write_note(self.caller, given)
        if not given.keys().isdisjoint({"customers", "note"}):
            self.caller.check_scopes(Credential.PEOPLE_READ)
        body = array_as_object(request.data) or {}
        self._check_read_only_unchanged(
            booking_id, body.keys() - BookingChangeSerializer().fields, body
        )
        booking = change_booking(
            app=self.app,
            booking_id=booking_id,
            changes=given,
            actor=self.actor,
            now=self.now,
        )
        return self.answer_booking(booking, includes, 200)

    def _check_read_only_unchanged(
        self, booking_id: uuid.UUID, names: Collection[str], body: Mapping[str, Any]
    ) -> None:
        """Raise Invalid if read-only keys differ from what GET returns. Raises NotFound."""
        includes = [
            include
            for name, include in self.known_includes().items()
            if include.key in names and ("." not in name or _has_nested_include(body, name))
        ]
        booking = self.find_booking(booking_id, includes)
        shown = booking_record(booking, includes, self.zone, WRITTEN)
        known = BookingSerializer().response_fields().keys() | BookingBodySerializer().fields
        errors = {
            name: ["Can't be changed here." if name in known else "Is not a known key."]
            for name in sorted(names)
            if name not in shown or body[name] != shown[name]
        }
        if errors:
            raise Invalid(errors)

    @extend_schema(
        summary="Delete a completed booking",
        description="The booking no longer appears in any response. 409 `action_not_allowed` if it"
        " is not completed.",
    )
    def destroy(self, request: Request, booking_id: uuid.UUID) -> Response:
        self.check_is_visible(booking_id)
        delete_completed_booking(app=self.app, booking_id=booking_id, now=self.now)
        return Response(status=204)

    def find_unknown_keys(self, request: Request) -> UnknownKeys:
        """PUT refuses them itself: it knows the keys of all includes."""
        return [] if self.action == "update" else super().find_unknown_keys(request)
