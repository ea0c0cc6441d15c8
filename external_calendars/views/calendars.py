"""Endpoints of calendars, kept here or elsewhere."""

import uuid
from typing import Any

from rest_framework.response import Response

from availability.models import Calendar
from availability.records import calendar_record
from availability.schemas import CALENDAR, CALENDAR_EXAMPLE
from availability.services import change_calendar
from availability.views import calendars
from availability.views.scoped import ResourceScopedView, found
from external_calendars.providers.base import Access
from external_calendars.schemas import CONNECTED, FEED_ADDRESS, STOPPED, TRIED
from external_calendars.serializers.calendars import (
    ChangeSerializer,
    ConnectSerializer,
    KindSerializer,
)
from external_calendars.services import (
    MOST_CONNECTED,
    choose_primary,
    connect,
    disconnect,
    look_now,
    reconnect,
    remove_calendar,
    try_out,
)
from scheduling.api.bodies import read_body_as
from scheduling.api.errors import Invalid
from scheduling.api.schema import described, one

ACCESS = ("address", "username", "password")


def refuse_key(request: Any) -> None:
    """No request that carries a password is kept, not even as a hash of it; and another server is
    asked, which is not to happen inside the transaction of a kept answer."""
    if "HTTP_IDEMPOTENCY_KEY" in request.META:
        raise Invalid.at(
            "Idempotency-Key", "Is not taken where a calendar is connected: its server is asked."
        )


class CalendarsView(calendars.CalendarsView):
    @described(
        summary="Make a calendar, or connect one",
        description="With a `provider` other than `service` it is connected: its server is asked"
        " first, for up to ten seconds, and workers keep its events here from then on. A resource"
        f" has at most {MOST_CONNECTED} of them. 422 with `problem` where it can't be, 409"
        " `already_exists` where the resource has it already; no Idempotency-Key is taken.",
        request=ConnectSerializer,
        response=one(CALENDAR),
        status=201,
        examples={"kept here": {"data": CALENDAR_EXAMPLE}, "connected": CONNECTED},
        request_examples={
            "private": {"name": "Private", "resource_id": CALENDAR_EXAMPLE["resource_id"]},
            "a feed": {
                "resource_id": CALENDAR_EXAMPLE["resource_id"],
                "provider": "ics",
                "address": FEED_ADDRESS,
            },
        },
    )
    def post(self, request: Any) -> Response:
        provider = read_body_as(KindSerializer, request)["provider"]
        if provider == Calendar.SERVICE:
            return super().post(request)
        refuse_key(request)
        given = read_body_as(ConnectSerializer, request)
        resource = self.resources().filter(id=given["resource_id"]).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        calendar = connect(
            resource=resource,
            provider=provider,
            access=Access(*[given.get(name) or "" for name in ACCESS]),
            given=given,
            is_primary=given.get("provider_primary"),
            now=self.now,
        )
        return Response({"data": calendar_record(calendar)}, status=201)


class CalendarView(calendars.CalendarView):
    @described(
        summary="Change a calendar",
        description="Of a connected one also how it is reached: what is not sent of `address`,"
        " `username` and `password` stays, its server is asked first, and a problem that had"
        " stopped it is over. Another collection or feed takes the place of what was read; no"
        " Idempotency-Key is taken then.",
        request=ChangeSerializer,
        response=one(CALENDAR),
        examples={
            "kept here": {"data": CALENDAR_EXAMPLE},
            "connected": CONNECTED,
            "stopped by a problem": STOPPED,
        },
        request_examples={"another colour": {"backgroundcolor": "#1f6feb"}},
    )
    def put(self, request: Any, calendar_id: uuid.UUID) -> Response:
        given = read_body_as(ChangeSerializer, request)
        calendar = self._find(calendar_id)
        access = {name: given.pop(name) for name in ACCESS if name in given}
        is_primary = given.pop("provider_primary", None)
        if access:
            refuse_key(request)
            reconnect(calendar, access, texts=given, is_primary=is_primary, now=self.now)
            return Response({"data": calendar_record(self._find(calendar_id))})
        if is_primary is not None:
            choose_primary(calendar, is_primary, now=self.now)
            calendar = self._find(calendar_id)
        return Response({"data": calendar_record(change_calendar(calendar, given))})

    @described(
        summary="Remove a calendar",
        description="What stands in it blocks no more; of a connected one all that came from there"
        " goes, and what was written there stays. 409 `in_use` for a resource's last own one, and"
        " while it holds bookings that are not completed.",
        status=204,
    )
    def delete(self, request: Any, calendar_id: uuid.UUID) -> Response:
        remove_calendar(self._find(calendar_id), now=self.now)
        return Response(status=204)


class ConnectedView(ResourceScopedView):
    """What can be done with a calendar that is kept elsewhere."""

    def find_calendar(self, calendar_id: uuid.UUID) -> Calendar:
        return found(self.calendars().filter(id=calendar_id).first(), "Calendar")


class TestView(ConnectedView):
    query_like = True

    @described(
        summary="Try whether a connected calendar can be used",
        description="Asks its server now, for up to ten seconds, and changes nothing. 422 for one"
        " that is kept here.",
        response=one(TRIED),
    )
    def post(self, request: Any, calendar_id: uuid.UUID) -> Response:
        verdict = try_out(self.find_calendar(calendar_id))
        tried = {
            "ok": not verdict.trouble,
            "problem": verdict.trouble or None,
            "text": verdict.text,
            "access": verdict.access or None,
            "seconds": round(verdict.seconds, 3),
        }
        return Response({"data": tried})


class SyncView(ConnectedView):
    @described(
        summary="Look at a connected calendar now",
        description="Puts it in line for a worker, also where a problem had stopped it; `synced_at`"
        " and `progress` tell how that goes. 422 for one that is kept here.",
        response=one(CALENDAR),
        examples={"in line": CONNECTED},
    )
    def post(self, request: Any, calendar_id: uuid.UUID) -> Response:
        calendar = look_now(self.find_calendar(calendar_id), now=self.now)
        return Response({"data": calendar_record(calendar)})


class DisconnectView(ConnectedView):
    @described(
        summary="Let go of a connected calendar",
        description="It stays as one that is kept here, with its bookings and without what came"
        " from there; its secrets and its feed go. What was written there stays there. 422 for one"
        " that is kept here.",
        response=one(CALENDAR),
        examples={"kept here now": {"data": CALENDAR_EXAMPLE}},
    )
    def post(self, request: Any, calendar_id: uuid.UUID) -> Response:
        calendar = disconnect(self.find_calendar(calendar_id), now=self.now)
        return Response({"data": calendar_record(calendar)})
