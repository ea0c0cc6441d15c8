"""The parts of the API's description that every room points at: schemas, headers, parameters,
errors, the envelope of a listing. How a view describes itself stands in `schema`.
"""

from typing import Any

from scheduling.api.errors import STATUS
from scheduling.api.pagination import DEFAULT_LIMIT, MOST_LIMIT, MOST_PAGE

Json = dict[str, Any]

# (kind of component, name) -> its description; the document carries those that it points at.
COMPONENTS: dict[tuple[str, str], Json] = {}


def register(kind: str, name: str, content: Json) -> Json:
    """Keeps a component under its kind and name and returns the reference to it."""
    COMPONENTS[kind, name] = content
    return {"$ref": f"#/components/{kind}/{name}"}


def component(name: str, schema: Json, example: Any = None) -> Json:
    """Registers an object schema under a name and returns the reference to it."""
    shown = {} if example is None else {"examples": [example]}
    return register("schemas", name, schema | shown)


def referenced(reference: Json) -> Json:
    """The component that a reference of `register` points at."""
    kind, name = reference["$ref"].split("/")[-2:]
    return COMPONENTS[kind, name]


# --- Small schemas --------------------------------------------------------------------------------
TEXT: Json = {"type": "string"}
FLAG: Json = {"type": "boolean"}
ID: Json = {"type": "string", "format": "uuid"}
FREE: Json = {"type": "object", "additionalProperties": True}
# In answers: RFC 3339 with a colon for events and slots, without one for the stamps of an object.
TIME: Json = {"type": "string", "format": "date-time"}
STAMP: Json = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$",
    "examples": ["2026-11-20T09:30:00+0000"],
}
SPAN: Json = {
    "type": "object",
    "required": ["start", "end"],
    "properties": {"start": TIME, "end": TIME},
    "examples": [{"start": "2026-11-23T09:00:00+01:00", "end": "2026-11-23T09:30:00+01:00"}],
}


def nullable(schema: Json) -> Json:
    """The same schema, or null."""
    return schema | {"type": [schema["type"], "null"]}


def text_of(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def one(schema: Json) -> Json:
    """`{"data": schema}`."""
    return {"type": "object", "properties": {"data": schema}, "required": ["data"]}


def many(schema: Json) -> Json:
    """`{"data": [schema]}`, without pages."""
    return one({"type": "array", "items": schema})


_PAGE_URL = {
    "type": "string",
    "format": "uri",
    "examples": ["https://booking.example.com/v2/resources?limit=50&page=1"],
}
_NO_PAGE_URL = {"type": ["string", "null"], "format": "uri", "examples": [None]}
PAGE_PROPERTIES: Json = {
    "total": {
        "type": "integer",
        "minimum": 0,
        "description": "Rows on all pages together.",
        "examples": [1],
    },
    "per_page": {
        "type": ["integer", "string"],
        "description": "`limit` as the text that was sent, else the default as an integer.",
        "examples": [DEFAULT_LIMIT],
    },
    "current_page": {"type": "integer", "minimum": 1, "examples": [1]},
    "last_page": {"type": "integer", "minimum": 1, "examples": [1]},
    "first_page_url": _PAGE_URL,
    "last_page_url": _PAGE_URL,
    "next_page_url": _NO_PAGE_URL,
    "prev_page_url": _NO_PAGE_URL | {"description": "Past the end: the last page."},
    "from": {
        "type": ["integer", "null"],
        "description": "Number of the page's first row, counted from 1; null on an empty page.",
        "examples": [1],
    },
    "to": {"type": ["integer", "null"], "examples": [1]},
}


def page_of(schema: Json) -> Json:
    """The pagination envelope around a list."""
    properties = PAGE_PROPERTIES | {"data": {"type": "array", "items": schema}}
    return {"type": "object", "properties": properties, "required": list(properties)}


# --- Parameters and headers -----------------------------------------------------------------------
def header_parameter(name: str, description: str, **schema: Any) -> Json:
    return register(
        "parameters",
        name,
        {
            "name": name,
            "in": "header",
            "description": description,
            "schema": {"type": "string", **schema},
        },
    )


def page_number(name: str, description: str, default: int, most: int) -> Json:
    return register(
        "parameters",
        name,
        {
            "name": name,
            "in": "query",
            "description": description,
            "schema": {"type": "integer", "minimum": 1, "maximum": most, "default": default},
        },
    )


def answer_header(name: str, description: str, *, always: bool = False, **schema: Any) -> Json:
    content: Json = {"description": description, "schema": {"type": "string", **schema}}
    return register("headers", name, content | ({"required": True} if always else {}))


SERVICE_APP = header_parameter(
    "Service-App",
    "Slug of the app. Needed with an access token whose account has several apps; with a key it"
    " may be left out.",
    examples=["demo"],
)
SERVICE_TIMEZONE = header_parameter(
    "Service-Timezone",
    "IANA zone in which the times of events are written, and in which wall times without an"
    " offset are read where no single resource gives its own zone. UTC if absent.",
    examples=["Europe/Berlin"],
)
IDEMPOTENCY_KEY = header_parameter(
    "Idempotency-Key",
    "A repeated request with the same key, path and body replays the first answer, for 24 hours;"
    " another body: 422 `idempotency_mismatch`. Refusals are not kept.",
    minLength=1,
    maxLength=255,
    pattern="^[!-~]+$",
)
LIMIT = page_number("limit", "Rows per page.", DEFAULT_LIMIT, MOST_LIMIT)
PAGE_NUMBER = page_number("page", "Which page, counted from 1.", 1, MOST_PAGE)

_NUMBER: dict[str, Any] = {"type": "string", "pattern": "^[0-9]+$"}
ANSWER_HEADERS = {
    "Service-Request-Id": answer_header(
        "Service-Request-Id",
        "Id of the request in the logs; a sane `X-Request-Id` is taken over.",
        always=True,
    ),
    "Service-TestMode": answer_header(
        "Service-TestMode", "`true` for a test app, else absent.", enum=["true"]
    ),
    "X-RateLimit-Limit": answer_header(
        "X-RateLimit-Limit", "Requests a minute; absent where nothing is limited.", **_NUMBER
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
        "`true` where this is the kept answer to an earlier request.",
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
CHALLENGE = {
    "WWW-Authenticate": answer_header("WWW-Authenticate", "`Basic`, with its realm.", always=True)
}
ALLOW = {"Allow": answer_header("Allow", "The methods of this path.", always=True)}

# --- Errors ---------------------------------------------------------------------------------------
_REQUEST_ID_EXAMPLE = "5f0c7e0e-8f0e-4b9e-9a38-1f4f1c1f7a10"


def error_schema(status: int, description: str, **properties: Json) -> Json:
    """The shape of all errors of a status, with the fields that only it has."""
    codes = [code for code, of_status in STATUS.items() if of_status == status]
    return {
        "type": "object",
        "description": description,
        "required": ["error", "code", "request_id"],
        "properties": {
            "error": text_of("One sentence for a person."),
            "code": text_of("Stable, for programs.", enum=codes),
            **properties,
            "request_id": text_of("As in the header Service-Request-Id."),
        },
    }


def error_response(
    status: int,
    description: str,
    examples: dict[str, Json],
    headers: Json | None = None,
    **properties: Json,
) -> Json:
    """The answer of a status: its schema and response are components, named `Error404`.

    `examples` maps a code to the other members of its body.
    """
    schema = register("schemas", f"Error{status}", error_schema(status, description, **properties))
    written = {
        name: {"value": {"code": name} | body | {"request_id": _REQUEST_ID_EXAMPLE}}
        for name, body in examples.items()
    }
    return register(
        "responses",
        f"Error{status}",
        {
            "description": description,
            "headers": REQUEST_ID | (headers or {}),
            "content": {"application/json": {"schema": schema, "examples": written}},
        },
    )


def error_properties(response: Json) -> Json:
    """The fields of an error answer."""
    content = referenced(response)["content"]["application/json"]
    return referenced(content["schema"])["properties"]


_ALTERNATIVES = {
    "type": "array",
    "maxItems": 3,
    "items": SPAN,
    "description": "The next free times of the same length within 14 days, by the rules that hold.",
}
_SPAN_EXAMPLES = [
    {"start": "2026-11-23T08:00:00+00:00", "end": "2026-11-23T08:30:00+00:00"},
    {"start": "2026-11-23T08:30:00+00:00", "end": "2026-11-23T09:00:00+00:00"},
]
REASON = component(
    "Reason",
    {
        "type": "object",
        "description": "Why time is not free. A widget key sees `type` and `text` only.",
        "required": ["type", "text"],
        "properties": {
            "type": {
                "type": "string",
                "enum": [
                    *("constraint", "event", "hold", "buffer", "notice", "past", "limit"),
                    "calendar",
                ],
            },
            "source": {
                "type": ["string", "null"],
                "enum": ["resource", "project", "request", None],
                "description": "Whose rule it is; null where it is nobody's.",
            },
            "constraint": FREE | {"description": "The rule itself, as it was written."},
            "constraints": {
                "type": "array",
                "items": FREE,
                "description": "Instead of `constraint`, where several unite.",
            },
            "event_id": ID | {"description": "The event that is in the way."},
            "reservation_id": ID | {"description": "The hold that is in the way."},
            "calendar_id": ID | {"description": "The connected calendar that is out of step."},
            "text": text_of("The reason in words."),
        },
    },
    {
        "type": "constraint",
        "source": "resource",
        "constraint": {"block_hours": {"start": 12, "end": 13}},
        "text": "Blocked by the resource's rule: 12:00 to 13:00 every day.",
    },
)

ERROR_RESPONSES = {
    400: error_response(
        400,
        "The request can't be read: no JSON, wrong encoding, duplicate keys, NaN, nested too deep,"
        " NUL or a lone surrogate in it.",
        {"malformed": {"error": "The body has an object with a duplicate key."}},
    ),
    401: error_response(
        401,
        "No or wrong credentials. The body is the same for every cause.",
        {"unauthenticated": {"error": "Valid credentials are needed."}},
        CHALLENGE,
    ),
    403: error_response(
        403,
        "The credentials are known but may not do this.",
        {"forbidden": {"error": "These credentials may not do this."}},
    ),
    404: error_response(
        404,
        "There is no such object in this app; another app's object looks the same.",
        {"not_found": {"error": "Booking not found.", "model": "Booking"}},
        model=text_of("What was not found; `Page` for an unknown path.", examples=["Booking"]),
    ),
    405: error_response(
        405,
        "The path does not know the method.",
        {"method_not_allowed": {"error": "The method PATCH is not allowed here."}},
        ALLOW,
    ),
    406: error_response(
        406,
        "The Accept header leaves out application/json.",
        {"not_acceptable": {"error": "The service answers in application/json only."}},
    ),
    409: error_response(
        409,
        "The request conflicts with how things stand.",
        {
            "slot_taken": {
                "error": "The time is taken.",
                "conflicts": _SPAN_EXAMPLES[:1],
                "alternatives": _SPAN_EXAMPLES[1:],
            },
            "not_available": {
                "error": "The time is not available.",
                "reasons": [referenced(REASON)["examples"][0]],
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
            "hold_expired": {"error": "The hold was used already, or it has lapsed."},
            "in_use": {"error": "The resource has bookings that are not completed."},
            "already_exists": {"error": "There is a project with this slug."},
            "outdated": {"error": "This no longer holds. The booking is cancelled."},
        },
        _SOMETIMES_LATER,
        conflicts={
            "type": "array",
            "items": SPAN,
            "description": "With `slot_taken`: what the time overlaps.",
        },
        reasons={
            "type": "array",
            "items": REASON,
            "description": "With `not_available`: the rules that the time breaks.",
        },
        alternatives=_ALTERNATIVES,
        state=text_of("With `action_not_allowed`: where the booking stands."),
        available_actions={
            "type": "array",
            "items": TEXT,
            "description": "With `action_not_allowed`: what can be done instead.",
        },
        policy=text_of("With `policy`: its name in the project's settings."),
        limit={
            "type": ["string", "integer", "null"],
            "description": "With `policy`: its value in the project's settings, or the group's;"
            " null where it has none.",
        },
        occurrences={
            "type": "array",
            "items": {
                "type": "object",
                "required": ["start", "end", "reason"],
                "properties": {
                    "start": TIME,
                    "end": TIME,
                    "reason": text_of("Why not.", enum=["slot_taken", "not_available"]),
                },
            },
            "description": "Of a series: every occurrence that can't be booked.",
        },
        booking_id=ID | {"description": "With `in_use` of an event: the booking it belongs to."},
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
        "Well-formed, but a value is wrong.",
        {
            "invalid": {
                "error": "event.start: Must be a string.",
                "errors": {"event.start": ["Must be a string."]},
            }
        },
        errors={
            "type": "object",
            "additionalProperties": {"type": "array", "minItems": 1, "items": TEXT},
            "description": "What is wrong where: a dotted path into the body"
            " (`event_notifications.0.when.unit`), or the name of a query parameter or header.",
        },
        problem=text_of(
            "Of a calendar elsewhere that can't be connected: why, for programs.",
            examples=["unauthorized"],
        ),
    ),
    429: error_response(
        429,
        "Too many requests, or too many failed log-ins from this address.",
        {"rate_limited": {"error": "Too many requests."}},
        RETRY_AFTER,
    ),
    500: error_response(
        500,
        "A bug. Its request id finds it in the logs.",
        {"internal": {"error": "Something went wrong on our side."}},
    ),
    503: error_response(
        503,
        "The database is busy, restarting or away: try again.",
        {"unavailable": {"error": "The service is busy, try again."}},
        RETRY_AFTER,
    ),
}

# What failed one of many: the fields of its own error answer, under one status of the whole.
ERROR_OF_ONE = component(
    "ErrorOfOne",
    {
        "type": "object",
        "description": "As its own request would have been answered, without the request's id;"
        " paths begin at the top of the body.",
        "required": ["error", "code"],
        "properties": {
            name: schema
            for response in ERROR_RESPONSES.values()
            for name, schema in error_properties(response).items()
            if name != "request_id"
        }
        | {"code": text_of("Stable, for programs.", enum=list(STATUS))},
    },
)

SECURITY = "basic"
register(
    "securitySchemes",
    SECURITY,
    {
        "type": "http",
        "scheme": "basic",
        "description": (
            "HTTP Basic with one of four kinds of key. Their secrets are shown once.\n\n"
            "| kind | user | password | may |\n|---|---|---|---|\n"
            "| server key | empty | `live_api_key_…`, `test_api_key_…` | everything in its app |\n"
            "| widget key | empty | `live_widget_key_…`, `test_widget_key_…` | stands in public"
            " pages: what the operations below name it for; rules are always enforced, and other"
            " people's data is left out |\n"
            "| access token | the account's e-mail | the token | in each app what the account's"
            " role allows: `viewer` reads and asks for free time, `editor` also writes, `owner`"
            " also makes keys, deletes the app and makes others |\n"
            "| resource key | the resource's e-mail, if it has one | `api_token` of POST"
            " /v2/resources or POST /v2/auth | the resource itself, its calendars,"
            " events, bookings and free time |\n\n"
            "Example: `curl -u :live_api_key_… https://booking.example.com/v2/app`"
        ),
    },
)
