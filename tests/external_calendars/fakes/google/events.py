"""Events of the fake Google as they are stored, and what a body says of one.

A stored event is the resource as in JSON, except for `start`, `end` and `originalStartTime`, which
are Moments.
"""

import copy
import functools
import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tests.external_calendars.fakes.google.discovery import read_only_fields
from tests.external_calendars.fakes.google.errors import ApiError
from tests.external_calendars.fakes.google.times import Moment

# Not in responses where it is the value.
UNSAID = {"transparency": "opaque", "visibility": "default", "attendees": [], "recurrence": []}
MEET = "hangoutsMeet"
CONFERENCE: tuple[str, ...] = ("conferenceData", "hangoutLink")

Fields = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """An occurrence of a series that has no exception."""

    master: "StoredEvent"
    start: Moment

    @property
    def id(self) -> str:
        return f"{self.master.id}_{self.start.id}"

    @functools.cached_property
    def fields(self) -> Fields:
        """As the exception that a change makes of it; to be read only."""
        fields = self.master.fields
        length = fields["end"].at - fields["start"].at
        return {name: value for name, value in fields.items() if name != "recurrence"} | {
            "id": self.id,
            "recurringEventId": self.master.id,
            "originalStartTime": self.start,
            "start": self.start,
            "end": self.start.plus(length),
        }


@dataclass
class StoredEvent:
    """changed: the number of its latest change, of all changes of its calendar.

    is_purged: removed from the bin; its id stays taken. meet_at: when its conference is ready.
    """

    fields: Fields
    changed: int = 0
    is_purged: bool = False
    meet_at: datetime | None = None

    @property
    def id(self) -> str:
        return self.fields["id"]

    @property
    def is_cancelled(self) -> bool:
        return self.fields["status"] == "cancelled"

    @property
    def master_id(self) -> str:
        """Of an exception; "" of anything else."""
        return self.fields.get("recurringEventId", "")

    @property
    def has_recurrence(self) -> bool:
        return bool(self.fields.get("recurrence"))


class VanishedInstance(NamedTuple):
    """An occurrence that a change of its series removed; `changed` as of a StoredEvent."""

    fields: Fields
    changed: int


@dataclass(frozen=True)
class Invitation:
    """E-mails that Google sends about an event, one to each recipient.

    operation: insert, update, or delete (also to guests whom an update removes).
    """

    operation: str
    event_id: str
    ical_uid: str
    recipients: tuple[str, ...]


def writable(body: Fields) -> Fields:
    """Return a copy of what a client may set, without nulls and defaults."""
    return {
        name: copy.deepcopy(value)
        for name, value in body.items()
        if name not in read_only_fields() and value is not None and value != UNSAID.get(name)
    }


def merge_fields(old: Fields, changes: Fields) -> Fields:
    """Return the old fields with the changes of a PATCH: null removes a field."""
    merged = dict(old)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(old.get(name), dict):
            merged[name] = merge_fields(old[name], value)
        else:
            merged[name] = value
    return merged


def read_attendees(fields: Fields) -> None:
    """Check the attendees. One without an answer has not answered, even if there was one before."""
    attendees = fields.get("attendees", [])
    for attendee in attendees:
        if "@" not in attendee.get("email", ""):
            raise ApiError("required", "Missing attendee email.")
        attendee.setdefault("responseStatus", "needsAction")
        for name in ("self", "organizer"):
            attendee.pop(name, None)
    if len({attendee["email"].lower() for attendee in attendees}) < len(attendees):
        raise ApiError("invalid", "Duplicate attendees in the request.")


def guest_addresses(fields: Fields) -> set[str]:
    """Return the addresses that get mails about an event."""
    organizer = fields.get("organizer", {}).get("email")
    return {one["email"] for one in fields.get("attendees", ())} - {organizer}


def complete_conference(fields: Fields, *, fails: bool) -> None:
    """Give the event of a pending conference its link."""
    request = fields["conferenceData"]["createRequest"]
    request["status"] = {"statusCode": "failure" if fails else "success"}
    if fails:
        return
    digest = hashlib.sha256(f"{fields['id']} {request['requestId']}".encode()).digest()
    letters = "".join(chr(ord("a") + byte % 26) for byte in digest[:10])
    code = f"{letters[:3]}-{letters[3:7]}-{letters[7:]}"
    fields["hangoutLink"] = f"https://meet.google.com/{code}"
    fields["conferenceData"] |= {
        "conferenceId": code,
        "conferenceSolution": {"key": request["conferenceSolutionKey"], "name": "Google Meet"},
        "entryPoints": [
            {
                "entryPointType": "video",
                "uri": f"https://meet.google.com/{code}",
                "label": f"meet.google.com/{code}",
            }
        ],
    }
