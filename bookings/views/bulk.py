"""Many bookings made or changed in one request."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rest_framework.response import Response

from availability.placement import NotAvailable
from bookings.models import Booking, Bulk
from bookings.records import changed_record, with_includes
from bookings.requests import read_new_booking
from bookings.schemas import BOOKING, CHANGED_EXAMPLE, CUSTOMER_EXAMPLE
from bookings.serializers import (
    ACTIONS,
    BulkChangeSerializer,
    BulkChangesSerializer,
    NewBulkSerializer,
)
from bookings.services import THIS, apply_action, change_booking, make_booking
from bookings.services.bulk import Outcome, change_all, related
from bookings.views.actions import read_message
from bookings.views.scoped import INCLUDE_QUERY, BookingScopedView
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import ERROR_OF_ONE, component
from scheduling.api.errors import Invalid
from scheduling.api.fields import array_as_object
from scheduling.api.schema import described, many

OUTCOME = component(
    "BulkOutcome",
    {
        "type": "object",
        "required": ["status"],
        "description": "A booking, or why there is none: one of the two.",
        "properties": {
            "status": {
                "type": "integer",
                "description": "As its own request would have been answered.",
            },
            "booking": BOOKING,
            "error": ERROR_OF_ONE,
        },
    },
    {"status": 201, "booking": CHANGED_EXAMPLE},
)


class BulkView(BookingScopedView):
    tag = "bookings"
    query_names = {"POST": ("include",), "PUT": ("include",)}

    @described(
        summary="Make many bookings",
        description="1 to 100 bodies of POST /v2/bookings, in order, each for itself: one that"
        " fails leaves the others alone. With `delete_all_on_error` nothing stays where one fails"
        " (424 `not_kept`), with `stop_on_first_error` those after it are not tried (424"
        " `not_attempted`). With `relate_bookings` an action on one of them is done to all. The"
        " answer is 200 in any case; look at each `status`. With an `Idempotency-Key` a database"
        " that is busy fails the whole request: 503, nothing stays, and it may be sent again.",
        request=NewBulkSerializer,
        response=many(OUTCOME),
        query=INCLUDE_QUERY,
        request_examples={
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
        },
    )
    def post(self, request: Any) -> Response:
        includes = self.includes()
        given = read_body_as(NewBulkSerializer, request)
        wanted = given.get("relate_bookings") is True
        with related(self.app, wanted=wanted, now=self.now) as bulk:
            changes = [self._making(body, bulk) for body in given["bookings"]]
            outcomes = self._change_all(changes, given)
        return self._answer(outcomes, includes, 201)

    @described(
        summary="Change many bookings",
        description="1 to 100 changes, in order: each the `id` of a booking with `meta`, or with an"
        " `action` and its inputs under the action's name. What an action related by a bulk"
        " request goes along only with `apply_to_bulked_bookings`. The rest as in POST.",
        request=BulkChangesSerializer,
        response=many(OUTCOME),
        query=INCLUDE_QUERY,
        request_examples={
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
            }
        },
    )
    def put(self, request: Any) -> Response:
        includes = self.includes()
        given = read_body_as(BulkChangesSerializer, request)
        changes = [self._changing(body) for body in given["bookings"]]
        return self._answer(self._change_all(changes, given), includes, 200)

    def _making(self, body: Any, bulk: Bulk | None) -> Callable[[], Booking]:
        def make() -> Booking:
            new, place = read_new_booking(
                body, app=self.app, caller=self.caller, zone=self.input_zone, now=self.now
            )
            return make_booking(
                replace(new, bulk=bulk), place=place, actor=self.actor, now=self.now
            )

        return make

    def _changing(self, body: Any) -> Callable[[], Booking]:
        def change() -> Booking:
            item = array_as_object(body)
            given = read_values_as(BulkChangeSerializer, item)
            self.check_is_visible(given["id"])
            if given.get("action"):
                return self._act(given, item)
            changes = {"meta": given["meta"]}
            return change_booking(
                app=self.app,
                booking_id=given["id"],
                changes=changes,
                actor=self.actor,
                now=self.now,
            )

        return change

    def _act(self, given: Mapping[str, Any], item: Mapping[str, Any]) -> Booking:
        action = given["action"]
        if action not in ACTIONS:
            raise Invalid.at("action", f"Must be one of {', '.join(sorted(ACTIONS))}.")
        return apply_action(
            app=self.app,
            booking_id=given["id"],
            action=action,
            actor=self.actor,
            now=self.now,
            message=read_message(item, action),
            scope=given.get("scope") or THIS,
            with_bulk=given.get("apply_to_bulked_bookings") is True,
            only_resource=self.caller.resource_id,
        )

    def _change_all(self, changes: list, given: Mapping[str, Any]) -> list[Outcome]:
        return change_all(
            changes,
            stop_on_first_error=given.get("stop_on_first_error") is True,
            all_or_none=given.get("delete_all_on_error") is True,
            is_kept=self.keeps_answer,
        )

    def _answer(self, outcomes: list[Outcome], includes: list, status: int) -> Response:
        made = {outcome.booking.id: outcome.booking for outcome in outcomes if outcome.booking}
        shown = {
            key: self.includes_of_new(booking, includes) if status == 201 else includes
            for key, booking in made.items()
        }
        needed = max(shown.values(), key=len, default=includes)
        if needed:
            changed = Booking.objects.select_related("event").filter(id__in=made)
            rows = with_includes(changed, needed)
            made = {booking.id: booking for booking in rows}
        records: dict[uuid.UUID, Any] = {
            key: changed_record(booking, shown[key], self.zone) for key, booking in made.items()
        }
        return Response(
            {
                "data": [
                    {"status": status, "booking": records[outcome.booking.id]}
                    if outcome.booking
                    else self._refused(position, outcome)
                    for position, outcome in enumerate(outcomes)
                ]
            }
        )

    def _refused(self, position: int, outcome: Outcome) -> dict[str, Any]:
        """The error as it would have been answered, its paths from the body's top."""
        refusal = outcome.refusal
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
