"""Endpoints of resources."""

import uuid
from collections.abc import Collection
from datetime import timedelta

from rest_framework.response import Response

from availability.records import (
    RESOURCE_EXAMPLE,
    RESOURCE_INCLUDES,
    ResourceRecord,
    ResourceZoneRecord,
    with_resource_includes,
)
from availability.resources_by_email import with_email
from availability.serializers.resources import NewResourceSerializer, ResourceSerializer
from availability.services import change_resource, create_resource, delete_resource
from availability.views.base_views import BY_NAME, RESOURCE_INCLUDE, ResourceScopedView
from common.api.ordering import order_query_parameters
from common.api.search_conditions import RESOURCE_SEARCH, filter_by_search
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.errors import Forbidden
from common.openapi.components import text_response
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of
from common.time.instants import find_zone


class ResourcesView(ResourceScopedView):
    tag = "resources"
    paginated = True
    secret_methods = frozenset({"POST"})
    resource_methods = frozenset({"GET"})

    @describe_endpoint(
        summary="List resources",
        response=page_of(ResourceRecord),
        query={
            "search": search_of(RESOURCE_SEARCH, "name:Dr*"),
            **RESOURCE_INCLUDE,
            **order_query_parameters(BY_NAME),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        terms = self.query.search(RESOURCE_SEARCH)
        rows = self.filter_and_order(
            filter_by_search(self.readable_resources(), terms, RESOURCE_SEARCH), BY_NAME
        )
        rows = with_resource_includes(rows, includes)
        return self.list_page(request, rows, lambda row: ResourceRecord.of(row, include=includes))

    @describe_endpoint(
        summary="Create a resource",
        description="The resource gets a first calendar, `Bookings`. The response contains the"
        " calendars. Only this response contains the resource's key; therefore the"
        " endpoint takes no Idempotency-Key.",
        request=NewResourceSerializer,
        response=data_object(ResourceRecord),
        status=201,
        query=RESOURCE_INCLUDE,
        examples={"made": {"data": ResourceRecord.example("calendars", "api_token")}},
        request_examples={
            "a dentist": {
                "name": "Dr. Ada Berg",
                "email": "ada@example.com",
                "timezone": "Europe/Berlin",
                "availability_constraints": [{"allow_hours": {"start": 9, "end": 17}}],
            }
        },
    )
    def post(self, request: ApiRequest) -> Response:
        includes = {*self.query.include(RESOURCE_INCLUDES), "calendars"}
        given = read_body_as(NewResourceSerializer, request)
        resource, api_token = create_resource(app=self.app, given=given)
        row = with_resource_includes(self.readable_resources(), includes).get(id=resource.id)
        record = ResourceRecord.of(row, include=includes) | {"api_token": api_token}
        return Response({"data": record}, status=201)


class ResourceView(ResourceScopedView):
    tag = "resources"
    resource_methods = frozenset({"GET", "PUT"})

    @describe_endpoint(
        summary="A resource", response=data_object(ResourceRecord), query=RESOURCE_INCLUDE
    )
    def get(self, request: ApiRequest, resource_id: uuid.UUID) -> Response:
        return self._answer(resource_id, self.query.include(RESOURCE_INCLUDES))

    @describe_endpoint(
        summary="Change a resource",
        description="`availability_constraints` and `tags` are replaced. A new time zone moves"
        " all-day events; events with a time keep their instant. A new `password` ends the"
        " tokens of POST /v2/auth.",
        request=ResourceSerializer,
        response=data_object(ResourceRecord),
        query=RESOURCE_INCLUDE,
        request_examples={
            "opening hours": {
                "availability_constraints": [
                    {"block_weekends": {}},
                    {"allow_hours": {"start": 9, "end": "17:30"}},
                ]
            }
        },
    )
    def put(self, request: ApiRequest, resource_id: uuid.UUID) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        resource = found_or_404(
            self.readable_resources().filter(id=resource_id).first(), "Resource"
        )
        given = read_body_as(ResourceSerializer, request)
        schedule_id = given.get("schedule_id", resource.schedule_id)
        if self.caller.resource_id and schedule_id != resource.schedule_id:
            raise Forbidden("Keys of resources can't change the schedule.")
        change_resource(resource, given)
        return self._answer(resource_id, includes)

    @describe_endpoint(
        summary="Delete a resource",
        description="409 `in_use` while the resource has future bookings that are not completed, or"
        " requests without an answer. The e-mail address becomes free.",
        status=204,
    )
    def delete(self, request: ApiRequest, resource_id: uuid.UUID) -> Response:
        resource = found_or_404(
            self.readable_resources().filter(id=resource_id).first(), "Resource"
        )
        delete_resource(resource, now=self.now)
        return Response(status=204)

    def _answer(self, resource_id: uuid.UUID, includes: Collection[str]) -> Response:
        rows = with_resource_includes(self.readable_resources(), includes)
        row = found_or_404(rows.filter(id=resource_id).first(), "Resource")
        return Response({"data": ResourceRecord.of(row, include=includes)})


class ResourceZoneView(ResourceScopedView):
    """The time zone of the resource with an e-mail address."""

    operation_ids = {"GET": "retrieveResourceTimezone"}
    tag = "resources"
    resource_methods = frozenset({"GET"})

    @describe_endpoint(
        summary="Get the time zone of the resource with an e-mail address",
        description="`utc_offset`: the current offset from UTC in hours, such as 5.75.",
        response=data_object(ResourceZoneRecord),
        path={"email": text_response("Upper or lower case.", examples=[RESOURCE_EXAMPLE["email"]])},
    )
    def get(self, request: ApiRequest, email: str) -> Response:
        resource = found_or_404(with_email(self.readable_resources(), email).first(), "Resource")
        offset = find_zone(resource.timezone).utcoffset(self.now) or timedelta()
        hours = offset.total_seconds() / 3600
        shown = int(hours) if hours.is_integer() else hours
        return Response({"data": {"timezone": resource.timezone, "utc_offset": shown}})
