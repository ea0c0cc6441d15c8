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
from bookings.models import StateChange
from scheduling.api.components import FLAG, FREE, ID, STAMP, TEXT, TIME, component

_STATE = {"type": "string", "enum": list(STATES)}
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
        "required": ["event_info"],
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
                "properties": {"allow_double_bookings": FLAG, "enforce_availability": FLAG},
            },
        },
    },
)
# What a widget key sees of the two.
_PUBLIC_EVENT = {
    "type": "object",
    "title": "EventForWidgets",
    "required": ["id", "calendar_id", "what", "where", "start", "end"],
    "properties": {
        "id": ID,
        "calendar_id": ID,
        "what": TEXT,
        "where": TEXT,
        "start": TIME,
        "end": TIME,
    },
}
_PUBLIC_RESOURCE = {
    "type": "object",
    "title": "ResourceForWidgets",
    "required": ["id", "name", "image", "timezone"],
    "properties": {"id": ID, "name": TEXT, "image": TEXT, "timezone": TEXT},
}
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
BOOKING = component(
    "Booking",
    {
        "type": "object",
        "description": "Six fields, and what `include` asks for.",
        "required": list(BOOKING_EXAMPLE),
        "properties": {
            "id": ID,
            "state": _STATE,
            "graph": {"type": "string", "enum": list(GRAPHS)},
            "completed": FLAG | {"description": "No action is left."},
            "created_at": STAMP,
            "updated_at": STAMP,
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
            "logs": {"type": "array", "items": LOG, "description": "Oldest first."},
            "available_actions": {"type": "array", "items": TEXT},
            "event_notifications": {"type": "array", "items": EVENT_NOTIFICATION},
        },
    },
    BOOKING_EXAMPLE,
)
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
    "available_actions": ["cancel", "cancel_by_customer", "complete"],
    "event_notifications": [EVENT_NOTIFICATION_EXAMPLE],
}
