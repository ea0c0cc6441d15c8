"""Endpoint of challenges: the proof of work of public pages."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from bookings.public_booking_checks import new_challenge
from bookings.serializers.challenges import ChallengeAnswerSerializer


class ChallengeViewSet(TenantViewSet):
    is_singleton = True
    tag = "bookings"

    @extend_schema(
        operation_id="challenge",
        summary="Get a challenge",
        description="A challenge of the ALTCHA protocol, version 1: find the `number` from 0 to"
        " `maxnumber` for which SHA-256 of `salt` and `number` is `challenge`. The solution is"
        " Base64 of the JSON object with `algorithm`, `challenge`, `number`, `salt` and"
        " `signature`. If the app's `public_challenge` is `altcha`, requests with a widget key to"
        " POST /v2/bookings, /v2/bookings/reserve and /v2/bookings/:id/reschedule need the"
        " solution as `challenge`. In every app, they need it above some limits: the response is"
        " then 429, and its `errors` name `challenge`. A challenge works once, for ten minutes.",
        responses={200: ChallengeAnswerSerializer.schema},
    )
    def retrieve(self, request: Request) -> Response:
        record = new_challenge(self.app, now=self.now)
        return Response({**record, "data": record})
