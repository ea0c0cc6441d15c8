"""Endpoints of feeds: their making, and what a calendar program reads."""

import uuid
from typing import Any

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.renderers import StaticHTMLRenderer
from rest_framework.response import Response

from apps_config.endpoints import PublicView
from external_calendars.feeds import feed_tag, feed_text, feed_url, find_fed, make_feed, revoke_feed
from external_calendars.schemas import EXAMPLE_FEED, FEED, FEED_EXAMPLE
from external_calendars.views.calendars import ConnectedView
from scheduling.api.components import TEXT, text_of
from scheduling.api.schema import described, one


class FeedView(ConnectedView):
    secret_methods = frozenset({"POST"})

    @described(
        summary="Give a calendar a feed",
        description="An address under which any calendar program reads it, without a key: events"
        " and bookings from a month ago to 400 days ahead. The answer shows it once; asked again"
        " it makes another, and the one before ends. No Idempotency-Key is taken.",
        response=one(FEED),
        status=201,
    )
    def post(self, request: Any, calendar_id: uuid.UUID) -> Response:
        calendar = self.find_calendar(calendar_id)
        token = make_feed(calendar, now=self.now)
        return Response({"data": {"url": feed_url(calendar, token), "token": token}}, status=201)

    @described(
        summary="Take a calendar's feed away",
        description="Its address is not found from now on.",
        status=204,
    )
    def delete(self, request: Any, calendar_id: uuid.UUID) -> Response:
        revoke_feed(self.find_calendar(calendar_id))
        return Response(status=204)


class IcsRenderer(StaticHTMLRenderer):
    """For the description alone: the view writes its answer itself."""

    media_type, format = "text/calendar", "ics"


class FeedTextView(PublicView):
    json_only = False
    errors = (400, 404, 422, 429)
    query_names = {"GET": ("token",)}
    renderer_classes = [IcsRenderer]

    @described(
        summary="A calendar as iCalendar, for any calendar program",
        description="The token is the key. Bookings that were called off are left out, what does"
        " not block is shown as transparent. Carries an ETag: a request with If-None-Match gets"
        " 304 while nothing has changed. A token that is wrong looks like a calendar that is not"
        " there.",
        query={
            "token": text_of(
                "As POST /v2/calendars/{calendar_id}/feed has shown it.",
                examples=[FEED_EXAMPLE["token"]],
            )
            | {"required": True}
        },
        headers={"ETag": TEXT, "Cache-Control": TEXT | {"description": "`private, no-cache`."}},
        others={
            200: OpenApiResponse(TEXT, "The feed.", [OpenApiExample("a feed", EXAMPLE_FEED)]),
            304: OpenApiResponse(description="Not changed."),
        },
    )
    def get(self, request: Any, calendar_id: uuid.UUID) -> HttpResponse:
        calendar = find_fed(calendar_id, self.query.text("token") or "")
        self.app = calendar.resource.app
        tag = feed_tag(calendar, self.now)
        whole = HttpResponse(
            content_type="text/calendar; charset=utf-8",
            headers={"ETag": tag, "Cache-Control": "private, no-cache"},
        )
        response = get_conditional_response(request, etag=tag, response=whole)
        if response is whole and request.method != "HEAD":
            whole.content = feed_text(calendar, self.now)
        return response
