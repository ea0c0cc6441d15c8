"""Webhooks, deliveries and the words of mails in answers (api.md section 4)."""

import json
import re
from typing import Any

from django.db.models import F, Prefetch, QuerySet
from django.db.models.functions import Left

from bookings.graphs import GRAPHS
from bookings.records import WHOLE_BOOKING_EXAMPLE, BookingRecord
from common.api.response_records import (
    Id,
    Json,
    Record,
    Stamp,
    example_id,
    field,
    register_component,
)
from common.openapi.components import WEBHOOKS
from notifications.mail import SLUGS
from notifications.models import CALL_BODY, Attempt, Delivery, Webhook
from notifications.planning import KINDS
from notifications.webhooks.bodies import CALL_EXAMPLE, TEST_EVENT, BookingCallRecord
from notifications.webhooks.serializers import CODES, EVENTS

# Of each try's answer in a listing, in characters: a page holds thousands of tries.
EXCERPT = 1000


class WebhookRecord(Record):
    "A subscription to changes of bookings."

    id: Id = field(example=example_id(41))
    url: str = field(example="https://example.com/hooks/bookings")
    method: str = field(enum=Webhook.METHODS)
    graph: str | None = field("null: any.", enum=list(GRAPHS))
    states: list[str] = field(
        "Empty: all states. A move matches `rescheduled` and the booking's current state.",
        items={"type": "string", "enum": list(EVENTS)},
        example=["confirmed", "cancelled", "rescheduled"],
    )
    kinds: list[str] = field(
        "Only calls of these kinds (values of `Service-Event`). Empty: all except"
        " `booking.updated`.",
        items={"type": "string", "enum": list(KINDS)},
    )
    expected_response_code: int | None = field("null: any 2xx.", minimum=CODES[0], maximum=CODES[1])
    active: bool = field(example=True)
    description: str = field(example="Our calendar display")
    disabled_reason: str | None = field(
        "Why the service has disabled the webhook: 410, or five days without success. Enabling"
        " the webhook clears it."
    )
    created_at: Stamp
    updated_at: Stamp
    secret: str = field(
        "The key that signs calls as in Standard Webhooks. Shown only when the webhook is created"
        " and when its secret is rotated.",
        optional=True,
        example="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    )


class AttemptRecord(Record):
    at: Stamp
    response_code: int | None = field(
        "HTTP status of a call, or the mail server's code.", example=200
    )
    seconds: float = field(minimum=0, example=0.127)
    error: str | None
    excerpt: str | None = field(
        "The beginning of the response: 20 kB, in lists 1,000 characters.",
        of="shown",
        example="ok",
    )


def _payload(delivery: Any) -> Any:
    """The JSON of a call: null for a mail, and for a call that is not rendered yet."""
    return json.loads(delivery.call_body) if delivery.call_body else None


class DeliveryRecord(Record):
    "One e-mail, call or calendar write, with every attempt."

    id: Id = field(example=example_id(42))
    type: str = field(enum=Delivery.TYPES, example="webhook")
    kind: str = field(
        "The booking's new state, `rescheduled`, `reassigned` (a move of the resources alone),"
        " `unassigned` (to the former resource), `reminder` for an event notification, `test`,"
        " `webhook_disabled`, `new_key`, `new_owner`, `new_device`, or `write` for a calendar that"
        " was connected after the booking was created.",
        example="confirmed",
    )
    booking_id: Id | None = field(example=WHOLE_BOOKING_EXAMPLE["id"])
    webhook_id: Id | None = field(
        "null for e-mails, event notifications and calendar writes.",
        example=WebhookRecord.example()["id"],
    )
    recipient: str | None = field(
        "The recipient of an e-mail; null for calls and calendar writes.",
        enum=["customer", "owner"],
    )
    state: str = field(enum=Delivery.STATES, example="delivered")
    reason: str | None = field("The reason for the state.")
    due_at: Stamp
    next_at: Stamp | None = field(
        "The next attempt, or the end of the current lease; null for a final state."
    )
    attempts: list[AttemptRecord] = field("Oldest first.")
    created_at: Stamp
    updated_at: Stamp
    payload: Json | None = field(
        "Only for a single delivery: the body of the call, which is the booking at the change."
        " null for e-mails, calendar writes, and calls that are rendered when they are due.",
        optional=True,
        of=_payload,
        example=WHOLE_BOOKING_EXAMPLE,
    )


def with_list_rows(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return deliveries, newest first, with the rows that `DeliveryRecord` needs, and without
    bodies.
    """
    attempts = Attempt.objects.defer("excerpt").annotate(shown=Left("excerpt", EXCERPT))
    rows = deliveries.defer("body", "content").order_by("-id")
    return rows.prefetch_related(Prefetch("attempts", attempts))


def with_detail_rows(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return deliveries with the bodies and rows that the record of a single delivery needs."""
    attempts = Attempt.objects.annotate(shown=F("excerpt"))
    rows = deliveries.annotate(call_body=CALL_BODY)
    return rows.prefetch_related(Prefetch("attempts", attempts))


def whole_delivery_record(delivery: Delivery) -> Json:
    """Return the record of a delivery `with_detail_rows`, with the payload of a call."""
    return DeliveryRecord.of(delivery, include=("payload",))


class RenderedEmailRecord(Record):
    subject: str = field(example="See you on Monday, 23 November 2026")
    text: str = field(example="Hello Marty McFly,\n\nWhat:  Check-up\n")
    html: str = field("A whole HTML document.", example="<p>Hello Marty McFly,</p>\n")


WORDS_EXAMPLE = {
    "subject": "See you on {{ date }}",
    "text": "Hello {{ name }},\n\n{{ details }}\n\n{{ actions }}\n",
    "html": "<p>Hello {{ name }},</p>\n{{ details }}\n{{ actions }}\n",
}


class EmailTemplateRecord(Record):
    """What one kind of mail says."""

    slug: str = field(enum=list(SLUGS), example="confirmed_customer")
    subject: str = field(example=WORDS_EXAMPLE["subject"])
    text: str = field(example=WORDS_EXAMPLE["text"])
    html: str = field("A whole HTML document.", example=WORDS_EXAMPLE["html"])
    custom: bool = field("Whether the app has its own template.", example=True)
    updated_at: Stamp | None = field(
        "null for the default template.", example="2026-11-20T09:30:00+0000"
    )


# --- Calls ----------------------------------------------------------------------------------------
_CALL_HEADERS = {
    "webhook-id": "The delivery's id: the same in every attempt.",
    "webhook-timestamp": "The time of the attempt in epoch seconds.",
    "webhook-signature": "The signature of Standard Webhooks: `v1,` and base64. For a day after a"
    " rotation, two signatures separated by a space. Calls of event"
    " notifications have no signature.",
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
                "schema": BookingCallRecord.schema,
                "examples": {"a booking": {"value": CALL_EXAMPLE}},
            }
        },
    },
)
_REMINDER_BODY = {
    "description": f"{_BOOKING_WORDS} As it is when the event notification is due.",
    "required": True,
    "content": {
        "application/json": {
            "schema": BookingRecord.schema,
            "examples": {"a booking": {"value": WHOLE_BOOKING_EXAMPLE}},
        }
    },
}
_REMINDER = f"booking.{Delivery.REMINDER}"
EVENT_SUMMARIES = {
    **{kind: f"A booking is {kind.split('.')[1].replace('_by_', ' by the ')}" for kind in KINDS},
    _REMINDER: "An event notification is due",
    TEST_EVENT: "A webhook is tested",
}


def _call(event: str, summary: str) -> Json:
    """The path item of an event's call."""
    signed = event != _REMINDER
    words = re.split(r"\W|_", event)
    return {
        "post": {
            "operationId": "on" + "".join(word.title() for word in words),
            "summary": summary,
            "description": "Sent with the method of the webhook or the event notification; GET"
            " has no body.",
            "parameters": [
                {
                    "name": name,
                    "in": "header",
                    "description": description,
                    "required": signed or name != "webhook-signature",
                    "schema": {"type": "string", **({"const": event} if "Event" in name else {})},
                }
                for name, description in _CALL_HEADERS.items()
            ],
            "requestBody": _CALL_BODY if signed else _REMINDER_BODY,
            "responses": {
                "2XX": {"description": "Success, or the status in `expected_response_code`."},
                "410": {"description": "The service disables the webhook."},
                "default": {"description": "The service retries the call later."},
            },
        }
    }


WEBHOOKS.update({event: _call(event, summary) for event, summary in EVENT_SUMMARIES.items()})
