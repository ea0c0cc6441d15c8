"""Endpoints of resources."""

import uuid
from collections.abc import Collection
from typing import Any

from rest_framework.response import Response

from availability.filters import (
    RESOURCE_SEARCH,
    apply_search,
)
from availability.log_ins import with_email
from availability.records import RESOURCE_INCLUDES, resource_record, with_resource_includes
from availability.schemas import CALENDAR_EXAMPLE, RESOURCE, RESOURCE_EXAMPLE, RESOURCE_ZONE
from availability.serializers.resources import NewResourceSerializer, ResourceSerializer
from availability.services import (
    change_resource,
    create_resource,
    delete_resource,
)
from availability.views.scoped import (
    BY_NAME,
    CHANGES,
    RESOURCE_INCLUDE,
    ResourceScopedView,
    found,
)
from scheduling.api.bodies import read_body_as
from scheduling.api.components import text_of
from scheduling.api.instants import zone
from scheduling.api.ordering import UPDATED_SINCE, order_query
from scheduling.api.schema import described, one, page_of, search_of

NEW_RESOURCE_EXAMPLE = RESOURCE_EXAMPLE | {
    "calendars": [CALENDAR_EXAMPLE],
    "api_token": "1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
}


class ResourcesView(ResourceScopedView):
    tag = "resources"
    paginated = True
    secret_methods = frozenset({"POST"})
    resource_methods = frozenset({"GET"})
    query_names = {"GET": (*CHANGES, "include"), "POST": ("include",)}

    @described(
        summary="List resources",
        response=page_of(RESOURCE),
        query={
            "search": search_of(RESOURCE_SEARCH, "name:Dr*"),
            **RESOURCE_INCLUDE,
            **order_query(BY_NAME),
            "updated_since": UPDATED_SINCE,
        },
    )
    def get(self, request: Any) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        terms = self.query.search(RESOURCE_SEARCH)
        rows = self.listed(apply_search(self.resources(), terms, RESOURCE_SEARCH), BY_NAME)
        rows = with_resource_includes(rows, includes)
        return self.list_page(request, rows, lambda row: resource_record(row, includes))

    @described(
        summary="Make a resource",
        description="With a first calendar, `Bookings`. The answer carries its calendars and,"
        " this once, its key; therefore no Idempotency-Key is taken.",
        request=NewResourceSerializer,
        response=one(RESOURCE),
        status=201,
        query=RESOURCE_INCLUDE,
        examples={"made": {"data": NEW_RESOURCE_EXAMPLE}},
        request_examples={
            "a dentist": {
                "name": "Dr. Ada Berg",
                "email": "ada@example.com",
                "timezone": "Europe/Berlin",
                "availability_constraints": [{"allow_hours": {"start": 9, "end": 17}}],
            }
        },
    )
    def post(self, request: Any) -> Response:
        includes = {*self.query.include(RESOURCE_INCLUDES), "calendars"}
        given = read_body_as(NewResourceSerializer, request)
        resource, api_token = create_resource(app=self.app, given=given)
        row = with_resource_includes(self.resources(), includes).get(id=resource.id)
        record = resource_record(row, includes) | {"api_token": api_token}
        return Response({"data": record}, status=201)


class ResourceView(ResourceScopedView):
    tag = "resources"
    resource_methods = frozenset({"GET", "PUT"})
    query_names = {"GET": ("include",), "PUT": ("include",)}

    @described(summary="A resource", response=one(RESOURCE), query=RESOURCE_INCLUDE)
    def get(self, request: Any, resource_id: uuid.UUID) -> Response:
        return self._answer(resource_id, self.query.include(RESOURCE_INCLUDES))

    @described(
        summary="Change a resource",
        description="`availability_constraints` and `tags` are replaced whole. A new time zone"
        " moves events of whole days with it; what has a time of day stays where it is. A new"
        " `password` ends the log-ins of POST /v2/auth.",
        request=ResourceSerializer,
        response=one(RESOURCE),
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
    def put(self, request: Any, resource_id: uuid.UUID) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        resource = found(self.resources().filter(id=resource_id).first(), "Resource")
        change_resource(resource, read_body_as(ResourceSerializer, request))
        return self._answer(resource_id, includes)

    @described(
        summary="Remove a resource",
        description="409 `in_use` while bookings that are not completed end in the future. Its"
        " e-mail address is free again.",
        status=204,
    )
    def delete(self, request: Any, resource_id: uuid.UUID) -> Response:
        resource = found(self.resources().filter(id=resource_id).first(), "Resource")
        delete_resource(resource, now=self.now)
        return Response(status=204)

    def _answer(self, resource_id: uuid.UUID, includes: Collection[str]) -> Response:
        rows = with_resource_includes(self.resources(), includes)
        row = found(rows.filter(id=resource_id).first(), "Resource")
        return Response({"data": resource_record(row, includes)})


class ResourceZoneView(ResourceScopedView):
    """Which clock the person behind an address goes by."""

    tag = "resources"
    resource_methods = frozenset({"GET"})

    @described(
        summary="The time zone of the resource with an e-mail address",
        description="`utc_offset`: hours ahead of UTC now, such as 5.75.",
        response=one(RESOURCE_ZONE),
        path={"email": text_of("In any case.", examples=[RESOURCE_EXAMPLE["email"]])},
    )
    def get(self, request: Any, email: str) -> Response:
        resource = found(with_email(self.resources(), email).first(), "Resource")
        hours = zone(resource.timezone).utcoffset(self.now).total_seconds() / 3600
        shown = int(hours) if hours.is_integer() else hours
        return Response({"data": {"timezone": resource.timezone, "utc_offset": shown}})
