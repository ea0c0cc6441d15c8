"""What resources, calendars, events and projects look like, for the description."""

from typing import Any

from apps_config.records import EVENT_NOTIFICATION, EVENT_NOTIFICATION_EXAMPLE
from availability.models import CONSTRAINT_NAMES, Calendar
from availability.terms import MODES
from scheduling.api.components import (
    FLAG,
    FREE,
    ID,
    STAMP,
    TEXT,
    TIME,
    component,
    nullable,
    text_of,
)

_DAY_TIME = {
    "type": ["integer", "string"],
    "description": "A full hour, or the time as text; 24 is midnight at the end of the day.",
    "minimum": 0,
    "maximum": 24,
    "pattern": "^([01]?[0-9]|2[0-3])(:[0-5][0-9])?$|^24(:00)?$",
    "examples": [9, "09:30"],
}
_DAY = text_of(
    "In any case.",
    pattern="^[A-Za-z]+day$",
    examples=["Monday"],
)
_BOUND = text_of(
    "Wall-clock time, a date (its midnight), or an instant with its offset.",
    pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?"
    "(Z|[+-][0-9]{2}:?[0-9]{2})?)?$",
    examples=["2026-08-01 00:00:00"],
)
# The parameters of each kind of constraint; the others have none.
_PARAMETERS = {
    "hours": {"start": _DAY_TIME, "end": _DAY_TIME},
    "day": {"day": _DAY},
    "day_and_time": {"day": _DAY, "start": _DAY_TIME, "end": _DAY_TIME},
    "period": {"start": _BOUND, "end": _BOUND},
}


def _parameters_schema(name: str) -> dict[str, Any]:
    parameters = _PARAMETERS.get(name.split("_", 1)[1])
    if parameters is None:
        # Clients that can't write an empty object send an empty array.
        return {"type": ["object", "array"], "items": {}, "maxItems": 0}
    return {"type": "object", "required": list(parameters), "properties": parameters}


CONSTRAINT = component(
    "Constraint",
    {
        "type": "object",
        "description": "A rule for when time is open, read on the wall clock of each resource:"
        " one key, the rule's name, with its parameters. Allowing rules of one kind in one list"
        " unite (Monday, Tuesday); kinds and lists intersect (weekdays, 9 to 17); what is blocked"
        " is taken away last. No rule at all: always open. `start` after `end` runs over midnight.",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {name: _parameters_schema(name) for name in CONSTRAINT_NAMES},
        "additionalProperties": False,
    },
    {"allow_day_and_time": {"day": "Monday", "start": 9, "end": "17:30"}},
)
_CONSTRAINTS = {"type": "array", "maxItems": 200, "items": CONSTRAINT}


def _record(example: dict[str, Any], **schemas: Any) -> dict[str, Any]:
    """An object schema: these properties, all always there unless they end with `_`."""
    return {
        "type": "object",
        "required": [name for name in schemas if not name.endswith("_")],
        "properties": {name.rstrip("_"): schema for name, schema in schemas.items()},
        "examples": [example],
    }


COUNT = {"type": "integer", "minimum": 0}
CALENDAR_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000012",
    "resource_id": "0193a4c2-0000-7000-8000-000000000011",
    "name": "Bookings",
    "description": "",
    "backgroundcolor": "",
    "foregroundcolor": "",
    "provider": "service",
    "provider_id": None,
    "provider_access": None,
    "provider_primary": False,
    "provider_sync": False,
    "synced_at": None,
    "problem": None,
    "progress": None,
    "unread": 0,
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
CALENDAR = component(
    "Calendar",
    _record(
        CALENDAR_EXAMPLE,
        id=ID,
        resource_id=ID,
        name=TEXT,
        description=TEXT,
        backgroundcolor=TEXT,
        foregroundcolor=TEXT,
        provider=text_of("`service` for calendars that are kept here; else where it is kept."),
        provider_id=nullable(TEXT)
        | {"description": "Its address there; of a feed, whose address is a secret, the server's."},
        provider_access={
            "enum": [*Calendar.ACCESS, None],
            "description": "What may be done there; null: it is kept here.",
        },
        provider_primary=FLAG
        | {"description": "The resource's bookings are written to it, wherever they stand."},
        provider_sync=FLAG
        | {"description": "It is connected, and nothing has stopped it for good."},
        synced_at=nullable(STAMP) | {"description": "When both were last in step."},
        problem={
            "type": ["object", "null"],
            "description": "Why it is not in step; null: nothing is known against it.",
            "required": ["code", "text", "since"],
            "properties": {
                "code": text_of("Stable, for programs."),
                "text": text_of("For a person."),
                "since": STAMP,
            },
        },
        progress={
            "type": ["object", "null"],
            "description": "Of a look that is under way: how many objects of how many are in.",
            "required": ["done", "total"],
            "properties": {"done": COUNT, "total": COUNT},
        },
        unread=COUNT
        | {"description": "How many objects there can't be read, as of the last look."},
        created_at=STAMP,
        updated_at=STAMP,
    ),
)
RESOURCE_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000011",
    "name": "Dr. Ada Berg",
    "first_name": "Ada",
    "last_name": "Berg",
    "email": "ada@example.com",
    "image": "",
    "timezone": "Europe/Berlin",
    "tags": ["dentist"],
    "meta": {"room": "2"},
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
RESOURCE = component(
    "Resource",
    _record(
        RESOURCE_EXAMPLE,
        id=ID,
        name=TEXT,
        first_name=TEXT,
        last_name=TEXT,
        email=nullable(TEXT),
        image=TEXT,
        timezone=text_of("IANA zone: the wall clock on which its rules are read."),
        tags={"type": "array", "items": TEXT},
        meta=FREE,
        created_at=STAMP,
        updated_at=STAMP,
        calendars_={
            "type": "array",
            "items": CALENDAR,
            "description": "With include=calendars, and in the answer of POST /v2/resources.",
        },
        availability_constraints_=_CONSTRAINTS,
        api_token_=text_of("The resource's own key: only in the answer of POST /v2/resources."),
    ),
)
CREDENTIAL_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000015",
    "kind": "widget",
    "prefix": "live_widget_key_1c2d3e4f_",
    "key": "live_widget_key_1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    "description": "www.example.com",
    "resource_id": None,
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": "2026-11-20T09:30:00+0000",
    "created_at": "2026-11-20T09:30:00+0000",
}
CREDENTIAL = component(
    "Credential",
    _record(
        CREDENTIAL_EXAMPLE,
        id=ID,
        kind={"type": "string", "enum": ["server", "widget", "resource"]},
        prefix=text_of("How the key begins: enough to know it by, not to use it."),
        key_=text_of("The whole key: of a widget key always, of others in the answer of POST."),
        description=TEXT,
        resource_id=nullable(ID) | {"description": "Whose key it is; null: the app's."},
        expires_at=nullable(STAMP),
        revoked_at=nullable(STAMP),
        last_used_at=nullable(STAMP) | {"description": "To the minute."},
        created_at=STAMP,
    ),
)
LOG_IN_EXAMPLE = {
    "kind": "access",
    "id": "0193a4c2-0000-7000-8000-000000000002",
    "name": "Ada Berg",
    "email": "owner@example.com",
    "api_token": "1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    "expires_at": "2026-12-20T09:30:00+0000",
}
LOG_IN = component(
    "LogIn",
    _record(
        LOG_IN_EXAMPLE,
        kind={"type": "string", "enum": ["access", "resource"]},
        id=ID | {"description": "Of the account or the resource."},
        name=TEXT,
        email=TEXT,
        api_token=text_of("The password of HTTP Basic beside `email`; shown this once."),
        expires_at=STAMP,
    ),
)
RESOURCE_ZONE = component(
    "ResourceZone",
    _record(
        {"timezone": "Europe/Berlin", "utc_offset": 1},
        timezone=TEXT,
        utc_offset={"type": "number", "description": "In hours, now."},
    ),
)
EVENT_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000013",
    "calendar_id": "0193a4c2-0000-7000-8000-000000000012",
    "what": "Dentists' congress",
    "where": "Hamburg",
    "description": "",
    "start": "2026-12-01T09:00:00+01:00",
    "end": "2026-12-01T17:00:00+01:00",
    "allDay": False,
    "rsvp": "",
    "participants": [],
    "busy": True,
    "provider_id": None,
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
EVENT = component(
    "Event",
    _record(
        EVENT_EXAMPLE,
        id=ID,
        calendar_id=ID,
        what=TEXT,
        where=TEXT,
        description=TEXT,
        start=TIME,
        end=TIME,
        allDay=FLAG
        | {"description": "Of whole days: start and end are local midnights of the resource."},
        rsvp=TEXT,
        participants={"type": "array", "items": TEXT},
        busy=FLAG | {"description": "Keeps others out."},
        provider_id=nullable(TEXT),
        created_at=STAMP,
        updated_at=STAMP,
    ),
)
PROJECT_AVAILABILITY = component(
    "ProjectAvailability",
    {
        "type": "object",
        "description": "What an availability query of the project takes where it says nothing of"
        " its own. What is absent has its default.",
        "properties": {
            "mode": {"type": "string", "enum": list(MODES)},
            "length": nullable(TEXT) | {"description": "Null: whole free intervals."},
            "from": TEXT,
            "to": TEXT,
            "buffer": TEXT,
            "timeslot_increments": TEXT,
            "round_to_nearest_hour": FLAG,
            "ignore_all_day_events": FLAG,
        },
    },
    {"length": "30 minutes", "from": "2 hours", "to": "4 weeks"},
)
BOOKING_DEFAULTS = component(
    "BookingDefaults",
    {
        "type": "object",
        "description": "What a booking of the project takes where it says nothing of its own.",
        "properties": {
            "graph": {"type": "string"},
            "what": TEXT,
            "where": TEXT,
            "description": TEXT,
            "rescheduling_url": TEXT,
            "payment_url": TEXT,
        },
    },
    {"graph": "instant", "what": "Check-up", "where": "Harbour Dental"},
)
CUSTOMER_FIELDS = {
    "type": "object",
    "description": "The questions of the booking form, by key.",
    "additionalProperties": component(
        "CustomerField",
        {
            "type": "object",
            "properties": {
                "title": TEXT,
                "format": TEXT,
                "required": FLAG,
                "readonly": FLAG,
                "prefilled": {"description": "Any value."},
                "enum": {"type": "array", "items": TEXT},
                "split_name": FLAG,
            },
        },
        {"title": "Name", "required": True},
    ),
}
PROJECT_SETTINGS = component(
    "ProjectSettings",
    {
        "type": "object",
        "description": "Policies bind widget keys and customers' own actions; server keys are"
        " free. `max_reschedules` counts the customer's own moves. `max_per_day` binds everyone"
        " while availability is enforced; it counts bookings that block, completed ones and"
        " holds.",
        "properties": {
            "allow_double_bookings": FLAG,
            "enforce_availability": FLAG,
            "pending_blocks": FLAG | {"description": "A tentative booking keeps others out."},
            "min_cancel_time": TEXT,
            "min_reschedule_time": TEXT,
            "max_reschedules": {"type": "integer", "minimum": 0},
            "max_per_day": {"type": "integer", "minimum": 1},
            "check_external": FLAG
            | {"description": "Connected calendars are asked once more before a booking is made."},
        },
    },
    {"min_cancel_time": "1 day"},
)
RESERVATION_TIME = {
    "type": "integer",
    "minimum": 1,
    "maximum": 3600,
    "description": "Seconds that a hold lasts; 30 where there is none.",
}
PROJECT_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000014",
    "slug": "check-up",
    "name": "Check-up",
    "resources": ["0193a4c2-0000-7000-8000-000000000011"],
    "availability": {"length": "30 minutes", "from": "2 hours", "to": "4 weeks"},
    "availability_constraints": [{"block_weekends": {}}, {"allow_hours": {"start": 9, "end": 17}}],
    "booking": {"graph": "instant", "what": "Check-up", "where": "Harbour Dental"},
    "customer_fields": {"name": {"title": "Name", "required": True}},
    "ui": {},
    "event_notifications": [EVENT_NOTIFICATION_EXAMPLE],
    "settings": {"min_cancel_time": "1 day"},
    "reservation_time": None,
    "meta": {},
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
PROJECT = component(
    "Project",
    _record(
        PROJECT_EXAMPLE,
        id=ID,
        slug=TEXT,
        name=TEXT,
        resources={
            "type": "array",
            "items": {"anyOf": [ID, RESOURCE]},
            "description": "Ids; whole resources with include=resources.",
        },
        availability=PROJECT_AVAILABILITY,
        availability_constraints=_CONSTRAINTS,
        booking=BOOKING_DEFAULTS,
        customer_fields=CUSTOMER_FIELDS,
        ui=FREE,
        event_notifications={
            "type": ["array", "null"],
            "items": EVENT_NOTIFICATION,
            "description": "Null: the app's.",
        },
        settings=PROJECT_SETTINGS,
        reservation_time=RESERVATION_TIME | {"type": ["integer", "null"]},
        meta=FREE,
        created_at=STAMP,
        updated_at=STAMP,
    ),
)
PAGE_EXAMPLE = {
    "id": PROJECT_EXAMPLE["id"],
    "slug": "check-up",
    "name": "Check-up",
    "resources": PROJECT_EXAMPLE["resources"],
    "availability": PROJECT_EXAMPLE["availability"],
    "availability_constraints": PROJECT_EXAMPLE["availability_constraints"],
    "booking": PROJECT_EXAMPLE["booking"],
    "customer_fields": {
        "name": {"title": "Name", "required": True},
        "email": {"title": "E-mail", "format": "email", "required": True},
    },
    "ui": {
        "localization": {
            "submit_button": "Book",
            "success_message": "Thank you. A message to %s is on its way.",
        }
    },
}
_PAGE = {
    "id": ID,
    "slug": TEXT,
    "name": TEXT,
    "resources_": {"type": "array", "items": ID},
    "availability_": PROJECT_AVAILABILITY,
    "availability_constraints_": _CONSTRAINTS,
    "booking": BOOKING_DEFAULTS,
    "customer_fields": CUSTOMER_FIELDS,
    "ui": FREE | {"description": "The project's, over texts for `localization`."},
    "reservation_time_": RESERVATION_TIME,
}
EMBEDDED_PAGE = component("EmbeddedPage", _record(PAGE_EXAMPLE, **_PAGE))
HOSTED_PAGE = component(
    "HostedPage",
    _record(
        PAGE_EXAMPLE | {"app_key": CREDENTIAL_EXAMPLE["key"]},
        app_key=text_of("A widget key of the app: what the page calls the service with."),
        **_PAGE,
    ),
)
