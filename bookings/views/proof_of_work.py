"""Endpoint of challenges: the proof of work of public pages."""

from rest_framework.response import Response

from apps_config.base_views import TenantView
from bookings.public_booking_checks import new_challenge
from bookings.records import ChallengeAnswerRecord
from common.api.views import ApiRequest
from common.openapi.generator import describe_endpoint


class ChallengeView(TenantView):
    tag = "bookings"
    widget_methods = frozenset({"GET"})

    @describe_endpoint(
        summary="Get a challenge",
        description="A challenge of the ALTCHA protocol, version 1: find the `number` from 0 to"
        " `maxnumber` for which SHA-256 of `salt` and `number` is `challenge`. The solution is"
        " Base64 of the JSON object with `algorithm`, `challenge`, `number`, `salt` and"
        " `signature`. If the app's `public_challenge` is `altcha`, requests with a widget key to"
        " POST /v2/bookings, /v2/bookings/reserve and /v2/bookings/:id/reschedule need the"
        " solution as `challenge`. In every app, they need it above some limits: the response is"
        " then 429, and its `errors` name `challenge`. A challenge works once, for ten minutes.",
        response=ChallengeAnswerRecord.schema,
    )
    def get(self, request: ApiRequest) -> Response:
        record = new_challenge(self.app, now=self.now)
        return Response({**record, "data": record})
