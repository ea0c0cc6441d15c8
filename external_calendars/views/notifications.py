"""What Google and Microsoft call when a calendar has changed.

All messages of the right form get the same answer, so that nobody learns which channels exist. An
error would not end an unknown channel either: Microsoft repeats what was refused for hours.
"""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request

from apps_config.base_views import PublicView
from common.api.json import parse_body
from common.api.response_schemas import example_id
from common.errors import Malformed
from common.openapi.component_registry import Json, register_component
from common.openapi.components import FREE, TEXT, list_of
from common.openapi.generator import parameters
from external_calendars.push import CHANGED, LIFECYCLE, OPENED, PushMessage, receive_messages

MAX_BYTES = 64 * 1024
MAX_VALIDATION_TOKEN = 2000
ACCEPTED = OpenApiResponse(
    description="Always, whether or not there is such a channel with this token."
)
VALIDATION_TOKEN = register_component("schemas", "ValidationToken", TEXT)
NOTICES = register_component(
    "schemas",
    "ChangeNotices",
    {
        "type": "object",
        "required": ["value"],
        "properties": {
            "value": list_of(
                {
                    "type": "object",
                    "required": ["subscriptionId", "clientState"],
                    "properties": {
                        "subscriptionId": TEXT,
                        "clientState": TEXT,
                        "lifecycleEvent": TEXT
                        | {"description": f"Of the subscription: {', '.join(sorted(LIFECYCLE))}."},
                        "resourceData": FREE,
                    },
                    "additionalProperties": True,
                }
            )
        },
        "additionalProperties": True,
    },
)
NOTICES_EXAMPLE: Json = {
    "value": [
        {
            "subscriptionId": example_id(61),
            "clientState": "9wEGZtlmDOWvkxDhPcqDkOtbjBVJwGEhg6mZ6mJY2yI",
            "changeType": "updated",
        }
    ]
}


class NotificationView(PublicView):
    json_only = False
    max_body_bytes = MAX_BYTES
    tag = "calendars"
    errors: tuple[int, ...] = (400, 413, 422, 429)


class GoogleNotificationView(NotificationView):
    operation_ids = {"POST": "receiveGoogleNotification"}

    @extend_schema(
        summary="Google says that a calendar has changed",
        description="For Google only. The headers `X-Goog-Channel-ID` and `X-Goog-Channel-Token`"
        " name the channel; the body is ignored. A worker then syncs the calendar.",
        request=None,
        responses={202: ACCEPTED},
    )
    def post(self, request: Request) -> HttpResponse:
        state = request.headers.get("X-Goog-Resource-State", "")
        message = PushMessage(
            request.headers.get("X-Goog-Channel-ID", ""),
            request.headers.get("X-Goog-Channel-Token", ""),
            OPENED if state == "sync" else CHANGED,
        )
        receive_messages([message])
        return HttpResponse(status=202)


class MicrosoftNotificationView(NotificationView):
    operation_ids = {"POST": "receiveMicrosoftNotification"}

    @extend_schema(
        summary="Microsoft says that calendars have changed",
        description="For Microsoft Graph only: notices about changes and about subscriptions, each"
        " with the `clientState` of its subscription. A worker then syncs the calendars. With"
        " `validationToken`, the response is this token as text.",
        request={"application/json": NOTICES},
        responses={
            (200, "text/plain"): OpenApiResponse(
                VALIDATION_TOKEN,
                "The `validationToken`.",
                [OpenApiExample("a new subscription", "Validation: Testing client application")],
            ),
            202: ACCEPTED,
        },
        parameters=parameters(
            query={
                "validationToken": TEXT
                | {"description": "Of a new subscription.", "maxLength": MAX_VALIDATION_TOKEN}
            }
        ),
        examples=[OpenApiExample("a change", NOTICES_EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> HttpResponse:
        token = self.query.text("validationToken")
        if token is not None:
            if len(token) > MAX_VALIDATION_TOKEN:
                raise Malformed("The validationToken is too long.")
            headers = {"X-Content-Type-Options": "nosniff"}
            return HttpResponse(token, content_type="text/plain; charset=utf-8", headers=headers)
        receive_messages(_read_notices(parse_body(request.body)))
        return HttpResponse(status=202)


def _read_notices(body: Any) -> list[PushMessage]:
    """Raises Malformed. Events of subscriptions that are not known are left out."""
    notices = body.get("value") if isinstance(body, dict) else None
    if not isinstance(notices, list) or not all(isinstance(each, dict) for each in notices):
        raise Malformed("The body must have a list of objects as its value.")
    messages = []
    for notice in notices:
        values = notice.get("subscriptionId"), notice.get("clientState")
        kind = notice.get("lifecycleEvent") or CHANGED
        if all(isinstance(each, str) for each in (*values, kind)) and kind in {CHANGED, *LIFECYCLE}:
            messages.append(PushMessage(*values, kind))
    return messages
