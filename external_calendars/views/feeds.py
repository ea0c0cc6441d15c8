"""Endpoints that create, delete and serve feeds."""

import uuid
from functools import partial

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import PublicView
from availability.models import Calendar
from availability.views.base_views import ResourceScopedViewSet
from common.api.serializers import read_body_as
from common.db.replica import read_on_replica
from common.openapi.components import ICALENDAR, TEXT, text_response
from common.openapi.generator import named_examples, parameters
from external_calendars.examples import EXAMPLE_FEED
from external_calendars.published_feeds import (
    feed_etag,
    feed_text,
    feed_url,
    find_feed_calendar,
    issue_feed_token,
    revoke_feed,
)
from external_calendars.serializers import CalendarFeedSerializer


class FeedViewSet(ResourceScopedViewSet):
    """The feed of a calendar: at most one."""

    serializer_class = CalendarFeedSerializer
    is_singleton = True
    optional_bodies = frozenset({"create"})
    lookup_url_kwarg = "calendar_id"
    secret_actions = {"create": ("url", "token")}

    def get_queryset(self) -> QuerySet[Calendar]:
        return self.readable_calendars()

    @extend_schema(
        operation_id="createCalendarFeed",
        summary="Create the feed of a calendar",
        description="A URL for calendar programs, without a key: events and bookings from a month"
        " ago to 400 days ahead. Only this response contains the URL. A new feed ends the old one.",
        examples=named_examples(request={"with customers": {"details": True}}),
    )
    def create(self, request: Request, calendar_id: uuid.UUID) -> Response:
        calendar = self.get_object()
        details = read_body_as(CalendarFeedSerializer, request)["details"]
        token = issue_feed_token(calendar, details=details, now=self.now)
        record = {"url": feed_url(calendar, token), "token": token, "details": details}
        return Response({"data": record}, status=201)

    @extend_schema(
        operation_id="deleteCalendarFeed",
        summary="Delete the feed of a calendar",
        description="The URL returns 404 from now on.",
    )
    def destroy(self, request: Request, calendar_id: uuid.UUID) -> Response:
        revoke_feed(self.get_object())
        return Response(status=204)


class FeedTextView(PublicView):
    operation_ids = {"GET": "retrieveCalendarFeed"}
    json_only = False
    errors = (400, 404, 422, 429)

    @extend_schema(
        summary="Get a calendar as iCalendar",
        description="The token is the key. Cancelled bookings are omitted; non-blocking events"
        " are transparent. The response has an ETag: a request with If-None-Match gets 304"
        " without changes. A wrong token is 404, like an unknown calendar.",
        responses={
            (200, "text/calendar"): OpenApiResponse(
                ICALENDAR, "The feed.", [OpenApiExample("a feed", EXAMPLE_FEED)]
            ),
            304: OpenApiResponse(description="Not changed."),
        },
        parameters=parameters(
            query={
                "token": text_response(
                    "The token from POST /v2/calendars/{calendar_id}/feed.",
                    examples=[CalendarFeedSerializer.example()["token"]],
                )
                | {"required": True}
            },
            headers={"ETag": TEXT, "Cache-Control": TEXT | {"description": "`private, no-cache`."}},
        ),
    )
    def get(self, request: Request, calendar_id: uuid.UUID) -> HttpResponse:
        calendar = find_feed_calendar(calendar_id, self.query.text("token") or "")
        self.app = calendar.resource.app
        return read_on_replica(partial(self._answer, request, calendar))

    def _answer(self, request: Request, calendar: Calendar) -> HttpResponse:
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
