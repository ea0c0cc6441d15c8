"""iCalendar texts for tests."""

from collections.abc import Sequence


def calendar(*components: str, head: Sequence[str] = ()) -> str:
    """A VCALENDAR of components, with lines of its own before them."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", *head]
    return "\r\n".join([*lines, *components, "END:VCALENDAR", ""])


def event(*lines: str, uid: str = "one@test") -> str:
    return "\r\n".join(["BEGIN:VEVENT", f"UID:{uid}", *lines, "END:VEVENT"])


def one(*lines: str, uid: str = "one@test", head: Sequence[str] = ()) -> str:
    """A calendar with one event."""
    return calendar(event(*lines, uid=uid), head=head)


# A zone that no list knows: six hours ahead, seven from the first Sunday of May until the second
# Sunday of October, each at 2:00 of the clock that holds until then.
OWN_ZONE = """\
BEGIN:VTIMEZONE\r
TZID:Our Own\r
BEGIN:STANDARD\r
DTSTART:19701011T020000\r
TZOFFSETFROM:+0700\r
TZOFFSETTO:+0600\r
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=2SU\r
END:STANDARD\r
BEGIN:DAYLIGHT\r
DTSTART:19700503T020000\r
TZOFFSETFROM:+0600\r
TZOFFSETTO:+0700\r
RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=1SU\r
END:DAYLIGHT\r
END:VTIMEZONE"""
