"""Endpoints that hold a time while its booking is being made."""

import uuid
from typing import Any

from rest_framework.response import Response

from availability.holds import WIDGET_EXTENSIONS, extend_hold, find_hold, release_hold
from availability.models import Hold, Resource
from availability.records import hold_record
from bookings.hold_bodies import (
    ExtensionSerializer,
    HoldBodySerializer,
    read_new_hold,
    read_seconds,
)
from bookings.schemas import HOLD, HOLD_EXAMPLE
from bookings.services import reserve_time
from bookings.views.scoped import BookingScopedView
from scheduling.api.bodies import read_body_as
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.rates import client_address
from scheduling.api.schema import described, one


class HoldScopedView(BookingScopedView):
    def find_hold(self, reservation_id: uuid.UUID) -> Hold | None:
        """The hold of that id that the caller may see: its id is the capability."""
        return find_hold(self.app, reservation_id, resource_id=self.caller.resource_id)

    def answer_hold(self, hold: Hold, resource: Resource, status: int) -> Response:
        record = hold_record(hold, resource, self.zone, is_public=self.caller.is_widget)
        return Response({"data": record}, status=status)


class ReserveView(HoldScopedView):
    widget_methods = frozenset({"POST"})

    @described(
        summary="Hold a time until it is booked",
        description="Checked as a booking with the same keys would be; a project alone picks one"
        " of its free resources, in mode mutual all of them. Bookings and availability honour the"
        " hold. It is used up by `reservation_id` in POST /v2/bookings, once, for the same"
        " resource and a time inside its own, and it lapses by itself at `expires_at`. Notice, past"
        " and booking window are judged when the hold is made; the booking that uses it, through"
        " the same project, is not judged by them again. It counts in `max_per_day`.\n\n409"
        " `slot_taken`, `not_available`: as for a booking.\n\nWith a widget key it lasts the"
        " project's `reservation_time` at most (30 seconds without one), `calendar_id` and"
        " `settings` do not count, and an address has at most five open ones: the sixth is 429.",
        request=HoldBodySerializer,
        response=one(HOLD),
        status=201,
        request_examples={
            "a resource, for ten minutes": {
                "resource_id": HOLD_EXAMPLE["resource"]["id"],
                "start": HOLD_EXAMPLE["start"],
                "end": HOLD_EXAMPLE["end"],
                "reservation_time": 600,
            },
            "a project": {
                "project_id": "0193a4c2-0000-7000-8000-000000000014",
                "start": HOLD_EXAMPLE["start"],
                "end": HOLD_EXAMPLE["end"],
            },
        },
    )
    def post(self, request: Any) -> Response:
        new, place = read_new_hold(
            request.data,
            app=self.app,
            caller=self.caller,
            client_address=client_address(request),
            zone=self.input_zone,
            now=self.now,
        )
        hold = reserve_time(new, place=place, now=self.now)
        return self.answer_hold(hold, Resource.objects.get(id=hold.resource_id), 201)


class ExtendHoldView(HoldScopedView):
    widget_methods = frozenset({"PUT"})

    @described(
        summary="Let a hold last longer",
        description="It lasts `reservation_time` seconds from now. 409 `hold_expired`: it was used"
        " or given back, or it has lapsed. 409 `slot_taken`: an event, a booking or another hold"
        " has taken the time since. A widget key may extend a hold once; then 409 `policy`.",
        request=ExtensionSerializer,
        response=one(HOLD),
        request_examples={
            "two minutes more": {
                "reservation_id": HOLD_EXAMPLE["reservation_id"],
                "reservation_time": 120,
            }
        },
    )
    def put(self, request: Any) -> Response:
        given = read_body_as(ExtensionSerializer, request)
        hold = self.find_hold(given["reservation_id"])
        if hold is None:
            raise Invalid.at("reservation_id", "There is no such hold.")
        hold = extend_hold(
            hold,
            seconds=read_seconds(given, hold.project, self.caller),
            now=self.now,
            max_extensions=WIDGET_EXTENSIONS if self.caller.is_widget else None,
        )
        return self.answer_hold(hold, hold.resource, 200)


class HoldView(HoldScopedView):
    widget_methods = frozenset({"DELETE"})

    @described(
        summary="Give a held time back",
        description="409 `hold_expired`: it was used, or it has lapsed.",
        status=204,
    )
    def delete(self, request: Any, reservation_id: uuid.UUID) -> Response:
        hold = self.find_hold(reservation_id)
        if hold is None:
            raise NotFound("Hold")
        release_hold(hold, now=self.now)
        return Response(status=204)
