"""Endpoints of calendars of the service and of connected calendars."""

import uuid

from rest_framework.response import Response

from availability.models import Calendar
from availability.records import CalendarRecord
from availability.services import change_calendar
from availability.views import calendars
from availability.views.base_views import ResourceScopedView
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.errors import Invalid
from common.openapi.generator import data_object, describe_endpoint
from external_calendars.providers.base import CalendarAccess
from external_calendars.records import CONNECTED, FEED_ADDRESS, STOPPED, CalendarTestRecord
from external_calendars.serializers import (
    CalendarKindSerializer,
    ConnectedCalendarSerializer,
    ConnectSerializer,
)
from external_calendars.services import (
    MAX_CONNECTED,
    choose_primary,
    connect_calendar,
    disconnect_calendar,
    reconnect_calendar,
    remove_calendar,
    request_sync,
    test_connection,
)

CALENDAR_EXAMPLE = CalendarRecord.example()
ACCESS = ("address", "username", "password")


def refuse_idempotency_key(request: ApiRequest) -> None:
    """Refuse an Idempotency-Key.

    A request with a password is not stored, not even as a hash, and the transaction of a stored
    answer must not wait for another server.
    """
    if "HTTP_IDEMPOTENCY_KEY" in request.META:
        raise Invalid.at("Idempotency-Key", "Not supported when connecting a calendar.")


class CreateOrConnectCalendarView(calendars.CalendarsView):
    @describe_endpoint(
        summary="Create or connect a calendar",
        description="With a `provider` other than `service`, the service connects the calendar: it"
        " contacts the server for at most ten seconds, and workers then sync the events. A resource"
        f" has at most {MAX_CONNECTED} connected calendars. 422 with `problem` if connecting fails,"
        " 409 `already_exists` if the resource already has the calendar. Connecting takes no"
        " Idempotency-Key.",
        request=ConnectSerializer,
        response=data_object(CalendarRecord),
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
    def post(self, request: ApiRequest) -> Response:
        provider = read_body_as(CalendarKindSerializer, request)["provider"]
        if provider == Calendar.SERVICE:
            return super().post(request)
        refuse_idempotency_key(request)
        given = read_body_as(ConnectSerializer, request)
        resource = self.readable_resources().filter(id=given["resource_id"]).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        calendar = connect_calendar(
            resource=resource,
            provider=provider,
            access=CalendarAccess(*[given.get(name) or "" for name in ACCESS]),
            given=given,
            is_primary=given.get("provider_primary"),
            now=self.now,
        )
        return Response({"data": CalendarRecord.of(calendar)}, status=201)


class ConnectableCalendarView(calendars.CalendarView):
    @describe_endpoint(
        summary="Change a calendar",
        description="With `address`, `username` or `password`, the service reconnects the"
        " calendar: it contacts the server first, keeps absent values, and clears the"
        " problem. If the address is another collection or feed, its events replace the"
        " stored ones. Reconnecting takes no Idempotency-Key.",
        request=ConnectedCalendarSerializer,
        response=data_object(CalendarRecord),
        examples={
            "kept here": {"data": CALENDAR_EXAMPLE},
            "connected": CONNECTED,
            "stopped by a problem": STOPPED,
        },
        request_examples={"another colour": {"backgroundcolor": "#1f6feb"}},
    )
    def put(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        given = read_body_as(ConnectedCalendarSerializer, request)
        calendar = self._find(calendar_id)
        access = {name: given.pop(name) for name in ACCESS if name in given}
        is_primary = given.pop("provider_primary", None)
        if access:
            refuse_idempotency_key(request)
            reconnect_calendar(calendar, access, texts=given, is_primary=is_primary, now=self.now)
            return Response({"data": CalendarRecord.of(self._find(calendar_id))})
        if is_primary is not None:
            choose_primary(calendar, is_primary, now=self.now)
            calendar = self._find(calendar_id)
        return Response({"data": CalendarRecord.of(change_calendar(calendar, given))})

    @describe_endpoint(
        summary="Delete a calendar",
        description="Its events no longer block time. For a connected calendar, the stored events"
        " are deleted, and the events at the provider stay. 409 `in_use` for a resource's"
        " last calendar of the service, and while the calendar has bookings that are not"
        " completed.",
        status=204,
    )
    def delete(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        remove_calendar(self._find(calendar_id), now=self.now)
        return Response(status=204)


class ConnectedView(ResourceScopedView):
    """Base of the endpoints of connected calendars."""

    def find_calendar(self, calendar_id: uuid.UUID) -> Calendar:
        return found_or_404(self.readable_calendars().filter(id=calendar_id).first(), "Calendar")


class TestConnectionView(ConnectedView):
    query_like = True

    @describe_endpoint(
        summary="Test a connected calendar",
        description="Contacts the server for at most ten seconds and changes nothing. 422 for a"
        " calendar of the service.",
        response=data_object(CalendarTestRecord),
    )
    def post(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        result = test_connection(self.find_calendar(calendar_id))
        return Response({"data": CalendarTestRecord.of(result)})


class SyncView(ConnectedView):
    @describe_endpoint(
        summary="Sync a connected calendar now",
        description="A worker syncs the calendar at once, also after a problem has stopped the"
        " syncs. `synced_at` and `progress` show the state. 422 for a calendar of the service.",
        response=data_object(CalendarRecord),
        examples={"in line": CONNECTED},
    )
    def post(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        calendar = request_sync(self.find_calendar(calendar_id))
        return Response({"data": CalendarRecord.of(calendar)})


class DisconnectView(ConnectedView):
    @describe_endpoint(
        summary="Disconnect a calendar",
        description="It becomes a calendar of the service and keeps its bookings. Its events from"
        " the provider, its secrets and its feed are deleted. Events at the provider stay."
        " 422 for a calendar of the service.",
        response=data_object(CalendarRecord),
        examples={"a calendar of the service": {"data": CALENDAR_EXAMPLE}},
    )
    def post(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        calendar = disconnect_calendar(self.find_calendar(calendar_id), now=self.now)
        return Response({"data": CalendarRecord.of(calendar)})
