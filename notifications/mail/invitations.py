"""Entries for the recipients' own calendars (RFC 5545, RFC 5546)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

from django.utils import timezone
from icalendar import Calendar, Event, vCalAddress, vText

from notifications.mail.envelope import is_address, service_host

PRODUCT = "-//Scheduling and booking service//EN"
STATUS = {"REQUEST": "CONFIRMED", "CANCEL": "CANCELLED"}


class Guest(NamedTuple):
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """What an entry says. `method` is REQUEST or CANCEL; start and end are aware datetimes, or
    dates of whole days, the end exclusive. hosts: the owners that the entry is sent to."""

    method: str
    booking_id: uuid.UUID
    sequence: int
    start: datetime | date
    end: datetime | date
    what: str
    where: str
    description: str
    organizer: Guest
    guests: Sequence[Guest]
    hosts: Sequence[Guest]


def invitation(given: Invitation) -> str:
    """The entry as text with CRLF. All entries of a booking have one UID, so that each replaces
    the one before it."""
    calendar = Calendar()
    calendar.add("PRODID", PRODUCT)
    calendar.add("VERSION", "2.0")
    calendar.add("CALSCALE", "GREGORIAN")
    calendar.add("METHOD", given.method)
    calendar.add_component(_event(given))
    return calendar.to_ical().decode()


def _event(given: Invitation) -> Event:
    event = Event()
    event.add("UID", f"{given.booking_id}@{service_host()}")
    event.add("SEQUENCE", given.sequence)
    event.add("DTSTAMP", timezone.now().replace(microsecond=0))
    event.add("DTSTART", _moment(given.start))
    event.add("DTEND", _moment(given.end))
    event.add("SUMMARY", given.what)
    if given.where:
        event.add("LOCATION", given.where)
    if given.description:
        event.add("DESCRIPTION", given.description)
    event.add("STATUS", STATUS[given.method])
    event.add("TRANSP", "OPAQUE")
    event.add("ORGANIZER", _person(given.organizer))
    for role, people in (("CHAIR", given.hosts), ("REQ-PARTICIPANT", given.guests)):
        for person in people:
            if is_address(person.address):
                event.add("ATTENDEE", _person(person, ROLE=role, PARTSTAT="ACCEPTED", RSVP="FALSE"))
    return event


def _moment(value: datetime | date) -> datetime | date:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _person(person: Guest, **parameters: str) -> vCalAddress:
    address = vCalAddress(f"mailto:{person.address}")
    if person.name:
        address.params["CN"] = vText(person.name)
    for name, value in parameters.items():
        address.params[name] = vText(value)
    return address
