"""Endpoints of holds."""

import uuid
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.models import Credential
from availability.models import Hold
from availability.reserve.holds import WIDGET_EXTENSIONS, extend_hold, find_hold, release_hold
from availability.serializers.events import HoldSerializer
from availability.serializers.resources import PublicResourceSerializer
from bookings.booking_input import may_use_hold, parse_new_booking
from bookings.hold_input import (
    ExtensionSerializer,
    HoldBodySerializer,
    parse_hold_seconds,
    parse_new_hold,
)
from bookings.models import SeatHold, UnverifiedBooking
from bookings.serializers.bodies import VerificationSerializer
from bookings.serializers.responses import BookingSerializer, UnverifiedSerializer
from bookings.services import (
    NewSeatHold,
    check_code,
    end_hold,
    extend_public_hold,
    find_verified,
    hold_seats,
    hold_time,
    make_booking,
    make_verified,
    send_new_code,
)
from bookings.services.seat_holds import extend_seat_hold, find_seat_hold, release_seat_hold
from bookings.views.base import INCLUDE_QUERY, BookingScopedViewSet
from common.api.serializers import read_body_as
from common.api.views import Handler, found_or_404
from common.errors import Invalid, NotFound
from common.limits.rate_limit import customer_network
from common.openapi.generator import named_examples, parameters

HOLD_EXAMPLE = HoldSerializer.example()


class HoldViewSet(BookingScopedViewSet):
    serializer_class = HoldSerializer
    lookup_url_kwarg = "reservation_id"
    limited_actions = frozenset({"create"})
    creator_actions = frozenset({"verify"})

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Check the code before the transaction of an Idempotency-Key: an error rolls it back."""
        if self.action == "verify" and not self.repeats_stored_answer(request):
            code = read_body_as(VerificationSerializer, request)["code"]
            self.find_hold_or_seat(kwargs["reservation_id"])
            check_code(self.app, kwargs["reservation_id"], code, now=self.now)
        return super().run(handler, request, *args, **kwargs)

    @extend_schema(
        operation_id="createHold",
        summary="Hold a time",
        description="A hold is checked like a booking with the same keys. With only a project,"
        " the service chooses a free resource, in mode mutual all resources. The hold blocks"
        " bookings and availability until `expires_at`. `reservation_id` in POST /v2/bookings"
        " uses it once, for the same resource and a time inside the held time. Minimum"
        " notice, past times and booking window are checked when the hold is created, and not"
        " again for a booking through the same project. Holds count in `max_per_day`.\n\nWith"
        " `related.owner_booking_id`, the hold keeps `quantity` seats of this group, at its"
        " `place`, for a booking of them.\n\n409"
        " `slot_taken`, `not_available`, `group_full`: as for a booking.\n\nWith a widget key, a"
        " hold lasts at most the project's `reservation_time` (or 30 seconds), `calendar_id` and"
        " `settings` are ignored, and a client address has at most five holds. All"
        " widget keys together hold at most a fifth of the free time that a project has on the"
        " day of the start, and at most 60 times a minute. Above these limits: 429. If its"
        " `errors` name `challenge`, the request passes with a solved challenge.",
        request=HoldBodySerializer,
        examples=named_examples(
            request={
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
            }
        ),
    )
    def create(self, request: Request) -> Response:
        new, target = parse_new_hold(
            request.data,
            app=self.app,
            caller=self.caller,
            client_address=customer_network(request),
            zone=self.input_zone,
            now=self.now,
        )
        target.public_request = self.check_public_limits(request, holds=True)
        self.made_at_once = target.quantity
        if isinstance(new, NewSeatHold):
            return self.answer_hold(hold_seats(new, target=target, now=self.now), 201)
        return self.answer_hold(hold_time(new, target=target, now=self.now), 201)

    @extend_schema(
        operation_id="extendHold",
        summary="Extend a hold",
        description="The hold lasts `reservation_time` seconds from now. 409 `hold_expired`: the"
        " hold was used or released, or has expired. 409 `slot_taken`: an event, a booking or"
        " another hold has taken the time since then. A widget key can extend a hold once, then"
        " 409 `policy`, and only a time that the project offers.",
        request=ExtensionSerializer,
        responses={200: HoldSerializer},
        examples=named_examples(
            request={
                "two minutes more": {
                    "reservation_id": HOLD_EXAMPLE["reservation_id"],
                    "reservation_time": 120,
                }
            }
        ),
    )
    @action(detail=False, methods=["put"])
    def extend(self, request: Request) -> Response:
        given = read_body_as(ExtensionSerializer, request)
        hold = self.find_hold(given["reservation_id"])
        if hold is None:
            raise Invalid.at("reservation_id", "There is no such hold.")
        if isinstance(hold, SeatHold):
            seconds = parse_hold_seconds(given, hold.group.project, self.caller)
            most = WIDGET_EXTENSIONS if self.caller.is_widget else None
            extended = extend_seat_hold(hold, seconds=seconds, now=self.now, max_extensions=most)
            return self.answer_hold(extended, 200)
        seconds = parse_hold_seconds(given, hold.project, self.caller)
        extend = extend_public_hold if self.caller.is_widget else extend_hold
        hold = extend(hold, seconds=seconds, now=self.now)
        return self.answer_hold(hold, 200)

    @extend_schema(
        operation_id="releaseHold",
        summary="Release a hold",
        description="409 `hold_expired`: the hold was used or has expired.",
    )
    def destroy(self, request: Request, reservation_id: uuid.UUID) -> Response:
        hold = self.find_hold_or_seat(reservation_id)
        if isinstance(hold, SeatHold):
            release_seat_hold(hold, now=self.now)
        elif not end_hold(self.app, reservation_id, now=self.now):
            release_hold(found_or_404(hold, "Hold"), now=self.now)
        return Response(status=204)

    @extend_schema(
        operation_id="verifyHold",
        summary="Verify an e-mail address and make its booking",
        description="For a booking that was answered with 202. Answers as POST /v2/bookings. A"
        " wrong code: 422 on `code`; `attempts_left` says how many more can be tried. The fifth"
        " wrong code ends the hold. 409 `hold_expired`: the hold has ended or expired, or the"
        " booking was made.",
        request=VerificationSerializer,
        responses={201: BookingSerializer},
        parameters=parameters(query=INCLUDE_QUERY),
        examples=named_examples(request={"the code of the e-mail": {"code": "012345"}}),
    )
    @action(detail=True, methods=["post"])
    def verify(self, request: Request, reservation_id: uuid.UUID) -> Response:
        includes = self.includes()
        code = read_body_as(VerificationSerializer, request)["code"]
        row = find_verified(self.app, reservation_id, code, now=self.now)
        hold = {} if row.group_id else {"reservation_id": str(row.id)}
        new, target = parse_new_booking(
            {**row.body, **hold},
            app=self.app,
            # The rules of public callers apply, whoever sends the code.
            caller=replace(self.caller, kind=Credential.WIDGET, resource_id=None),
            zone=row.zone,
            now=self.now,
        )
        booking = make_verified(
            row, make_booking, new, target=target, actor=self.actor, now=self.now
        )
        return self.answer_booking(booking, includes, 201)

    @extend_schema(
        operation_id="sendNewCode",
        summary="Send a new code",
        description="For a booking that was answered with 202: another code to the same address."
        " The earlier code no longer works, wrong ones are forgotten, and the hold lasts no longer."
        " At most three codes an hour and address; then 429. 409 `hold_expired`: the hold has ended"
        " or expired, or the booking was made.",
        request=None,
        responses={202: UnverifiedSerializer},
    )
    @action(detail=True, methods=["post"])
    def code(self, request: Request, reservation_id: uuid.UUID) -> Response:
        self.find_hold_or_seat(reservation_id)
        row = send_new_code(self.app, reservation_id, now=self.now)
        return Response({"data": UnverifiedSerializer.render(row, self.zone)}, status=202)

    def find_hold(self, reservation_id: uuid.UUID) -> Hold | SeatHold | None:
        """Return the hold if the caller may see it: its id is the capability."""
        hold = find_hold(self.app, reservation_id, resource_id=self.caller.resource_id)
        if hold:
            return hold if may_use_hold(self.app, self.caller, hold) else None
        of_seats = find_seat_hold(self.app, reservation_id)
        if of_seats and self.bookings().filter(id=of_seats.group_id).exists():
            return of_seats
        return None

    def find_hold_or_seat(self, reservation_id: uuid.UUID) -> Hold | SeatHold | None:
        """Return the hold, or None for a seat that waits for its code.

        Raises NotFound unless the caller may see it.
        """
        hold = self.find_hold(reservation_id)
        if hold is None and not self._seats().filter(id=reservation_id).exists():
            raise NotFound("Hold")
        return hold

    def _seats(self) -> QuerySet[UnverifiedBooking]:
        rows = UnverifiedBooking.objects.filter(app=self.app, group__isnull=False)
        if self.caller.resource_id:
            rows = rows.filter(group__resource=self.caller.resource_id)
        if self.caller.projects is not None:
            rows = rows.filter(project__in=self.caller.projects)
        return rows

    def answer_hold(self, hold: Hold | SeatHold, status: int) -> Response:
        record = HoldSerializer.render(hold, self.zone)
        if self.caller.is_widget:
            record["resource"] = PublicResourceSerializer.render(hold.resource)
        return Response({"data": record}, status=status)
