"""What resources, calendars, events and projects look like, for the description."""

from typing import Any

from apps_config.records import EVENT_NOTIFICATION, EVENT_NOTIFICATION_EXAMPLE
from availability.models import CONSTRAINT_NAMES
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
        return {"type": ["object", "array"], "maxItems": 0}
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
        provider=text_of("`service` for calendars that live here."),
        provider_id=nullable(TEXT),
        provider_access=nullable(TEXT),
        provider_primary=FLAG,
        provider_sync=FLAG,
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
        " free. `max_per_day` binds everyone while availability is enforced.",
        "properties": {
            "allow_double_bookings": FLAG,
            "enforce_availability": FLAG,
            "pending_blocks": FLAG | {"description": "A tentative booking keeps others out."},
            "min_cancel_time": TEXT,
            "min_reschedule_time": TEXT,
            "max_reschedules": {"type": "integer", "minimum": 0},
            "max_per_day": {"type": "integer", "minimum": 1},
        },
    },
    {"min_cancel_time": "1 day"},
)
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
        meta=FREE,
        created_at=STAMP,
        updated_at=STAMP,
    ),
)
