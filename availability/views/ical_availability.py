"""The rules of a resource as iCalendar."""

import uuid

from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer, StaticHTMLRenderer
from rest_framework.response import Response

from availability.core.constraints import (
    ConstraintError,
    ConstraintRules,
    parse_constraints,
    render_constraint,
)
from availability.ical_availability import KEPT_KINDS, availability_text, read_availability
from availability.models import Resource
from availability.records import AvailabilityTextRecord
from availability.services import change_resource
from availability.views.base_views import ResourceScopedView
from common.api.json_parser import (
    check_content_encoding,
    check_content_type,
    decode_utf8,
    read_body,
)
from common.api.views import ApiRequest, found_or_404
from common.errors import Invalid, Malformed
from common.ical.components import UnreadableCalendar
from common.openapi.components import ICALENDAR, TEXT
from common.openapi.generator import data_object, describe_endpoint

MEDIA_TYPE = "text/calendar"
EXAMPLE = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//EN\r\nBEGIN:VAVAILABILITY\r\n"
    "UID:1\r\nDTSTAMP:20261120T090000Z\r\nBEGIN:AVAILABLE\r\nUID:2\r\n"
    "DTSTAMP:20261120T090000Z\r\nDTSTART:20260105T090000\r\nDTEND:20260105T170000\r\n"
    "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR\r\nEND:AVAILABLE\r\nEND:VAVAILABILITY\r\n"
    "END:VCALENDAR\r\n"
)


class AvailabilityRenderer(StaticHTMLRenderer):
    """For the OpenAPI document only: the view writes its answer itself."""

    media_type, format = MEDIA_TYPE, "ics"


class AvailabilityTextView(ResourceScopedView):
    """GET answers with iCalendar, PUT with JSON."""

    operation_ids = {"GET": "retrieveResourceAvailability", "PUT": "replaceResourceAvailability"}
    tag = "resources"
    json_only = False
    resource_methods = frozenset({"GET", "PUT"})

    def get_renderers(self) -> list[BaseRenderer]:
        return [AvailabilityRenderer()] if self.request.method == "GET" else [JSONRenderer()]

    @describe_endpoint(
        summary="The rules of a resource as iCalendar",
        description="VAVAILABILITY of RFC 7953, in the resource's time zone. `COMMENT`s name what"
        " the format can't contain: `block_holidays`, `block_recurring` and the rules of the"
        " resource's schedule.",
        others={
            200: OpenApiResponse(ICALENDAR, "The rules.", [OpenApiExample("weekly hours", EXAMPLE)])
        },
    )
    def get(self, request: ApiRequest, resource_id: uuid.UUID) -> HttpResponse:
        rows = self.readable_resources().select_related("schedule").filter(id=resource_id)
        resource = found_or_404(rows.first(), "Resource")
        text = availability_text(
            stored_rules(resource),
            resource.timezone,
            id=resource.id,
            updated_at=resource.updated_at,
            schedule=resource.schedule.name if resource.schedule else "",
        )
        return HttpResponse(text, content_type=f"{MEDIA_TYPE}; charset=utf-8")

    @describe_endpoint(
        summary="Replace the rules of a resource by iCalendar",
        description="Reads the VAVAILABILITY components of RFC 7953. `not_read` names what has no"
        " equivalent among the rules and was left out. `block_holidays` and `block_recurring`,"
        " which the format can't contain, stay: `kept` lists them. Floating times are in the"
        " resource's time zone.",
        request=TEXT,
        request_type=MEDIA_TYPE,
        request_examples={"weekly hours": EXAMPLE},
        response=data_object(AvailabilityTextRecord),
    )
    def put(self, request: ApiRequest, resource_id: uuid.UUID) -> Response:
        with transaction.atomic():
            rows = self.readable_resources().select_for_update(no_key=True)
            resource = found_or_404(rows.filter(id=resource_id).first(), "Resource")
            text = calendar_body(request)
            try:
                found = read_availability(text, resource.timezone, now=self.now)
            except UnreadableCalendar as error:
                raise Malformed(str(error)) from error
            kept = [
                render_constraint(rule)
                for rule in stored_rules(resource)
                if rule.kind in KEPT_KINDS and not rule.allow
            ]
            try:
                rules = parse_constraints([*found.constraints, *kept])
            except ConstraintError as error:
                texts = [text for texts in error.errors.values() for text in texts]
                raise Invalid({"availability_constraints": texts}) from error
            change_resource(resource, {"availability_constraints": rules})
        data = {
            "availability_constraints": [render_constraint(rule) for rule in rules],
            "not_read": found.not_read,
            "kept": kept,
        }
        return Response({"data": data})


def calendar_body(request: ApiRequest) -> str:
    """Return the body's text. Raises Malformed, TooLarge or UnsupportedMediaType."""
    raw = read_body(request._request)
    check_content_type(request.content_type, MEDIA_TYPE)
    check_content_encoding(request.META.get("HTTP_CONTENT_ENCODING", ""))
    return decode_utf8(raw)


def stored_rules(resource: Resource) -> ConstraintRules:
    return parse_constraints([row.as_json() for row in resource.constraints.all()])
