"""How the tenant's objects are written in answers."""

from typing import Any

from apps_config.models import App
from scheduling.api.components import FLAG, ID, STAMP, TEXT, component
from scheduling.api.instants import format_stamp

EVENT_NOTIFICATION_EXAMPLE = {
    "type": "email",
    "settings": {"recipient": "customer", "subject": "See you soon"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}
_EMAIL_SETTINGS = {
    "type": "object",
    "title": "of an e-mail",
    "required": ["recipient"],
    "properties": {
        "recipient": {"type": "string", "enum": ["customer", "owner"]},
        "subject": TEXT,
    },
}
_WEBHOOK_SETTINGS = {
    "type": "object",
    "title": "of a webhook call",
    "required": ["url", "method"],
    "properties": {
        "url": TEXT,
        "method": {"type": "string", "enum": ["post", "put", "patch", "get"]},
        "expected_response_code": {
            "type": "integer",
            "minimum": 100,
            "maximum": 599,
            "description": "Any 2xx where it is absent.",
        },
    },
}
EVENT_NOTIFICATION = component(
    "EventNotification",
    {
        "type": "object",
        "description": "A reminder at a time relative to the booking's start.",
        "required": ["type", "settings", "when"],
        "properties": {
            "type": {"type": "string", "enum": ["email", "webhook"]},
            "settings": {"anyOf": [_EMAIL_SETTINGS, _WEBHOOK_SETTINGS]},
            "when": {
                "type": "object",
                "required": ["type", "unit", "time"],
                "properties": {
                    "type": {"type": "string", "enum": ["before", "after"]},
                    "unit": {"type": "string", "enum": ["secs", "mins", "hours", "days"]},
                    "time": {"type": "integer", "minimum": 0},
                },
            },
        },
    },
    EVENT_NOTIFICATION_EXAMPLE,
)
APP_EXAMPLE = {
    "id": "0193a4c2-0000-7000-8000-000000000001",
    "slug": "demo",
    "name": "Demo",
    "mode": "live",
    "settings": {"disable_emails": False, "default_timezone": "Europe/Berlin"},
    "event_notifications": [EVENT_NOTIFICATION_EXAMPLE],
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
}
SETTINGS = component(
    "KeptAppSettings",  # generators call the body of the app's own settings AppSettings
    {
        "type": "object",
        "description": "These are known; other keys are kept as they were sent.",
        "required": ["disable_emails"],
        "properties": {
            "disable_emails": FLAG,
            "from_name": TEXT,
            "from_email": TEXT,
            "contact_name": TEXT,
            "contact_email": TEXT,
            "callback": TEXT,
            "redirect_urls": {"type": "array", "items": TEXT},
            "default_timezone": TEXT,
            "language": TEXT,
            "stale_calendars": {"type": "string", "enum": list(App.STALE_CALENDARS)},
            "external_edits": {"type": "string", "enum": list(App.EXTERNAL_EDITS)},
        },
        "additionalProperties": True,
    },
)
APP = component(
    "App",
    {
        "type": "object",
        "required": list(APP_EXAMPLE),
        "properties": {
            "id": ID,
            "slug": TEXT,
            "name": TEXT,
            "mode": {
                "type": "string",
                "enum": ["live", "test"],
                "description": "Fixed at its making. A test app mails only its members.",
            },
            "settings": SETTINGS,
            "event_notifications": {"type": "array", "items": EVENT_NOTIFICATION},
            "created_at": STAMP,
            "updated_at": STAMP,
        },
    },
    APP_EXAMPLE,
)


def app_record(app: App) -> dict[str, Any]:
    return {
        "id": str(app.id),
        "slug": app.slug,
        "name": app.name,
        "mode": app.mode,
        "settings": {"disable_emails": False} | app.settings,
        "event_notifications": [one.as_json() for one in app.event_notifications.all()],
        "created_at": format_stamp(app.created_at),
        "updated_at": format_stamp(app.updated_at),
    }
