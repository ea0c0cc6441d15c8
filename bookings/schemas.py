"""What a booking looks like, for the description."""

from apps_config.records import EVENT_NOTIFICATION, EVENT_NOTIFICATION_EXAMPLE
from availability.schemas import (
    BOOKING_DEFAULTS,
    CALENDAR,
    CALENDAR_EXAMPLE,
    CUSTOMER_FIELDS,
    EVENT,
    EVENT_EXAMPLE,
    PROJECT_AVAILABILITY,
    PROJECT_SETTINGS,
    RESOURCE,
    RESOURCE_EXAMPLE,
)
from bookings.graphs import GRAPHS, STATES
from bookings.models import OUTCOMES, StateChange
from scheduling.api.components import FLAG, FREE, ID, STAMP, TEXT, TIME, component

PUBLIC_RESOURCE = component(
    "PublicResource",
    {
        "type": "object",
        "description": "What a widget key sees of a resource.",
        "required": ["id", "name", "image", "timezone"],
        "properties": {"id": ID, **dict.fromkeys(("name", "image", "timezone"), TEXT)},
    },
    {key: RESOURCE_EXAMPLE[key] for key in ("id", "name", "image", "timezone")},
)
_STATE = {"type": "string", "enum": list(STATES)}
OUTCOME = {
    "type": ["string", "null"],
    "enum": [*OUTCOMES, None],
    "description": "Whether the customer came; null: nobody has said.",
}
_EVENT_INFO = {
    "start": TIME,
    "end": TIME,
    "what": TEXT,
    "where": TEXT,
    "description": TEXT,
    "calendar_id": ID,
    "invite": FLAG,
    "participants": {"type": "array", "items": TEXT},
}

CUSTOMER_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000031",
    "name": "Marty McFly",
    "email": "marty@example.com",
    "phone": "+1 555 0100",
    "voip": "",
    "timezone": "America/Los_Angeles",
    "meta": {"newsletter": True},
}
CUSTOMER = component(
    "Customer",
    {
        "type": "object",
        "description": "Who booked: a snapshot of that moment.",
        "required": list(CUSTOMER_EXAMPLE),
        "properties": {
            "id": ID,
            **dict.fromkeys(("name", "email", "phone", "voip", "timezone"), TEXT),
            "meta": FREE | {"description": "Every other key that the client sent."},
        },
    },
    CUSTOMER_EXAMPLE,
)
PROVIDER_EVENT_EXAMPLE = {
    "calendar_id": "0193a4c2-0000-7000-8000-000000000012",
    "provider": "caldav",
    "provider_id": "0193a4c2-0000-7000-8000-000000000030@bookings.example.com",
    "state": "written",
    "reason": None,
    "start": "2026-11-23T09:00:00+01:00",
    "end": "2026-11-23T09:30:00+01:00",
    "written_at": "2026-11-20T09:30:02+0000",
}
LOG = component(
    "LogEntry",
    {
        "type": "object",
        "required": [
            *("from_state", "to_state", "action", "actor", "source", "message", "created_at"),
        ],
        "properties": {
            "from_state": _STATE,
            "to_state": _STATE,
            "action": TEXT,
            "actor": TEXT,
            "source": {"type": "string", "enum": list(StateChange.SOURCES)},
            "message": TEXT,
            "created_at": STAMP,
        },
    },
    {
        "from_state": "initialized",
        "to_state": "confirmed",
        "action": "confirm",
        "actor": "server key 0193a4c2",
        "source": "api",
        "message": "",
        "created_at": "2026-11-20T09:30:00+0000",
    },
)
ATTRIBUTES = component(
    "BookingAttributes",
    {
        "type": "object",
        "description": "A widget key sees start, end, what and where of `event_info` only.",
        "required": ["event_info", "group_booking"],
        "properties": {
            "event_info": {
                "type": "object",
                "required": ["start", "end", "what", "where"],
                "properties": _EVENT_INFO,
            },
            "customer": {"anyOf": [CUSTOMER, {"type": "null"}]},
            "settings": {
                "type": "object",
                "required": ["allow_double_bookings", "enforce_availability"],
                "properties": {
                    "allow_double_bookings": FLAG,
                    "enforce_availability": FLAG,
                    **dict.fromkeys(
                        ("min_cancel_time", "min_booking_time", "max_booking_time"),
                        TEXT | {"description": "Of a group, where it was set."},
                    ),
                },
            },
            "group_booking": {
                "anyOf": [
                    {
                        "type": "object",
                        "required": ["max_seats", "current_seats"],
                        "properties": {
                            "max_seats": {"type": "integer", "minimum": 1},
                            "current_seats": {
                                "type": "integer",
                                "minimum": 0,
                                "description": "How many are taken.",
                            },
                        },
                    },
                    {"type": "null"},
                ],
                "description": "The seats of a group; null for every other booking.",
            },
        },
    },
)
# What a widget key sees of the two.
_PUBLIC_EVENT = component(
    "EventForWidgets",
    {
        "type": "object",
        "required": ["id", "calendar_id", "what", "where", "start", "end"],
        "properties": {
            "id": ID,
            "calendar_id": ID,
            "what": TEXT,
            "where": TEXT,
            "start": TIME,
            "end": TIME,
        },
    },
)
_PUBLIC_RESOURCE = component(
    "ResourceForWidgets",
    {
        "type": "object",
        "required": ["id", "name", "image", "timezone"],
        "properties": {"id": ID, "name": TEXT, "image": TEXT, "timezone": TEXT},
    },
)
_PROJECT = component(
    "ProjectOfBooking",
    {
        "type": "object",
        "required": [
            *("id", "slug", "name", "availability", "booking", "customer_fields", "ui"),
            *("settings", "meta", "created_at", "updated_at"),
        ],
        "properties": {
            "id": ID,
            "slug": TEXT,
            "name": TEXT,
            "availability": PROJECT_AVAILABILITY,
            "booking": BOOKING_DEFAULTS,
            "customer_fields": CUSTOMER_FIELDS,
            "ui": FREE,
            "settings": PROJECT_SETTINGS,
            "meta": FREE,
            "created_at": STAMP,
            "updated_at": STAMP,
            "resources": {
                "type": "array",
                "items": RESOURCE,
                "description": "With include=project.resources.",
            },
        },
    },
)
BOOKING_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000030",
    "state": "confirmed",
    "graph": "instant",
    "completed": False,
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
_ENTRY = component(
    "BookingEntry",
    {
        "type": "object",
        "description": "The six fields of every booking.",
        "required": list(BOOKING_EXAMPLE),
        "properties": {
            "id": ID,
            "state": _STATE,
            "graph": {"type": "string", "enum": list(GRAPHS)},
            "completed": FLAG,
            "created_at": STAMP,
            "updated_at": STAMP,
        },
    },
    BOOKING_EXAMPLE,
)
PROVIDER_EVENT = component(
    "ProviderEvent",
    {
        "type": "object",
        "description": "The booking's event as it was written to a connected calendar; null where"
        " there is none for it.",
        "required": list(PROVIDER_EVENT_EXAMPLE),
        "properties": {
            "calendar_id": ID,
            "provider": TEXT,
            "provider_id": TEXT | {"description": "The UID there."},
            "state": {
                "type": "string",
                "enum": [
                    "pending",
                    "written",
                    "removed",
                    "moved_there",
                    "removed_there",
                    "refused",
                ],
                "description": "`moved_there`, `removed_there`: somebody did so in that calendar,"
                " and the booking stays as it is; `refused`: it could not be moved along.",
            },
            "reason": {"type": ["string", "null"]},
            "start": {"anyOf": [TIME, {"type": "null"}], "description": "As it stands there."},
            "end": {"anyOf": [TIME, {"type": "null"}]},
            "written_at": {"anyOf": [STAMP, {"type": "null"}]},
        },
    },
    PROVIDER_EVENT_EXAMPLE,
)
SERIES = component(
    "Series",
    {
        "type": "object",
        "required": ["id", "rrule", "occurrences"],
        "properties": {
            "id": ID,
            "rrule": TEXT,
            "occurrences": {
                "type": "array",
                "description": "By start: a booking, or why there is none.",
                "items": {
                    "type": "object",
                    "required": ["start", "end"],
                    "properties": {
                        "start": TIME,
                        "end": TIME,
                        "booking_id": ID,
                        "reason": TEXT,
                    },
                },
            },
        },
    },
    {
        "id": "0193a4c2-0000-7000-8000-000000000040",
        "rrule": "FREQ=WEEKLY;COUNT=2",
        "occurrences": [
            {
                "start": "2026-11-23T09:00:00+01:00",
                "end": "2026-11-23T09:30:00+01:00",
                "booking_id": "0193a4c2-0000-7000-8000-000000000030",
            },
            {
                "start": "2026-11-30T09:00:00+01:00",
                "end": "2026-11-30T09:30:00+01:00",
                "reason": "slot_taken",
            },
        ],
    },
)
BOOKING = component(
    "Booking",
    {
        "type": "object",
        "description": "Six fields, and what `include` asks for. The answer to the request that"
        " made or changed it adds `resource_id`, `project_id`, `start` and `end`.",
        "required": list(BOOKING_EXAMPLE),
        "properties": {
            "id": ID,
            "state": _STATE,
            "graph": {"type": "string", "enum": list(GRAPHS)},
            "completed": FLAG | {"description": "No action is left."},
            "created_at": STAMP,
            "updated_at": STAMP,
            "resource_id": ID,
            "project_id": {"anyOf": [ID, {"type": "null"}]},
            "start": TIME,
            "end": TIME,
            "attributes": ATTRIBUTES,
            "event": {"anyOf": [EVENT, _PUBLIC_EVENT]},
            "calendar": CALENDAR,
            "resource": {"anyOf": [RESOURCE, _PUBLIC_RESOURCE]},
            "user": {
                "anyOf": [RESOURCE, _PUBLIC_RESOURCE],
                "description": "The resource, under its older name.",
            },
            "customers": {"type": "array", "items": CUSTOMER},
            "project": {"anyOf": [_PROJECT, {"type": "null"}]},
            "meta": FREE,
            "outcome": OUTCOME,
            "logs": {"type": "array", "items": LOG, "description": "Oldest first."},
            "available_actions": {"type": "array", "items": TEXT},
            "customer_action_links": {
                "type": "object",
                "additionalProperties": {"type": "string", "format": "uri"},
                "description": "By action: a signed address for the customer, valid until the end.",
            },
            "event_notifications": {"type": "array", "items": EVENT_NOTIFICATION},
            "owner_booking": {
                "anyOf": [_ENTRY, {"type": "null"}],
                "description": "Of a seat: the group's own booking.",
            },
            "seats": {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {
                            "allOf": [_ENTRY],
                            "type": "object",
                            "required": ["customers"],
                            "properties": {"customers": {"type": "array", "items": CUSTOMER}},
                        },
                    },
                    {"type": "null"},
                ],
                "description": "Of a group, in whatever state, in the order of their making; null"
                " for every other booking.",
            },
            "bulked_bookings": {
                "type": "array",
                "items": _ENTRY,
                "description": "The others that a bulk request related to it.",
            },
            "series": {"anyOf": [SERIES, {"type": "null"}]},
            "provider_event": {"anyOf": [PROVIDER_EVENT, {"type": "null"}]},
        },
    },
    BOOKING_EXAMPLE,
)
CHANGED_EXAMPLE = BOOKING_EXAMPLE | {
    "resource_id": RESOURCE_EXAMPLE["id"],
    "project_id": None,
    "start": "2026-11-23T09:00:00+01:00",
    "end": "2026-11-23T09:30:00+01:00",
}
WHOLE_BOOKING_EXAMPLE = BOOKING_EXAMPLE | {
    "attributes": {
        "event_info": {
            "start": "2026-11-23T09:00:00+01:00",
            "end": "2026-11-23T09:30:00+01:00",
            "what": "Check-up",
            "where": "Harbour Dental",
            "description": "",
            "calendar_id": "0193a4c2-0000-7000-8000-000000000012",
            "invite": True,
            "participants": [],
        },
        "customer": CUSTOMER_EXAMPLE,
        "settings": {"allow_double_bookings": False, "enforce_availability": False},
        "group_booking": None,
    },
    "event": EVENT_EXAMPLE
    | {
        "what": "Check-up",
        "where": "Harbour Dental",
        "start": "2026-11-23T09:00:00+01:00",
        "end": "2026-11-23T09:30:00+01:00",
    },
    "calendar": CALENDAR_EXAMPLE,
    "resource": RESOURCE_EXAMPLE,
    "customers": [CUSTOMER_EXAMPLE],
    "project": None,
    "meta": {},
    "outcome": None,
    "available_actions": ["cancel", "cancel_by_customer", "complete"],
    "customer_action_links": {
        "cancel_by_customer": "https://bookings.example.com/v2/bookings/"
        "0193a4c2-0000-7000-8000-000000000030/external_action/cancel_by_customer"
        "?signature=1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"
    },
    "event_notifications": [EVENT_NOTIFICATION_EXAMPLE],
}

# --- People's data --------------------------------------------------------------------------------
_COUNT = {"type": "integer", "minimum": 0}
_ROWS = {"type": "array", "items": FREE}
PERSON_EXAMPLE = {
    "email": "marty@example.com",
    "name": "Marty McFly",
    "phone": "+1 555 0100",
    "timezone": "America/Los_Angeles",
    "bookings": 3,
    "upcoming": 1,
    "first_booking_at": "2026-03-02T08:15:00+0000",
    "last_booking_at": "2026-11-20T09:30:00+0000",
}
PERSON = component(
    "Person",
    {
        "type": "object",
        "description": "All who booked with one address.",
        "required": list(PERSON_EXAMPLE),
        "properties": {
            **dict.fromkeys(("email", "name", "phone", "timezone"), TEXT),
            "bookings": _COUNT,
            "upcoming": _COUNT
            | {"description": "Of these, bookings that have not ended and are not completed."},
            "first_booking_at": STAMP | {"description": "When the oldest booking was made."},
            "last_booking_at": STAMP | {"description": "When the newest booking was made."},
        },
    },
    PERSON_EXAMPLE,
)
EXPORT = component(
    "PersonExport",
    {
        "type": "object",
        "required": ["email", "bookings", "events", "deliveries"],
        "properties": {
            "email": TEXT | {"description": "As it was asked for."},
            "bookings": {
                "type": "array",
                "items": BOOKING,
                "description": "Whole, with `logs`; of its customers this one only.",
            },
            "events": {
                "type": "array",
                "items": EVENT,
                "description": "Other events that name the address, of their participants this one"
                " only.",
            },
            "deliveries": _ROWS
            | {
                "description": "As in GET /deliveries/:id, with `content`: the facts that a mail is"
                " composed from when it leaves, or where an event notification calls."
            },
        },
    },
    {
        "email": "marty@example.com",
        "bookings": [WHOLE_BOOKING_EXAMPLE],
        "events": [],
        "deliveries": [],
    },
)
ERASED = component(
    "Erased",
    {
        "type": "object",
        "required": ["bookings", "log_entries", "deliveries"],
        "properties": dict.fromkeys(("bookings", "log_entries", "deliveries"), _COUNT),
    },
    {"bookings": 3, "log_entries": 4, "deliveries": 9},
)

# --- Holds ----------------------------------------------------------------------------------------
HOLD_EXAMPLE = {
    "reservation_id": "0193a4c2-0000-7000-8000-000000000041",
    "start": "2026-11-23T09:00:00+01:00",
    "end": "2026-11-23T09:30:00+01:00",
    "resource": RESOURCE_EXAMPLE,
    "expires_at": "2026-11-20T10:30:30+01:00",
}
HOLD = component(
    "Hold",
    {
        "type": "object",
        "required": list(HOLD_EXAMPLE),
        "properties": {
            "reservation_id": ID,
            "start": TIME,
            "end": TIME,
            "resource": {
                "anyOf": [RESOURCE, PUBLIC_RESOURCE],
                "description": "In mode mutual the first of those that are held.",
            },
            "expires_at": TIME | {"description": "When it lapses, unless it is used or extended."},
        },
    },
    HOLD_EXAMPLE,
)
