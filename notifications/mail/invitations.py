"""Entries for the recipients' own calendars (RFC 5545, RFC 5546)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.utils import timezone
from django.utils.translation import gettext
from icalendar import Alarm, Event

from common.email_address import is_address
from common.ical.writing import Guest, conference_property, ical_address, ical_time, new_calendar
from notifications.mail.envelope import service_host

ALARM_BEFORE = timedelta(minutes=-30)
STATUS = {"REQUEST": "CONFIRMED", "PUBLISH": "CONFIRMED", "CANCEL": "CANCELLED"}


class InvitationEntry(NamedTuple):
    """One entry: aware datetimes, or dates of whole days, the end exclusive."""

    entry_id: uuid.UUID  # of the booking
    sequence: int
    start: datetime | date
    end: datetime | date
    conference: str = ""  # the link of the video call
    uid: str = ""  # at the provider of a connected calendar; "": `entry_uid`


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
    """
    calendar = new_calendar(invitations[0].method)
    stamp = timezone.now()
    for given in invitations:
        for occurrence in given.occurrences:
            calendar.add_component(_event(given, occurrence, stamp))
    return calendar.to_ical().decode()


def _event(given: Invitation, occurrence: InvitationEntry, stamp: datetime) -> Event:
    event = Event()
    event.add("SUMMARY", given.what)
    event.add("DTSTART", ical_time(occurrence.start))
    event.add("DTEND", ical_time(occurrence.end))
    event.add("DTSTAMP", stamp)
    event.add("UID", occurrence.uid or entry_uid(occurrence.entry_id))
    event.add("SEQUENCE", occurrence.sequence)
    if given.method != "PUBLISH":  # there nobody is asked, so nobody is named (RFC 5546, 3.2.1)
        _add_attendees(event, given)
    event.add("ORGANIZER", ical_address(given.organizer))
    event.add("STATUS", STATUS[given.method])
    event.add("TRANSP", "OPAQUE")
    link = occurrence.conference
    texts = [given.description, f"{gettext('Video call')}: {link}" if link else ""]
    for name, value in (
        ("DESCRIPTION", "\n\n".join(filter(None, texts))),
        ("LOCATION", given.where or link),
        ("URL", link or given.url),
    ):
        if value:
            event.add(name, value)
    if link:
        event.add("CONFERENCE", conference_property(link))
    if given.method != "CANCEL":
        event.add_component(_alarm(given))
    return event


def _add_attendees(event: Event, given: Invitation) -> None:
    for role, people in (("CHAIR", given.hosts), ("REQ-PARTICIPANT", given.guests)):
        for guest in people:
            if is_address(guest.address):
                attendee = ical_address(guest, ROLE=role, PARTSTAT="ACCEPTED", RSVP="FALSE")
                event.add("ATTENDEE", attendee)


def _alarm(given: Invitation) -> Alarm:
    """A reminder, for calendar programs that take one from an invitation."""
    alarm = Alarm()
    alarm.add("ACTION", "DISPLAY")
    alarm.add("DESCRIPTION", given.what)
    alarm.add("TRIGGER", ALARM_BEFORE)
    return alarm


def entry_uid(entry_id: uuid.UUID) -> str:
    """Return the UID of a booking by its `calendar_uid`: in every calendar that takes ours."""
    return f"{entry_id}@{service_host()}"
