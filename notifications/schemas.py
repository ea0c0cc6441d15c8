"""What webhooks and deliveries look like, for the description."""

from bookings.graphs import GRAPHS
from bookings.schemas import BOOKING_EXAMPLE, WHOLE_BOOKING_EXAMPLE
from notifications.models import Delivery, Webhook
from notifications.planning import KINDS
from notifications.serializers.webhooks import CODES, EVENTS
from scheduling.api.components import FLAG, ID, STAMP, TEXT, component, nullable, text_of

_CODE = {"type": ["integer", "null"], "minimum": CODES[0], "maximum": CODES[1]}
_NO_TEXT = nullable(TEXT)

WEBHOOK_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000041",
    "url": "https://example.com/hooks/bookings",
    "method": "post",
    "graph": None,
    "states": ["confirmed", "cancelled", "rescheduled"],
    "kinds": [],
    "expected_response_code": None,
    "active": True,
    "description": "Our calendar display",
    "disabled_reason": None,
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
SECRET_EXAMPLE = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105
WEBHOOK = component(
    "Webhook",
    {
        "type": "object",
        "description": "A standing subscription to changes of bookings.",
        "required": list(WEBHOOK_EXAMPLE),
        "properties": {
            "id": ID,
            "url": TEXT,
            "method": {"type": "string", "enum": list(Webhook.METHODS)},
            "graph": {"enum": [*GRAPHS, None], "description": "null: any."},
            "states": {
                "type": "array",
                "items": {"type": "string", "enum": list(EVENTS)},
                "description": "Empty: any. A move is told to who wants `rescheduled` and to who"
                " wants the state that the booking is in.",
            },
            "kinds": {
                "type": "array",
                "items": {"type": "string", "enum": list(KINDS)},
                "description": "Only calls of these kinds, as `Service-Event` names them; empty:"
                " all but `booking.updated`.",
            },
            "expected_response_code": _CODE | {"description": "null: any 2xx."},
            "active": FLAG,
            "description": TEXT,
            "disabled_reason": _NO_TEXT
            | {
                "description": "Why the service has switched it off: 410, or five days without"
                " success. Switching it on again clears it."
            },
            "created_at": STAMP,
            "updated_at": STAMP,
            "secret": text_of(
                "Signs the calls by Standard Webhooks. Shown when the webhook is made and when its"
                " secret is rotated, never again."
            ),
        },
    },
    WEBHOOK_EXAMPLE,
)
WEBHOOK_WITH_SECRET = {"data": WEBHOOK_EXAMPLE | {"secret": SECRET_EXAMPLE}}

_ATTEMPT = {
    "type": "object",
    "required": ["at", "response_code", "seconds", "error", "excerpt"],
    "properties": {
        "at": STAMP,
        "response_code": {
            "type": ["integer", "null"],
            "description": "HTTP status of a call, or the mail server's code.",
        },
        "seconds": {"type": "number", "minimum": 0},
        "error": _NO_TEXT,
        "excerpt": _NO_TEXT
        | {"description": "The beginning of the answer: 20 kB, in listings 1,000 characters."},
    },
}
DELIVERY_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000042",
    "type": "webhook",
    "kind": "confirmed",
    "booking_id": BOOKING_EXAMPLE["id"],
    "webhook_id": WEBHOOK_EXAMPLE["id"],
    "recipient": None,
    "state": "delivered",
    "reason": None,
    "due_at": "2026-11-20T09:30:00+0000",
    "next_at": None,
    "attempts": [
        {
            "at": "2026-11-20T09:30:00+0000",
            "response_code": 200,
            "seconds": 0.127,
            "error": None,
            "excerpt": "ok",
        }
    ],
    "created_at": "2026-11-20T09:30:00+0000",
}
DELIVERY = component(
    "Delivery",
    {
        "type": "object",
        "description": "One mail, one call or one write to a connected calendar, with every try"
        " of it.",
        "required": list(DELIVERY_EXAMPLE),
        "properties": {
            "id": ID,
            "type": {"type": "string", "enum": list(Delivery.TYPES)},
            "kind": text_of(
                "The state that the booking came to, `rescheduled`, `reminder` for an event"
                " notification, `test`, `webhook_disabled`, or `write` for a calendar that was"
                " connected after the booking was made."
            ),
            "booking_id": nullable(ID),
            "webhook_id": nullable(ID)
            | {"description": "null: a mail, an event notification, or a calendar."},
            "recipient": {
                "enum": ["customer", "owner", None],
                "description": "Whom a mail is written to; null: a call or a calendar.",
            },
            "state": {"type": "string", "enum": list(Delivery.STATES)},
            "reason": _NO_TEXT | {"description": "Why it stands where it stands."},
            "due_at": STAMP,
            "next_at": nullable(STAMP)
            | {"description": "The next try, or the end of the one under way; null: it is final."},
            "attempts": {"type": "array", "items": _ATTEMPT, "description": "Oldest first."},
            "created_at": STAMP,
            "payload": {
                "type": ["object", "null"],
                "additionalProperties": True,
                "description": "With a single delivery only: the body of the call, which is the"
                " booking at the time of the change. null: a mail, a calendar, or a call that is"
                " rendered when it is due.",
            },
        },
    },
    DELIVERY_EXAMPLE,
)
WHOLE_DELIVERY = {"data": DELIVERY_EXAMPLE | {"payload": WHOLE_BOOKING_EXAMPLE}}
SENT_AGAIN = {
    "data": WHOLE_DELIVERY["data"]
    | dict.fromkeys(("due_at", "next_at"), "2026-11-20T11:00:00+0000")
    | {"state": "scheduled"}
}
TEST_DELIVERY = {
    "data": WHOLE_DELIVERY["data"]
    | {"kind": "test", "state": "scheduled", "next_at": DELIVERY_EXAMPLE["due_at"], "attempts": []}
}
