"""Endpoints that create, delete and serve feeds."""

import uuid
from functools import partial

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.renderers import StaticHTMLRenderer
from rest_framework.response import Response

from apps_config.base_views import PublicView
from availability.models import Calendar
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest
from common.db.replica import read_on_replica
from common.openapi.components import ICALENDAR, TEXT, text_response
from common.openapi.generator import data_object, describe_endpoint
from external_calendars.published_feeds import (
    feed_etag,
    feed_text,
    feed_url,
    find_feed_calendar,
    issue_feed_token,
    revoke_feed,
)
from external_calendars.records import EXAMPLE_FEED, CalendarFeedRecord
from external_calendars.serializers import FeedSerializer
from external_calendars.views.calendars import ConnectedView


class FeedView(ConnectedView):
    operation_ids = {"POST": "createCalendarFeed", "DELETE": "deleteCalendarFeed"}
    secret_methods = frozenset({"POST"})

    @describe_endpoint(
        summary="Create the feed of a calendar",
        description="A URL for calendar programs, without a key: events and bookings from a month"
        " ago to 400 days ahead. Only this response contains the URL. A new feed ends the old one."
        " The endpoint takes no Idempotency-Key.",
        request=FeedSerializer,
        optional_body=True,
        request_examples={"with customers": {"details": True}},
        response=data_object(CalendarFeedRecord),
        status=201,
    )
    def post(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        calendar = self.find_calendar(calendar_id)
        details = read_body_as(FeedSerializer, request)["details"]
        token = issue_feed_token(calendar, details=details, now=self.now)
        record = {"url": feed_url(calendar, token), "token": token, "details": details}
        return Response({"data": record}, status=201)

    @describe_endpoint(
        summary="Delete the feed of a calendar",
        description="The URL returns 404 from now on.",
        status=204,
    )
    def delete(self, request: ApiRequest, calendar_id: uuid.UUID) -> Response:
        revoke_feed(self.find_calendar(calendar_id))
        return Response(status=204)


class IcsRenderer(StaticHTMLRenderer):
    """For the OpenAPI document only: the view writes its answer itself."""

    media_type, format = "text/calendar", "ics"


class FeedTextView(PublicView):
    operation_ids = {"GET": "retrieveCalendarFeed"}
    json_only = False
    errors = (400, 404, 422, 429)
    renderer_classes = [IcsRenderer]

    @describe_endpoint(
        summary="Get a calendar as iCalendar",
        description="The token is the key. Cancelled bookings are omitted; non-blocking events"
        " are transparent. The response has an ETag: a request with If-None-Match gets 304"
        " without changes. A wrong token is 404, like an unknown calendar.",
        query={
            "token": text_response(
                "The token from POST /v2/calendars/{calendar_id}/feed.",
                examples=[CalendarFeedRecord.example()["token"]],
            )
            | {"required": True}
        },
        headers={"ETag": TEXT, "Cache-Control": TEXT | {"description": "`private, no-cache`."}},
        others={
            200: OpenApiResponse(ICALENDAR, "The feed.", [OpenApiExample("a feed", EXAMPLE_FEED)]),
            304: OpenApiResponse(description="Not changed."),
        },
    )
    def get(self, request: ApiRequest, calendar_id: uuid.UUID) -> HttpResponse:
        calendar = find_feed_calendar(calendar_id, self.query.text("token") or "")
        self.app = calendar.resource.app
        return read_on_replica(partial(self._answer, request, calendar))

    def _answer(self, request: ApiRequest, calendar: Calendar) -> HttpResponse:
        """Answer with the feed and its tag, both from one database."""
        tag = feed_etag(calendar, self.now)
        whole = HttpResponse(
            content_type="text/calendar; charset=utf-8",
            headers={"ETag": tag, "Cache-Control": "private, no-cache"},
        )
        response = get_conditional_response(request, etag=tag, response=whole)
        if response is whole and request.method != "HEAD":
            whole.content = feed_text(calendar, self.now)
        return response or whole
