"""Shared components of the OpenAPI document: schemas, headers, parameters, errors, pagination."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from common.api.fields import IdField, InstantField
from common.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, MAX_PAGE
from common.api.response_schemas import END_EXAMPLE
from common.api.serializers import ObjectSerializer
from common.errors import STATUS
from common.openapi.component_registry import Json, register_component

TEXT: Json = {"type": "string"}
FLAG: Json = {"type": "boolean"}
ID: Json = {"type": "string", "format": "uuid"}
FREE: Json = {"type": "object", "additionalProperties": True}


def list_of(schema: Json) -> Json:
    return {"type": "array", "items": schema}


class SpanSerializer(ObjectSerializer):
    examples = {"end": END_EXAMPLE}

    start = InstantField()
    end = InstantField()


class EmptySerializer(ObjectSerializer):
    """Nothing."""

    examples = {}
    keywords = {"examples": [{}]}


# Responses that are not JSON.
HTML_PAGE, ICALENDAR, METRICS = (
    register_component("schemas", name, TEXT) for name in ("HtmlPage", "Icalendar", "Metrics")
)


def text_response(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


_PAGE_URL: Json = {
    "type": "string",
    "format": "uri",
    "examples": ["https://booking.example.com/v2/resources?limit=50&page=1"],
}
_LAST_PAGE_URL: Json = {**_PAGE_URL, "type": ["string", "null"]}
_NO_PAGE_URL: Json = {"type": ["string", "null"], "format": "uri", "examples": [None]}


_PAGE_NUMBER: Json = {
    "type": ["integer", "null"],
    "description": "Null with `cursor`.",
    "minimum": 1,
    "examples": [1],
}
_ROW_NUMBER: Json = {"type": ["integer", "null"], "examples": [1]}
PAGE_PROPERTIES: Mapping[str, Json] = {
    "total": {
        "type": ["integer", "null"],
        "description": "The number of rows on all pages; null with `cursor`, which counts none.",
        "minimum": 0,
        "examples": [1],
    },
    "per_page": {
        "type": ["integer", "string"],
        "description": "`limit` as the sent text, or the default as an integer.",
        "examples": [DEFAULT_LIMIT],
    },
    "current_page": _PAGE_NUMBER,
    "last_page": _PAGE_NUMBER,
    "first_page_url": _PAGE_URL,
    "last_page_url": {"description": "Null with `cursor`.", **_LAST_PAGE_URL},
    "next_page_url": _NO_PAGE_URL,
    "prev_page_url": {
        "description": "For a page past the end: the last page. Null with `cursor`.",
        **_NO_PAGE_URL,
    },
    "from": {
        "description": "The number of the page's first row, from 1; null on an empty page, and with"
        " `cursor`.",
        **_ROW_NUMBER,
    },
    "to": _ROW_NUMBER,
}
# Only with the parameter `cursor`.
CURSOR_PROPERTIES: Mapping[str, Json] = {
    "next_cursor": {
        "type": ["string", "null"],
        "description": "Only with `cursor`: its value in the next request; null on the last page.",
        "examples": [None],
    }
}


# --- Parameters and headers -----------------------------------------------------------------------
def parameter(place: str, name: str, description: str, **schema: Any) -> Json:
    content = {"name": name, "in": place, "description": description, "schema": schema}
    return register_component("parameters", name, content)


def answer_header(name: str, description: str, *, always: bool = False, **schema: Any) -> Json:
    content: Json = {"description": description, "schema": {"type": "string", **schema}}
    return register_component("headers", name, content | ({"required": True} if always else {}))


SERVICE_APP = parameter(
    "header",
    "Service-App",
    "The slug of the app. Required for an access token whose account has several apps. Optional"
    " with a key.",
    type="string",
    examples=["demo"],
)
SERVICE_TIMEZONE = parameter(
    "header",
    "Service-Timezone",
    "The IANA zone for the times of events in responses, and for wall times in requests without a"
    " single resource. Absent: UTC.",
    type="string",
    examples=["Europe/Berlin"],
)
IDEMPOTENCY_KEY = parameter(
    "header",
    "Idempotency-Key",
    "For 24 hours, a repeated request with the same key, path and body gets the first response. A"
    " different body is 422 `idempotency_mismatch`. Errors are not stored, nor are secrets: a"
    " repeated request gets null for them, and `secret_shown: true`.",
    type="string",
    minLength=1,
    maxLength=255,
    pattern="^[!-~]+$",
)
IF_MATCH = parameter(
    "header",
    "If-Match",
    "ETags of GET with the same query and headers, or `*`. If the object has another one: 412"
    " `precondition_failed`, and nothing changes.",
    type="string",
)
IF_NONE_MATCH = parameter(
    "header", "If-None-Match", "ETags, or `*`. If the response has one of them: 304.", type="string"
)
_COUNT: Json = {"type": "integer", "minimum": 1}
LIMIT = parameter(
    "query", "limit", "Rows per page.", **_COUNT, maximum=MAX_LIMIT, default=DEFAULT_LIMIT
)
PAGE_NUMBER = parameter(
    "query", "page", "The page number, from 1.", **_COUNT, maximum=MAX_PAGE, default=1
)
CURSOR = parameter(
    "query",
    "cursor",
    "Instead of `page`: `next_cursor` of the last response, or empty for the start. Rows that come"
    " or go between requests then move no other row past the reader. The order is that of the last"
    " request.",
    type="string",
)

_NUMBER: dict[str, Any] = {"type": "string", "pattern": "^[0-9]+$"}
ANSWER_HEADERS = {
    "Service-Request-Id": answer_header(
        "Service-Request-Id",
        "The id of the request in the logs; taken from a valid `X-Request-Id`.",
        always=True,
    ),
    "Service-TestMode": answer_header(
        "Service-TestMode", "`true` for a test app, else absent.", enum=["true"]
    ),
    "Service-Ignored": answer_header(
        "Service-Ignored",
        "Keys of the request body that the endpoint does not know, separated by commas; absent"
        " without such keys.",
        maxLength=1024,
    ),
    "RateLimit": answer_header(
        "RateLimit",
        "Requests left (`r`) and seconds until the minute ends (`t`), by the IETF draft"
        " “RateLimit header fields for HTTP”; absent without a limit.",
        pattern='^"requests";r=[0-9]+;t=[0-9]+$',
        type="string",
    ),
    "RateLimit-Policy": answer_header(
        "RateLimit-Policy",
        "The limit (`q`) and its window in seconds (`w`); absent without a limit. A request counts"
        " once, and once more for each 10 ms of CPU time that it uses.",
        pattern='^"requests";q=[0-9]+;w=60$',
        type="string",
    ),
    "X-RateLimit-Limit": answer_header(
        "X-RateLimit-Limit", "The limit per minute; absent without a limit.", **_NUMBER
    ),
    "X-RateLimit-Remaining": answer_header(
        "X-RateLimit-Remaining", "Requests left in this minute.", **_NUMBER
    ),
    "X-RateLimit-Reset": answer_header(
        "X-RateLimit-Reset", "Seconds until the minute ends.", **_NUMBER
    ),
}
REQUEST_ID = {"Service-Request-Id": ANSWER_HEADERS["Service-Request-Id"]}
REPLAYED = {
    "Idempotent-Replayed": answer_header(
        "Idempotent-Replayed",
        "`true` if this is the stored response of an earlier request.",
        enum=["true"],
    )
}
RETRY_AFTER = {
    "Retry-After": answer_header("Retry-After", "Seconds to wait.", always=True, **_NUMBER)
}
_SOMETIMES_LATER = {
    "Retry-After": {
        "description": "With `idempotency_in_progress`: seconds to wait.",
        "schema": _NUMBER,
    }
}
ETAG = {"ETag": answer_header("ETag", "Another one if the body is another one.")}
CHALLENGE = {
    "WWW-Authenticate": answer_header("WWW-Authenticate", "`Basic`, with its realm.", always=True)
}
ALLOW = {"Allow": answer_header("Allow", "The methods of this path.", always=True)}

# --- Errors ---------------------------------------------------------------------------------------
_REQUEST_ID_EXAMPLE = "5f0c7e0e-8f0e-4b9e-9a38-1f4f1c1f7a10"


_SPANS = list_of(SpanSerializer.schema)
_SPAN_EXAMPLES = [
    {"start": "2026-11-23T08:00:00+00:00", "end": "2026-11-23T08:30:00+00:00"},
    {"start": "2026-11-23T08:30:00+00:00", "end": "2026-11-23T09:00:00+00:00"},
]


class ReasonSerializer(ObjectSerializer):
    """Why time is not free. Widget keys see only `type` and `text`."""

    examples = {
        "source": "resource",
        "constraint": {"block_hours": {"start": 12, "end": 13}},
        "text": "Blocked by the resource's rule: 12:00 to 13:00 every day.",
    }
    on_request = (
        *("source", "constraint", "constraints", "event_id", "reservation_id", "calendar_id"),
    )

    type = serializers.ChoiceField(
        [
            *("constraint", "event", "hold", "capacity", "buffer", "notice", "past", "limit"),
            *("calendar", "requirement"),
        ],
        help_text="`capacity`: all places of a resource with a `capacity` are taken.",
    )
    source = serializers.ChoiceField(  # type: ignore[assignment]  # DRF takes it out
        ["resource", "project", "request", "schedule"],
        allow_null=True,
        help_text="The owner of the rule; null without one.",
    )
    constraint = serializers.DictField(help_text="The rule as it was sent.")
    constraints = serializers.ListField(
        child=serializers.DictField(),
        help_text="Instead of `constraint`, if several rules form a union.",
    )
    event_id = IdField(help_text="The event that overlaps.")
    reservation_id = IdField(help_text="The hold that overlaps.")
    calendar_id = IdField(help_text="The stale calendar.")
    text = serializers.CharField(help_text="The reason as text.")


REASON_EXAMPLE = ReasonSerializer.example("source", "constraint")


class FailedOccurrenceSerializer(SpanSerializer):
    examples = {}

    reason = serializers.ChoiceField(["slot_taken", "not_available"], help_text="Why not.")


_ERROR_FIELDS: Mapping[str, Json] = {
    "error": text_response("One sentence for a person."),
    "code": text_response("A stable code for programs.", enum=list(STATUS)),
    "errors": {
        "type": "object",
        "additionalProperties": {"type": "array", "minItems": 1, "items": TEXT},
        "description": "With `invalid`: the errors by their place, a dotted path in the body"
        " (`event_notifications.0.when.unit`), or the name of a query parameter or header. With"
        " `rate_limited` and a widget key: `challenge` if the same request passes at once with a"
        " solved challenge.",
    },
    "model": text_response(
        "With `not_found`: what was not found; `Page` for an unknown path.", examples=["Booking"]
    ),
    "conflicts": _SPANS
    | {
        "description": "With `slot_taken`: the times that overlap. With `in_use` for a"
        " `capacity`: the first time at which more is booked."
    },
    "reasons": list_of(ReasonSerializer.schema)
    | {"description": "With `not_available`: the rules that the time breaks."},
    "alternatives": _SPANS
    | {
        "maxItems": 3,
        "description": "With `slot_taken` and `not_available`: the next free times of the same"
        " length within 14 days, within the applicable rules.",
    },
    "occurrences": list_of(FailedOccurrenceSerializer.schema)
    | {"description": "For a series: all occurrences that can't be booked."},
    "state": text_response("With `action_not_allowed`: the booking's state."),
    "available_actions": list_of(TEXT)
    | {"description": "With `action_not_allowed`: the possible actions."},
    "policy": text_response("With `policy`: its name in the project's settings."),
    "limit": {
        "type": ["string", "integer", "null"],
        "description": "With `policy`: its value in the settings of project or group; null"
        " without a value.",
    },
    "booking_id": ID | {"description": "With `in_use` for an event: the booking of the event."},
    "problem": text_response(
        "For a calendar that can't be connected: the code of the problem.",
        examples=["unauthorized"],
    ),
}
ERROR = register_component(
    "schemas",
    "Error",
    {
        "type": "object",
        "description": "Why the service refuses a request. Which members it has besides `error`,"
        " `code` and `request_id` depends on `code`. `Accept: application/problem+json` adds those"
        " of RFC 9457.",
        "required": ["error", "code", "request_id"],
        "properties": {
            **_ERROR_FIELDS,
            "request_id": text_response("The value of the header Service-Request-Id."),
        },
    },
)
ERROR_OF_ONE = register_component(
    "schemas",
    "ErrorOfOne",
    {
        "type": "object",
        "description": "The error that a request of its own would have got, without `request_id`."
        " Paths start at the top of the body.",
        "required": ["error", "code"],
        "properties": _ERROR_FIELDS,
    },
)


def error_response(
    status: int, description: str, examples: dict[str, Json], headers: Json | None = None
) -> Json:
    """Register a status's response as a component (`Error404`); return the reference.

    `examples` maps an error code to the other members of its body.
    """
    written = {
        name: {"value": {"code": name} | body | {"request_id": _REQUEST_ID_EXAMPLE}}
        for name, body in examples.items()
    }
    return register_component(
        "responses",
        f"Error{status}",
        {
            "description": description,
            "headers": REQUEST_ID | (headers or {}),
            "content": {"application/json": {"schema": ERROR, "examples": written}},
        },
    )


ERROR_RESPONSES = {
    400: error_response(
        400,
        "The request can't be parsed: invalid JSON, wrong encoding, duplicate keys, NaN, too many"
        " levels, NUL or a lone surrogate.",
        {"malformed": {"error": "The body has an object with a duplicate key."}},
    ),
    401: error_response(
        401,
        "Missing or invalid credentials. The body is the same for every cause."
        " `second_factor_required`, of POST /v2/auth only: the password is right.",
        {
            "unauthenticated": {"error": "Valid credentials are required."},
            "second_factor_required": {
                "error": "Send a code of the authenticator app, or a recovery code."
            },
        },
        CHALLENGE,
    ),
    403: error_response(
        403,
        "The credentials are valid but lack the permission. `address_not_allowed`: the key works in"
        " other networks.",
        {
            "forbidden": {"error": "These credentials lack the required permission."},
            "address_not_allowed": {"error": "This key can't be used from your network address."},
        },
    ),
    404: error_response(
        404,
        "The app has no such object. Objects of other apps look the same.",
        {"not_found": {"error": "Booking not found.", "model": "Booking"}},
    ),
    405: error_response(
        405,
        "The path does not support the method.",
        {"method_not_allowed": {"error": "The method PATCH is not allowed here."}},
        ALLOW,
    ),
    406: error_response(
        406,
        "The Accept header excludes application/json.",
        {"not_acceptable": {"error": "The service returns application/json only."}},
    ),
    409: error_response(
        409,
        "The request conflicts with the current state.",
        {
            "slot_taken": {
                "error": "The time is taken.",
                "conflicts": _SPAN_EXAMPLES[:1],
                "alternatives": _SPAN_EXAMPLES[1:],
            },
            "not_available": {
                "error": "The time is not available.",
                "reasons": [REASON_EXAMPLE],
                "alternatives": _SPAN_EXAMPLES,
            },
            "action_not_allowed": {
                "error": "Cannot apply action 'confirm' to current state 'cancelled'",
                "state": "cancelled",
                "available_actions": [],
            },
            "policy": {
                "error": "The policy min_cancel_time does not allow this.",
                "policy": "min_cancel_time",
                "limit": "1 day",
            },
            "hold_expired": {"error": "The hold has expired or was already used."},
            "in_use": {"error": "The resource has bookings that are not completed."},
            "already_exists": {"error": "Another project has this slug."},
            "outdated": {"error": "This message is outdated. The booking is cancelled."},
        },
        _SOMETIMES_LATER,
    ),
    410: error_response(
        410,
        "`cursor_expired`: what the cursor refers to is no longer stored.",
        {
            "cursor_expired": {
                "error": "Changes after this cursor are no longer stored. Read everything anew."
            }
        },
    ),
    412: error_response(
        412,
        "If-Match has another ETag than the object.",
        {
            "precondition_failed": {
                "error": "The object has changed: its ETag is not that of If-Match."
            }
        },
    ),
    408: error_response(
        408,
        "The body did not arrive within ten seconds. The connection is closed.",
        {"request_timeout": {"error": "The body did not arrive in time. Send the request again."}},
    ),
    413: error_response(
        413,
        "The body is larger than 256 kB.",
        {"too_large": {"error": "The body is larger than 256 kB."}},
    ),
    415: error_response(
        415,
        "The body is not application/json in UTF-8, or it has a Content-Encoding.",
        {"unsupported_media_type": {"error": "The body must be application/json in UTF-8."}},
    ),
    422: error_response(
        422,
        "A value is invalid.",
        {
            "invalid": {
                "error": "event.start: Must be a string.",
                "errors": {"event.start": ["Must be a string."]},
            }
        },
    ),
    429: error_response(
        429,
        "Too many requests, or too many wrong keys or passwords.",
        {"rate_limited": {"error": "Too many requests."}},
        RETRY_AFTER,
    ),
    500: error_response(
        500,
        "A bug. Find it in the logs by its request id.",
        {"internal": {"error": "Something went wrong on our side."}},
    ),
    503: error_response(
        503,
        "The database is busy, restarting or down, or too many log-ins run: try again.",
        {"unavailable": {"error": "The service is busy, try again."}},
        RETRY_AFTER,
    ),
}


class ErrorOfOneField(serializers.DictField):
    """The error of one change of a bulk request."""

    response_schema = ERROR_OF_ONE


SECURITY = "basic"
register_component(
    "securitySchemes",
    SECURITY,
    {
        "type": "http",
        "scheme": "basic",
        "description": (
            "HTTP Basic with one of four kinds of key. Their secrets are shown once.\n\n"
            "| kind | user | password | may |\n|---|---|---|---|\n"
            "| server key | empty | `live_api_key_…`, `test_api_key_…` | everything in its app |\n"
            "| widget key | empty | `live_widget_key_…`, `test_widget_key_…` | for public pages:"
            " only the operations that list it; rules are always enforced, and other people's data"
            " is omitted |\n"
            "| access token | the account's e-mail | the token | the role's permissions in each"
            " app of the account: `viewer` reads and queries free time, `editor` also writes,"
            " `owner` also manages keys and creates and deletes apps |\n"
            "| resource key | the resource's e-mail, if it has one | `api_token` of POST"
            " /v2/resources or POST /v2/auth | the resource itself, its calendars,"
            " events, bookings and free time |\n\n"
            "Example: `curl -u :live_api_key_… https://booking.example.com/v2/app`"
        ),
    },
)
BEARER = "bearer"
register_component(
    "securitySchemes",
    BEARER,
    {
        "type": "http",
        "scheme": "bearer",
        "description": "The same keys, without a user: `Authorization: Bearer live_api_key_…`.",
    },
)
