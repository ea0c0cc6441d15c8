"""Endpoints of resources."""

import uuid
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.authentication import WHOLE_BOOKINGS
from apps_config.models import Credential
from apps_config.permissions import check_may_make_resource_key, may_make_key
from availability.models import Resource
from availability.resources_by_email import with_email
from availability.serializers.resources import (
    RESOURCE_EXAMPLE,
    RESOURCE_INCLUDES,
    ResourceSerializer,
    ResourceZoneSerializer,
    with_resource_includes,
)
from availability.services import change_resource, create_resource, delete_resource
from availability.views.base_views import (
    BY_EXTERNAL_ID,
    BY_NAME,
    EXTERNAL_ID,
    RESOURCE_INCLUDE,
    ExternalIdViewSet,
    ResourceScopedViewSet,
)
from common.api.search_conditions import RESOURCE_SEARCH
from common.api.serializers import read_body_as
from common.api.views import found_or_404
from common.errors import Forbidden
from common.openapi.components import text_response
from common.openapi.generator import named_examples, parameters
from common.time.instants import find_zone


class ResourceViewSet(ExternalIdViewSet, ResourceScopedViewSet):
    serializer_class = ResourceSerializer
    lookup_url_kwarg = "resource_id"
    tag = "resources"
    etag_actions = frozenset({"retrieve", "retrieve_timezone"})
    secret_actions = {"create": ("api_token",)}
    search_fields = RESOURCE_SEARCH
    search_example = "name:Dr*"
    ordering_fields = BY_NAME

    def get_queryset(self) -> QuerySet[Resource]:
        return self.readable_resources()

    @extend_schema(
        summary="List resources",
        parameters=parameters(query=RESOURCE_INCLUDE),
    )
    def list(self, request: Request) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        rows = with_resource_includes(self.filter_queryset(self.get_queryset()), includes)
        return self.list_page(
            request, rows, lambda row: ResourceSerializer.render(row, include=includes)
        )

    @extend_schema(
        summary="Create a resource",
        description="The resource gets a first calendar, `Bookings`. The response contains the"
        " calendars. Only this response contains the resource's key.",
        parameters=parameters(query=RESOURCE_INCLUDE),
        examples=named_examples(
            request={
                "a dentist": {
                    "name": "Dr. Ada Berg",
                    "email": "ada@example.com",
                    "timezone": "Europe/Berlin",
                    "availability_constraints": [{"allow_hours": {"start": 9, "end": 17}}],
                }
            },
            response={"made": {"data": ResourceSerializer.example("calendars", "api_token")}},
        ),
    )
    def create(self, request: Request) -> Response:
        includes = {*self.query.include(RESOURCE_INCLUDES), "calendars"}
        given = self.read_given(request, None)
        issues_key = self.caller.has_scopes(Credential.KEYS_WRITE) and may_make_key(
            self.caller, Credential.RESOURCE
        )
        resource, api_token = create_resource(app=self.app, given=given, issues_key=issues_key)
        row = with_resource_includes(self.get_queryset(), includes).get(id=resource.id)
        record = ResourceSerializer.render(row, include=includes) | {"api_token": api_token}
        return Response({"data": record}, status=201)

    @extend_schema(
        summary="A resource",
        parameters=parameters(query=RESOURCE_INCLUDE),
    )
    def retrieve(self, request: Request, resource_id: uuid.UUID) -> Response:
        return self._answer(resource_id, self.query.include(RESOURCE_INCLUDES))

    @extend_schema(
        summary="Change a resource",
        description="`availability_constraints` and `tags` are replaced. A new time zone moves"
        " all-day events; events with a time keep their instant. A new `password` ends the"
        " tokens of POST /v2/auth.",
        parameters=parameters(query=RESOURCE_INCLUDE),
        examples=named_examples(
            request={
                "opening hours": {
                    "availability_constraints": [
                        {"block_weekends": {}},
                        {"allow_hours": {"start": 9, "end": "17:30"}},
                    ]
                }
            }
        ),
    )
    def update(self, request: Request, resource_id: uuid.UUID) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        resource = self.get_object()
        given = self.read_given(request, resource)
        for name, word in (("schedule_id", "schedule"), ("external_id", "external_id")):
            now = getattr(resource, name)
            if self.caller.resource_id and given.get(name, now) != now:
                raise Forbidden(f"Keys of resources can't change the {word}.")
        change_resource(resource, given)
        return self._answer(resource_id, includes)

    @extend_schema(
        operation_id="putResourceByExternalId",
        summary="Change the resource with an external id, or create it",
        description="Changes it as PUT /v2/resources/:id; without one, creates it as POST"
        " /v2/resources: 201. It gets no key: POST /v2/credentials makes one.",
        request=ResourceSerializer(partial=True),
        responses={200: ResourceSerializer, 201: ResourceSerializer},
        parameters=parameters(path=EXTERNAL_ID, query=RESOURCE_INCLUDE),
        examples=named_examples(
            request={"a dentist": {"name": "Dr. Ada Berg", "timezone": "Europe/Berlin"}}
        ),
    )
    @action(detail=False, methods=["put", "patch"], url_path=BY_EXTERNAL_ID)
    def put_by_external_id(self, request: Request, external_id: str) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        resource_id, status = self.put_row(request, external_id)
        return self._answer(resource_id, includes, status)

    @extend_schema(
        summary="Delete a resource",
        description="409 `in_use` while the resource has future bookings that are not completed, or"
        " requests without an answer. The e-mail address and the external id become free.",
    )
    def destroy(self, request: Request, resource_id: uuid.UUID) -> Response:
        resource = self.get_object()
        delete_resource(resource, now=self.now)
        return Response(status=204)

    @extend_schema(
        operation_id="retrieveResourceTimezone",
        summary="Get the time zone of the resource with an e-mail address",
        description="`utc_offset`: the current offset from UTC in hours, such as 5.75.",
        responses={200: ResourceZoneSerializer},
        parameters=parameters(
            path={
                "email": text_response("Upper or lower case.", examples=[RESOURCE_EXAMPLE["email"]])
            }
        ),
    )
    @action(detail=False, url_path="timezone/<str:email>")
    def retrieve_timezone(self, request: Request, email: str) -> Response:
        resource = found_or_404(with_email(self.get_queryset(), email).first(), "Resource")
        offset = find_zone(resource.timezone).utcoffset(self.now) or timedelta()
        hours = offset.total_seconds() / 3600
        shown = int(hours) if hours.is_integer() else hours
        return Response({"data": {"timezone": resource.timezone, "utc_offset": shown}})

    def read_given(self, request: Request, row: Resource | None) -> dict[str, Any]:
        given = read_body_as(ResourceSerializer, request, partial=row is not None)
        self.check_address_and_password(given)
        return given

    def create_row(self, given: dict[str, Any]) -> Resource:
        return create_resource(app=self.app, given=given, issues_key=False)[0]

    def change_row(self, row: Resource, given: dict[str, Any]) -> None:
        change_resource(row, given)

    def check_address_and_password(self, given: Mapping[str, Any]) -> None:
        """Raise Forbidden for an address, which gets e-mails about bookings, by a key that may not
        read these, and for a password by a key that can't make the resource's key.
        """
        if "email" in given:
            self.caller.check_scopes(*WHOLE_BOOKINGS)
        if "password" in given:
            check_may_make_resource_key(self.caller)

    def _answer(
        self, resource_id: uuid.UUID, includes: Collection[str], status: int = 200
    ) -> Response:
        rows = with_resource_includes(self.get_queryset(), includes)
        row = found_or_404(rows.filter(id=resource_id).first(), "Resource")
        record = ResourceSerializer.render(row, include=includes)
        return Response({"data": record}, status=status)
