"""What connected calendars and feeds look like, for the description."""

from availability.models import Calendar
from availability.schemas import CALENDAR_EXAMPLE
from external_calendars.providers.base import TROUBLES
from scheduling.api.components import FLAG, component, text_of

CONNECTED_EXAMPLE = CALENDAR_EXAMPLE | {
    "id": "0193a4c2-0000-7000-8000-000000000014",
    "name": "Work",
    "provider": "caldav",
    "provider_id": "https://dav.example.com/calendars/ada/work/",
    "provider_access": Calendar.WRITER,
    "provider_primary": True,
    "provider_sync": True,
}
CONNECTED = {"data": CONNECTED_EXAMPLE}
STOPPED = {
    "data": CONNECTED_EXAMPLE
    | {
        "provider_sync": False,
        "synced_at": "2026-11-20T09:30:00+0000",
        "problem": {
            "code": "unauthorized",
            "text": TROUBLES["unauthorized"],
            "since": "2026-11-20T09:35:00+0000",
        },
    }
}
# Of a feed of somebody else's.
FEED_ADDRESS = "https://calendars.example.com/private-0a1b2c3d/basic.ics"
TRIED_EXAMPLE = {
    "ok": True,
    "problem": None,
    "text": "The calendar can be used.",
    "access": Calendar.WRITER,
    "seconds": 0.214,
}
TRIED = component(
    "CalendarTest",
    {
        "type": "object",
        "required": list(TRIED_EXAMPLE),
        "properties": {
            "ok": FLAG,
            "problem": {
                "enum": [*TROUBLES, None],
                "description": "Why it can't be used; null: it can.",
            },
            "text": text_of("The same, for a person."),
            "access": {
                "enum": [Calendar.READER, Calendar.WRITER, None],
                "description": "What may be done there; null where that is not known.",
            },
            "seconds": {"type": "number", "minimum": 0},
        },
    },
    TRIED_EXAMPLE,
)
FEED_EXAMPLE = {
    "url": f"https://booking.example.com/v2/calendars/{CALENDAR_EXAMPLE['id']}/feed.ics"
    "?token=Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    "token": "Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
}
FEED = component(
    "CalendarFeed",
    {
        "type": "object",
        "description": "Shown this once; what is kept is a hash.",
        "required": list(FEED_EXAMPLE),
        "properties": {
            "url": text_of("For any calendar program. Whoever has it reads the calendar."),
            "token": text_of("What makes the address secret, alone."),
        },
    },
    FEED_EXAMPLE,
)
EXAMPLE_FEED = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Scheduling and booking service//EN",
        "X-WR-CALNAME:Bookings",
        "BEGIN:VEVENT",
        "UID:0193a4c2-0000-7000-8000-000000000013@booking.example.com",
        "DTSTAMP:20261120T093000Z",
        "DTSTART:20261201T080000Z",
        "DTEND:20261201T160000Z",
        "SUMMARY:Dentists' congress",
        "STATUS:CONFIRMED",
        "TRANSP:OPAQUE",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
)
