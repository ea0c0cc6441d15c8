"""iCalendar texts as tests write them, with the line ends of RFC 5545."""

from datetime import UTC, datetime, timedelta

NINE = datetime(2026, 11, 23, 9, tzinfo=UTC)


def event_text(
    uid: str,
    start: datetime = NINE,
    minutes: int = 60,
    what: str = "Meeting",
    lines: tuple[str, ...] = (),
) -> str:
    """A calendar of one event at an instant; `lines` are further ones of the event's."""
    return calendar_text(event_lines(uid, start, minutes, what, lines))


def event_lines(
    uid: str,
    start: datetime = NINE,
    minutes: int = 60,
    what: str = "Meeting",
    lines: tuple[str, ...] = (),
) -> tuple[str, ...]:
    end = start + timedelta(minutes=minutes)
    return (
        "BEGIN:VEVENT",
        f"UID:{uid}",
        "DTSTAMP:20261101T000000Z",
        f"DTSTART:{start.astimezone(UTC):%Y%m%dT%H%M%SZ}",
        f"DTEND:{end.astimezone(UTC):%Y%m%dT%H%M%SZ}",
        f"SUMMARY:{what}",
        *lines,
        "END:VEVENT",
    )


def calendar_text(*parts: tuple[str, ...]) -> str:
    """`calendar_text(event_lines("a"), event_lines("b"))`."""
    lines = [line for part in parts for line in part]
    whole = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN", *lines, "END:VCALENDAR", ""]
    return "\r\n".join(whole)
