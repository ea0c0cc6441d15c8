"""Entries for the recipients' own calendars (RFC 5545, RFC 5546)."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

from django.utils import timezone
from icalendar import vCalAddress, vText
from icalendar.parser import Contentline

from common.email_address import ascii_address, is_address
from notifications.mail.envelope import service_host

ALARM_BEFORE = "-PT30M"
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
    return render_invitations([given])


def render_invitations(invitations: Sequence[Invitation]) -> str:
    """The entries, of one method, as text with CRLF. All entries of a booking have one UID, so that
    each replaces the one before it.

    The lines are put together here: `icalendar`, which writes the values, takes eight times as long
    for a whole calendar (docs/benchmarks.md, P20).
    """
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", f"PRODID:{PRODUCT}", "CALSCALE:GREGORIAN"]
    lines.append(f"METHOD:{invitations[0].method}")
    stamp = _time_line("DTSTAMP", timezone.now())
    for given in invitations:
        lines += _entry_lines(given, stamp)
    lines.append("END:VCALENDAR")
    return "".join(f"{_fold(line)}\r\n" for line in lines)


def _entry_lines(given: Invitation, stamp: str) -> Iterator[str]:
    summary, shared = f"SUMMARY:{_text(given.what)}", [*_shared_lines(given), *_alarm_lines(given)]
    for occurrence in given.occurrences:
        yield from (
            "BEGIN:VEVENT",
            summary,
            _time_line("DTSTART", occurrence.start),
            _time_line("DTEND", occurrence.end),
            stamp,
            f"UID:{entry_uid(occurrence.entry_id)}",
            f"SEQUENCE:{occurrence.sequence}",
            *shared,
            "END:VEVENT",
        )


def _shared_lines(given: Invitation) -> Iterator[str]:
    """The lines that do not differ between entries."""
    if given.method != "PUBLISH":  # there nobody is asked, so nobody is named (RFC 5546, 3.2.1)
        for role, people in (("CHAIR", given.hosts), ("REQ-PARTICIPANT", given.guests)):
            for guest in people:
                if is_address(guest.address):
                    yield _person_line(
                        "ATTENDEE", guest, ROLE=role, PARTSTAT="ACCEPTED", RSVP="FALSE"
                    )
    if given.description:
        yield f"DESCRIPTION:{_text(given.description)}"
    if given.where:
        yield f"LOCATION:{_text(given.where)}"
    yield _person_line("ORGANIZER", given.organizer)
    yield f"STATUS:{STATUS[given.method]}"
    yield "TRANSP:OPAQUE"
    if given.url:
        yield f"URL:{given.url}"


def _alarm_lines(given: Invitation) -> Sequence[str]:
    """A reminder, for calendar programs that take one from an invitation."""
    if given.method == "CANCEL":
        return ()
    return (
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        f"DESCRIPTION:{_text(given.what)}",
        f"TRIGGER:{ALARM_BEFORE}",
        "END:VALARM",
    )


def _person_line(name: str, person: Guest, **parameters: str) -> str:
    address = ical_address(person, **parameters)
    values = address.params.to_ical().decode()
    return f"{name};{values}:{address}" if values else f"{name}:{address}"


def _time_line(name: str, value: datetime | date) -> str:
    written = ical_time(value)
    if isinstance(written, datetime):
        return f"{name}:{written.year:04}{written:%m%dT%H%M%SZ}"
    return f"{name};VALUE=DATE:{written.year:04}{written:%m%d}"


def _text(value: str) -> str:
    return vText(value).to_ical().decode()


def _fold(line: str) -> str:
    """Fold after 74 octets as `icalendar` does, which divides no escape sequence and refuses line
    breaks.
    """
    if not (line.isascii() and line.isprintable()) or "\\" in line or "^" in line:
        return Contentline(line).to_ical().decode()
    return "\r\n ".join(line[start : start + 74] for start in range(0, len(line), 74))


def entry_uid(entry_id: uuid.UUID) -> str:
    """Return the UID of a booking by its `calendar_uid`, the same in every calendar."""
    return f"{entry_id}@{service_host()}"


def ical_time(value: datetime | date) -> datetime | date:
    """Return the value to write: an instant in UTC, a date unchanged."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def ical_address(guest: Guest, **parameters: str) -> vCalAddress:
    """Return the value of an ORGANIZER or ATTENDEE."""
    address = vCalAddress(f"mailto:{ascii_address(guest.address)}")
    if guest.name:
        address.params["CN"] = vText(guest.name)
    for name, value in parameters.items():
        address.params[name] = vText(value)
    return address
