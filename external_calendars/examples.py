"""Examples of connected calendars and feeds in the OpenAPI document."""

from availability.models import Calendar
from availability.serializers.calendars import CalendarSerializer
from common.api.response_schemas import example_id
from external_calendars.providers.base import PROVIDER_ERRORS

CONNECTED_EXAMPLE = CalendarSerializer.example(
    id=example_id(14),
    name="Work",
    provider="caldav",
    provider_id="https://dav.example.com/calendars/ada/work/",
    provider_access=Calendar.WRITER,
    provider_primary=True,
    provider_sync=True,
)
CONNECTED = {"data": CONNECTED_EXAMPLE}
STOPPED = {
    "data": CONNECTED_EXAMPLE
    | {
        "provider_sync": False,
        "synced_at": "2026-11-20T09:30:00+0000",
        "problem": {
            "code": "unauthorized",
            "text": PROVIDER_ERRORS["unauthorized"],
            "since": "2026-11-20T09:35:00+0000",
        },
    }
}
# the feed of another service
FEED_ADDRESS = "https://calendars.example.com/private-0a1b2c3d/basic.ics"

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
