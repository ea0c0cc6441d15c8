"""Endpoints of calendars of the service and of connected calendars."""

import uuid
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from availability.models import Calendar, Resource
from availability.serializers.calendars import CalendarSerializer
from availability.services import change_calendar
from availability.views.calendars import CalendarViewSet
from bookings.pages.email_links import allowed_redirect
from common.api.serializers import read_body_as
from common.errors import Invalid
from common.openapi.generator import named_examples
from external_calendars.examples import CONNECTED, FEED_ADDRESS, STOPPED
from external_calendars.grants import request_consent
from external_calendars.models import Grant
from external_calendars.providers.base import CalendarAccess
from external_calendars.serializers import (
    CalendarKindSerializer,
    CalendarTestSerializer,
    ConnectedCalendarSerializer,
    ConnectSerializer,
    ConsentSerializer,
    ConsentUrlSerializer,
)
from external_calendars.services import (
    MAX_CONNECTED,
    choose_primary,
    connect_calendar,
    disconnect_calendar,
    grant_access,
    reconnect_calendar,
    remove_calendar,
    request_sync,
    test_connection,
)

CALENDAR_EXAMPLE = CalendarSerializer.example()
ACCESS = ("address", "username", "password")


def refuse_idempotency_key(request: Request) -> None:
    """Refuse an Idempotency-Key.

    A request with a password is not stored, not even as a hash, and the transaction of a stored
    answer must not wait for another server.
    """
    if "HTTP_IDEMPOTENCY_KEY" in request.META:
        raise Invalid.at("Idempotency-Key", "Not supported when connecting a calendar.")


class ConnectableCalendarViewSet(CalendarViewSet):
    serializer_class = CalendarSerializer
    query_actions = frozenset({"test"})
    unrepeatable_actions = frozenset({"connect"})  # it calls a server

    @extend_schema(
        summary="Create or connect a calendar",
        description="With a `provider` other than `service`, the service connects the calendar: it"
        " contacts the server for at most ten seconds, and workers then sync the events. A resource"
        f" has at most {MAX_CONNECTED} connected calendars. 422 with `problem` if connecting fails,"
        " 409 `already_exists` if the resource already has the calendar. Connecting takes no"
        " Idempotency-Key.",
        request=ConnectSerializer,
        examples=named_examples(
            request={
                "private": {"name": "Private", "resource_id": CALENDAR_EXAMPLE["resource_id"]},
                "a feed": {
                    "resource_id": CALENDAR_EXAMPLE["resource_id"],
                    "provider": "ics",
                    "address": FEED_ADDRESS,
                },
            },
            response={"kept here": {"data": CALENDAR_EXAMPLE}, "connected": CONNECTED},
        ),
    )
    def create(self, request: Request) -> Response:
        provider = read_body_as(CalendarKindSerializer, request)["provider"]
        if provider == Calendar.SERVICE:
            return super().create(request)
        refuse_idempotency_key(request)
        given = read_body_as(ConnectSerializer, request)
        grant = self._find_grant(given)
        calendar = connect_calendar(
            resource=self._find_resource(given["resource_id"]),
            provider=provider,
            access=grant_access(grant, given.get("address") or "")
            if grant
            else CalendarAccess(*[given.get(name) or "" for name in ACCESS]),
            grant=grant,
            given=given,
            is_primary=given.get("provider_primary"),
            now=self.now,
        )
        return Response({"data": CalendarSerializer.render(calendar)}, status=201)

    def _find_resource(self, resource_id: uuid.UUID) -> Resource:
        resource = self.readable_resources().filter(id=resource_id).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        return resource

    def _find_grant(self, given: Mapping[str, Any]) -> Grant | None:
        """Return the grant of the body; one that the caller sees at a connected calendar."""
        if "grant_id" not in given:
            return None
        grants = Grant.objects.filter(
            id=given["grant_id"],
            provider=given["provider"],
            connections__calendar__in=self.readable_calendars(),
        )
        grant = grants.first()
        if grant is None:
            raise Invalid.at("grant_id", "There is no such grant.")
        return grant

    @extend_schema(
        summary="Ask a person for a calendar at Google or Microsoft",
        description="Returns the address of the provider's consent page. The person agrees there,"
        " the service connects the calendar, and the person returns to `redirect_url`. With"
        " `calendar_id`, a connected calendar is used with a new permission of the same account.",
        request=ConsentSerializer,
        responses={201: ConsentUrlSerializer},
        examples=named_examples(
            request={
                "Google": {
                    "provider": "google",
                    "resource_id": CALENDAR_EXAMPLE["resource_id"],
                    "redirect_url": "https://app.example.com/settings/calendars",
                }
            }
        ),
    )
    @action(detail=False, methods=["post"])
    def connect(self, request: Request) -> Response:
        given = read_body_as(ConsentSerializer, request)
        if not allowed_redirect(self.app, given["redirect_url"]):
            raise Invalid.at("redirect_url", "This is not one of the app's redirect_urls.")
        calendar = self._find_granted(given) if "calendar_id" in given else None
        url = request_consent(
            resource=calendar.resource if calendar else self._find_resource(given["resource_id"]),
            provider=given["provider"],
            redirect_url=given["redirect_url"],
            calendar=calendar,
            wanted=given.get("name", ""),
            is_primary=given.get("provider_primary"),
            now=self.now,
        )
        return Response({"data": ConsentUrlSerializer.render({"url": url})}, status=201)

    def _find_granted(self, given: Mapping[str, Any]) -> Calendar:
        rows = self.readable_calendars().select_related("connection__grant", "resource")
        calendar = rows.filter(id=given["calendar_id"], provider=given["provider"]).first()
        if calendar is None:
            raise Invalid.at("calendar_id", "There is no such calendar.")
        return calendar

    @extend_schema(
        summary="Change a calendar",
        description="With `address`, `username` or `password`, the service reconnects the"
        " calendar: it contacts the server first, keeps absent values, and clears the"
        " problem. If the address is another collection or feed, its events replace the"
        " stored ones. Reconnecting takes no Idempotency-Key.",
        request=ConnectedCalendarSerializer(partial=True),
        examples=named_examples(
            request={"another colour": {"backgroundcolor": "#1f6feb"}},
            response={
                "kept here": {"data": CALENDAR_EXAMPLE},
                "connected": CONNECTED,
                "stopped by a problem": STOPPED,
            },
        ),
    )
    def update(self, request: Request, calendar_id: uuid.UUID) -> Response:
        given = read_body_as(ConnectedCalendarSerializer, request, partial=True)
        calendar = self.get_object()
        access = {name: given.pop(name) for name in ACCESS if name in given}
        is_primary = given.pop("provider_primary", None)
        if access:
            refuse_idempotency_key(request)
            reconnect_calendar(calendar, access, texts=given, is_primary=is_primary, now=self.now)
            return Response({"data": CalendarSerializer.render(self.get_object())})
        if is_primary not in (None, calendar.provider_primary):
            choose_primary(calendar, is_primary, now=self.now)
            calendar = self.get_object()
        return Response({"data": CalendarSerializer.render(change_calendar(calendar, given))})

    @extend_schema(
        summary="Delete a calendar",
        description="Its events no longer block time. For a connected calendar, the stored events"
        " are deleted, and the events at the provider stay. 409 `in_use` for a resource's"
        " last calendar of the service, and while the calendar has bookings that are not"
        " completed.",
    )
    def destroy(self, request: Request, calendar_id: uuid.UUID) -> Response:
        remove_calendar(self.get_object(), now=self.now)
        return Response(status=204)

    @extend_schema(
        summary="Test a connected calendar",
        description="Contacts the server for at most ten seconds and changes nothing. 422 for a"
        " calendar of the service.",
        responses={200: CalendarTestSerializer},
    )
    @action(detail=True, methods=["post"])
    def test(self, request: Request, calendar_id: uuid.UUID) -> Response:
        result = test_connection(self.get_object())
        return Response({"data": CalendarTestSerializer.render(result)})

    @extend_schema(
        summary="Sync a connected calendar now",
        description="A worker syncs the calendar at once, also after a problem has stopped the"
        " syncs. `synced_at` and `progress` show the state. 422 for a calendar of the service.",
        responses={200: CalendarSerializer},
        examples=named_examples(response={"in line": CONNECTED}),
    )
    @action(detail=True, methods=["post"])
    def sync(self, request: Request, calendar_id: uuid.UUID) -> Response:
        calendar = request_sync(self.get_object())
        return Response({"data": CalendarSerializer.render(calendar)})

    @extend_schema(
        summary="Disconnect a calendar",
        description="It becomes a calendar of the service and keeps its bookings. Its events from"
        " the provider, its secrets and its feed are deleted. Events at the provider stay."
        " 422 for a calendar of the service.",
        responses={200: CalendarSerializer},
        examples=named_examples(response={"a calendar of the service": {"data": CALENDAR_EXAMPLE}}),
    )
    @action(detail=True, methods=["post"])
    def disconnect(self, request: Request, calendar_id: uuid.UUID) -> Response:
        calendar = disconnect_calendar(self.get_object(), now=self.now)
        return Response({"data": CalendarSerializer.render(calendar)})
