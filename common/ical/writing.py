"""iCalendar objects that the service writes: values, people and the calendar around an event."""

from datetime import UTC, date, datetime
from typing import NamedTuple

from icalendar import Calendar, vCalAddress, vText, vUri

from common.email_address import ascii_address

PRODUCT = "-//Scheduling and booking service//EN"


class Guest(NamedTuple):
    name: str
    address: str


def new_calendar(method: str = "") -> Calendar:
    """Return a calendar without events. method: of iTIP (RFC 5546), such as REQUEST."""
    calendar = Calendar()
    calendar.add("PRODID", PRODUCT)
    calendar.add("VERSION", "2.0")
    calendar.add("CALSCALE", "GREGORIAN")
    if method:
        calendar.add("METHOD", method)
    return calendar


def ical_time(value: datetime | date) -> datetime | date:
    """Return the value to write: an instant in UTC, a date unchanged."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def conference_property(link: str) -> vUri:
    """Return the value of the CONFERENCE of a video call (RFC 7986, section 5.11)."""
    uri = vUri(link)
    uri.params["VALUE"] = "URI"
    uri.params["FEATURE"] = "AUDIO,VIDEO"
    return uri


def ical_address(guest: Guest, **parameters: str) -> vCalAddress:
    """Return the value of an ORGANIZER or ATTENDEE."""
    address = vCalAddress(f"mailto:{ascii_address(guest.address)}")
    if guest.name:
        address.params["CN"] = vText(guest.name)
    for name, value in parameters.items():
        address.params[name] = vText(value)
    return address
