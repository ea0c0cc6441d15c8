"""API records of connection tests and feeds."""

from availability.models import Calendar
from availability.records import CalendarRecord
from common.api.response_records import Record, example_id, field
from external_calendars.providers.base import PROVIDER_ERRORS

CONNECTED_EXAMPLE = CalendarRecord.example(
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


class CalendarTestRecord(Record):
    ok: bool = field(of=lambda result: not result.provider_error, example=True)
    problem: str | None = field(
        "Why the calendar can't be used; null without a problem.",
        of="provider_error",
        enum=list(PROVIDER_ERRORS),
    )
    text: str = field("The problem as a text for people.", example="The calendar can be used.")
    access: str | None = field(
        "The access at the provider; null if unknown.",
        enum=[Calendar.READER, Calendar.WRITER],
        example=Calendar.WRITER,
    )
    seconds: float = field(of=lambda result: round(result.seconds, 3), minimum=0, example=0.214)


class CalendarFeedRecord(Record):
    "Shown once. The service stores only a hash."

    url: str = field(
        "The URL for calendar programs. Anyone with this URL can read the calendar.",
        example=f"https://booking.example.com/v2/calendars/{example_id(12)}/feed.ics"
        "?token=Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    )
    token: str = field(
        "The secret part of the URL.",
        example="Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    )
    details: bool = field("Whether the feed shows the names and contact data of customers.")


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
