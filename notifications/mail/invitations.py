"""Entries for the recipients' own calendars (RFC 5545, RFC 5546)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.utils import timezone
from icalendar import Alarm, Calendar, Event, vCalAddress, vText

from notifications.mail.envelope import is_address, service_host

ALARM_BEFORE = timedelta(minutes=30)
PRODUCT = "-//Scheduling and booking service//EN"
STATUS = {"REQUEST": "CONFIRMED", "PUBLISH": "CONFIRMED", "CANCEL": "CANCELLED"}


class Guest(NamedTuple):
    name: str
    address: str


class InvitationEntry(NamedTuple):
    """One entry: aware datetimes, or dates of whole days, the end exclusive."""

    entry_id: uuid.UUID  # of the booking
    sequence: int
    start: datetime | date
    end: datetime | date


@dataclass(frozen=True, slots=True)
class Invitation:
    """What entries say. `method` is REQUEST or CANCEL, or PUBLISH for several: a REQUEST knows one
    UID (RFC 5546, 3.2.2). hosts: the owners that they are sent to. url: a page about the booking;
    "" if there is none."""

    method: str
    occurrences: Sequence[InvitationEntry]
    what: str
    where: str
    description: str
    organizer: Guest
    guests: Sequence[Guest]
    hosts: Sequence[Guest]
    url: str = ""


def render_invitation(given: Invitation) -> str:
    """The entries as text with CRLF. All entries of a booking have one UID, so that each replaces
    the one before it."""
    calendar = Calendar()
    calendar.add("PRODID", PRODUCT)
    calendar.add("VERSION", "2.0")
    calendar.add("CALSCALE", "GREGORIAN")
    calendar.add("METHOD", given.method)
    for occurrence in given.occurrences:
        calendar.add_component(_event(given, occurrence))
    return calendar.to_ical().decode()


def _event(given: Invitation, occurrence: InvitationEntry) -> Event:
    event = Event()
    event.add("UID", entry_uid(occurrence.entry_id))
    event.add("SEQUENCE", occurrence.sequence)
    event.add("DTSTAMP", timezone.now().replace(microsecond=0))
    event.add("DTSTART", ical_time(occurrence.start))
    event.add("DTEND", ical_time(occurrence.end))
    event.add("SUMMARY", given.what)
    if given.where:
        event.add("LOCATION", given.where)
    if given.description:
        event.add("DESCRIPTION", given.description)
    if given.url:
        event.add("URL", given.url)
    event.add("STATUS", STATUS[given.method])
    event.add("TRANSP", "OPAQUE")
    event.add("ORGANIZER", ical_address(given.organizer))
    if given.method != "CANCEL":
        event.add_component(_alarm(given.what))
    if given.method == "PUBLISH":
        return event  # nobody is asked, so nobody is named (RFC 5546, 3.2.1)
    for role, people in (("CHAIR", given.hosts), ("REQ-PARTICIPANT", given.guests)):
        for guest in people:
            if is_address(guest.address):
                event.add(
                    "ATTENDEE", ical_address(guest, ROLE=role, PARTSTAT="ACCEPTED", RSVP="FALSE")
                )
    return event


def _alarm(text: str) -> Alarm:
    """Return a reminder for calendar programs that take one from an invitation."""
    alarm = Alarm()
    alarm.add("ACTION", "DISPLAY")
    alarm.add("DESCRIPTION", text)
    alarm.add("TRIGGER", -ALARM_BEFORE)
    return alarm


def entry_uid(entry_id: uuid.UUID) -> str:
    """Return the UID of a booking by its `calendar_entry_id`, the same in every calendar."""
    return f"{entry_id}@{service_host()}"


def ical_time(value: datetime | date) -> datetime | date:
    """Return the value to write: an instant in UTC, a date unchanged."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def ical_address(guest: Guest, **parameters: str) -> vCalAddress:
    """Return the value of an ORGANIZER or ATTENDEE."""
    address = vCalAddress(f"mailto:{guest.address}")
    if guest.name:
        address.params["CN"] = vText(guest.name)
    for name, value in parameters.items():
        address.params[name] = vText(value)
    return address
