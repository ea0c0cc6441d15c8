"""The calls of webhooks and event notifications in the OpenAPI document."""

import re
from typing import Any

from bookings.serializers.responses import WHOLE_BOOKING_EXAMPLE, BookingSerializer
from bookings.services.transition_log import RESPONSE
from common.openapi.component_registry import Json, register_component
from notifications.calendar_problems import CALENDAR_PROBLEM_EVENT, CalendarCallSerializer
from notifications.models import Delivery
from notifications.planning import KINDS
from notifications.webhooks.bodies import CALL_EXAMPLE, TEST_EVENT, BookingCallSerializer
from notifications.webhooks.object_calls import ObjectCallSerializer
from notifications.webhooks.object_kinds import DELIVERY_FAILED, OBJECT_KINDS

_CALL_HEADERS = {
    "webhook-id": "The delivery's id: the same in every attempt.",
    "webhook-timestamp": "The time of the attempt in epoch seconds.",
    "webhook-signature": "The signature of Standard Webhooks: `v1,` and base64. For a day after a"
    " rotation, two signatures separated by a space. Calls of event notifications are signed with"
    " the app's `signing_secret`.",
    "Service-Event": "The name of this event.",
}
_BOOKING_WORDS = "The booking of GET /v2/bookings/:id, without `data`; times in UTC."
_CALL_BODY = register_component(
    "requestBodies",
    "BookingCall",
    {
        "description": f"{_BOOKING_WORDS} As it was right after the change.",
        "required": True,
        "content": {
            "application/json": {
                "schema": BookingCallSerializer.schema,
                "examples": {"a booking": {"value": CALL_EXAMPLE}},
            }
        },
    },
)
_CALENDAR_BODY = {
    "description": "The calendar of GET /v2/calendars/:id, whose syncs have stopped.",
    "required": True,
    "content": {
        "application/json": {
            "schema": CalendarCallSerializer.schema,
            "examples": {"a calendar": {"value": CalendarCallSerializer.example()}},
        }
    },
}
_OBJECT_BODY = {
    "description": "The change as in GET /v2/changes, with the object as it is after it.",
    "required": True,
    "content": {
        "application/json": {
            "schema": ObjectCallSerializer.schema,
            "examples": {"a delivery": {"value": ObjectCallSerializer.example()}},
        }
    },
}
_REMINDER_BODY = {
    "description": f"{_BOOKING_WORDS} As it is when the event notification is due.",
    "required": True,
    "content": {
        "application/json": {
            "schema": BookingSerializer.schema,
            "examples": {"a booking": {"value": WHOLE_BOOKING_EXAMPLE}},
        }
    },
}
_REMINDER = f"booking.{Delivery.REMINDER}"
EVENT_SUMMARIES = {
    **{kind: f"A booking is {kind.split('.')[1].replace('_by_', ' by the ')}" for kind in KINDS},
    f"booking.{RESPONSE}": "A customer answers the invitation",
    _REMINDER: "An event notification is due",
    TEST_EVENT: "A webhook is tested",
    CALENDAR_PROBLEM_EVENT: "A connected calendar is no longer synced",
    **{kind: f"A {kind.replace('.', ' is ')}" for kind in OBJECT_KINDS if kind != DELIVERY_FAILED},
    DELIVERY_FAILED: "A delivery has failed or expired",
}
_BODIES = {
    _REMINDER: _REMINDER_BODY,
    CALENDAR_PROBLEM_EVENT: _CALENDAR_BODY,
    **dict.fromkeys(OBJECT_KINDS, _OBJECT_BODY),
}


def _call(event: str, summary: str) -> Json:
    """The path item of an event's call."""
    words = re.split(r"\W|_", event)
    return {
        "post": {
            "operationId": "on" + "".join(word.title() for word in words),
            "summary": summary,
            "description": "Sent with the method of the webhook or the event notification; GET"
            " has no body.",
            "security": [],  # signed, see the headers; no key
            "parameters": [
                {
                    "name": name,
                    "in": "header",
                    "description": description,
                    "required": True,
                    "schema": {"type": "string", **({"const": event} if "Event" in name else {})},
                }
                for name, description in _CALL_HEADERS.items()
            ],
            "requestBody": _BODIES.get(event, _CALL_BODY),
            "responses": {
                "2XX": {"description": "Success, or the status in `expected_response_code`."},
                "410": {"description": "The service disables the webhook."},
                "default": {"description": "The service retries the call later."},
            },
        }
    }


def describe_calls(result: Json, **_: Any) -> Json:
    """Add the calls to the document: a hook of drf-spectacular."""
    calls = {event: _call(event, summary) for event, summary in EVENT_SUMMARIES.items()}
    return result | {"webhooks": calls}
