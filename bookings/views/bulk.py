"""Endpoint to create or change many bookings in one request."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from availability.reserve.events import NotAvailable
from bookings.booking_input import parse_new_booking
from bookings.models import Booking, Bulk
from bookings.serializers.bodies import (
    ACTIONS,
    BulkChangeSerializer,
    BulkChangesSerializer,
    NewBulkSerializer,
)
from bookings.serializers.customers import CustomerSerializer
from bookings.serializers.responses import (
    WRITTEN,
    BulkOutcomeSerializer,
    booking_record,
    with_includes,
)
from bookings.services import THIS, apply_action, change_booking, make_booking
from bookings.services.bulk import BulkResult, create_bulk, run_bulk
from bookings.views.actions import read_message
from bookings.views.base import INCLUDE_QUERY, BookingScopedViewSet
from common.api.fields import array_as_object
from common.api.serializers import read_body_as, read_values_as
from common.errors import Internal, Invalid, Refusal
from common.openapi.generator import named_examples, parameters

CUSTOMER_EXAMPLE = CustomerSerializer.example()


class BulkViewSet(BookingScopedViewSet):
    serializer_class = BulkOutcomeSerializer
    is_singleton = True
    tag = "bookings"

    @extend_schema(
        operation_id="createBookings",
        summary="Create many bookings",
        description="1 to 100 bodies of POST /v2/bookings. Each booking succeeds or fails on its"
        " own, and the results keep the order. With `delete_all_on_error`, one failure rolls"
        " back all (424 `not_kept`). With `stop_on_first_error`, bookings after the first"
        " failure are not attempted (424 `not_attempted`). With `relate_bookings`, an action"
        " on one booking applies to all. The response is always 200: check each `status`. With"
        " an `Idempotency-Key`, a busy database fails the whole request with 503 and rolls it"
        " back; you can repeat it.",
        request=NewBulkSerializer,
        responses={200: BulkOutcomeSerializer(many=True)},
        parameters=parameters(query=INCLUDE_QUERY),
        examples=named_examples(
            request={
                "two that belong together": {
                    "relate_bookings": True,
                    "delete_all_on_error": True,
                    "bookings": [
                        {
                            "start": f"2026-11-23 {hour}:00:00",
                            "end": f"2026-11-23 {hour}:30:00",
                            "what": what,
                            "resource_id": "0193a4c2-0000-7000-8000-000000000011",
                            "customer": {key: CUSTOMER_EXAMPLE[key] for key in ("name", "email")},
                        }
                        for hour, what in (("09", "Check-up"), ("10", "Cleaning"))
                    ],
                }
            }
        ),
    )
    def create(self, request: Request) -> Response:
        includes = self.includes()
        given = read_body_as(NewBulkSerializer, request)
        wanted = given.get("relate_bookings") is True
        with create_bulk(self.app, wanted=wanted, now=self.now) as bulk:
            message = given.get("message") or ""
            changes = [self._deferred_creation(body, bulk, message) for body in given["bookings"]]
            outcomes = self._change_all(changes, given)
        return self._answer(outcomes, includes, 201)

    @extend_schema(
        operation_id="updateBookings",
        summary="Change many bookings",
        description="1 to 100 changes, in order. Each has the `id` of a booking, and `meta` or an"
        " `action` with its input under the action's name. `message` is that of every action"
        " without one of its own. An action applies to related bookings only with"
        " `apply_to_bulked_bookings`. Otherwise as in POST.",
        request=BulkChangesSerializer,
        responses={200: BulkOutcomeSerializer(many=True)},
        parameters=parameters(query=INCLUDE_QUERY),
        examples=named_examples(
            request={
                "a note, and a cancellation": {
                    "stop_on_first_error": True,
                    "bookings": [
                        {"id": "0193a4c2-0000-7000-8000-000000000030", "meta": {"invoice": "4711"}},
                        {
                            "id": "0193a4c2-0000-7000-8000-000000000030",
                            "action": "cancel",
                            "cancel": {"message": "We are ill, sorry."},
                        },
                    ],
                },
                "two cancellations with one message": {
                    "message": "We are ill, sorry. Please choose another time.",
                    "bookings": [
                        {"id": f"0193a4c2-0000-7000-8000-0000000000{number}", "action": "cancel"}
                        for number in (30, 31)
                    ],
                },
            }
        ),
    )
    def update(self, request: Request) -> Response:
        includes = self.includes()
        given = read_body_as(BulkChangesSerializer, request)
        message = given.get("message") or ""
        changes = [self._deferred_change(body, message) for body in given["bookings"]]
        return self._answer(self._change_all(changes, given), includes, 200)

    def _deferred_creation(
        self, body: Any, bulk: Bulk | None, message: str
    ) -> Callable[[], Booking]:
        def make() -> Booking:
            new, target = parse_new_booking(
                body, app=self.app, caller=self.caller, zone=self.input_zone, now=self.now
            )
            new = replace(new, bulk=bulk, message=message)
            return make_booking(new, target=target, actor=self.actor, now=self.now)

        return make

    def _deferred_change(self, body: Any, message: str) -> Callable[[], Booking]:
        def change() -> Booking:
            item = array_as_object(body)
            given = read_values_as(BulkChangeSerializer, item)
            self.check_is_visible(given["id"])
            if given.get("action"):
                return self._act(given, item, message)
            changes = {"meta": given["meta"]}
            return change_booking(
                app=self.app,
                booking_id=given["id"],
                changes=changes,
                actor=self.actor,
                now=self.now,
            )

        return change

    def _act(self, given: Mapping[str, Any], item: Mapping[str, Any], message: str) -> Booking:
        action = given["action"]
        if action not in ACTIONS:
            raise Invalid.at("action", f"Must be one of {', '.join(sorted(ACTIONS))}.")
        return apply_action(
            app=self.app,
            booking_id=given["id"],
            action=action,
            actor=self.actor,
            now=self.now,
            message=read_message(item, action) or message,
            scope=given.get("scope") or THIS,
            with_bulk=given.get("apply_to_bulked_bookings") is True,
            only_resource=self.caller.resource_id,
            only_projects=self.caller.projects,
        )

    def _change_all(self, changes: list, given: Mapping[str, Any]) -> list[BulkResult]:
        return run_bulk(
            changes,
            app=self.app,
            bodies=given["bookings"],
            stop_on_first_error=given.get("stop_on_first_error") is True,
            all_or_none=given.get("delete_all_on_error") is True,
            honours_idempotency_key=self.keeps_answer,
        )

    def _answer(self, outcomes: list[BulkResult], includes: list, status: int) -> Response:
        made = {outcome.booking.id: outcome.booking for outcome in outcomes if outcome.booking}
        shown = {
            key: self.includes_with_series(booking, includes) if status == 201 else includes
            for key, booking in made.items()
        }
        needed = max(shown.values(), key=len, default=includes)
        if needed:
            changed = Booking.objects.select_related("event").filter(id__in=made)
            rows = with_includes(changed, needed)
            made = {booking.id: booking for booking in rows}
        records: dict[uuid.UUID, Any] = {
            key: booking_record(booking, shown[key], self.zone, WRITTEN)
            for key, booking in made.items()
        }
        return Response(
            {
                "data": [
                    {"status": status, "booking": records[outcome.booking.id]}
                    if outcome.booking
                    else self._refused(position, outcome.refusal or Internal())
                    for position, outcome in enumerate(outcomes)
                ]
            }
        )

    def _refused(self, position: int, refusal: Refusal) -> dict[str, Any]:
        """Render the error as in a single request, with paths from the top of the bulk body."""
        if isinstance(refusal, NotAvailable):
            self.write_reasons(refusal)
        error = refusal.body("")
        del error["request_id"]
        if "errors" in error:
            error["errors"] = {
                f"bookings.{position}" + ("" if path == "body" else f".{path}"): messages
                for path, messages in error["errors"].items()
            }
        return {"status": refusal.status, "error": error}
