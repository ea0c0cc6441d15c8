"""Google's calendars: how their events are found, changed and shown.

Estimates, where nothing says what the real service does: a change of the times of a
series cancels the exceptions of times that it no longer has; other changes of a series do not reach
its exceptions; a write that changes nothing leaves the ETag and sends no mail.
"""

import copy
import functools
import hashlib
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeVar, cast

from tests.external_calendars.fakes.google.discovery import read_only_fields
from tests.external_calendars.fakes.google.errors import ApiError
from tests.external_calendars.fakes.google.events import (
    CONFERENCE,
    MEET,
    UNSAID,
    Fields,
    Instance,
    Invitation,
    StoredEvent,
    VanishedInstance,
    complete_conference,
    guest_addresses,
    merge_fields,
    read_attendees,
    writable,
)
from tests.external_calendars.fakes.google.times import (
    check_recurrence,
    moment_of,
    read_moment,
    series_starts,
)
from tests.external_calendars.fakes.server import Clock

EVENT_ID = re.compile("[a-v0-9]{5,1024}")
MOMENTS = ("start", "end", "originalStartTime")
# What somebody sees who may see times only.
TIMES_ONLY = (
    *("kind", "etag", "id", "status", "created", "updated", "iCalUID", "sequence", "eventType"),
    *("start", "end", "recurrence", "recurringEventId", "originalStartTime", "transparency"),
)
CANCELLED_INSTANCE = ("kind", "etag", "id", "status", "recurringEventId", "originalStartTime")
DELETED = ("kind", "etag", "id", "status")
# With one of these, guests' calendars follow, so the sequence rises.
RESCHEDULES = ("start", "end", "recurrence")
# How far singleEvents expands a series without an end, from now on.
EXPANDED_DAYS = 730
NO_BUSY_TYPES = ("workingLocation", "birthday")

F = TypeVar("F", bound=Callable[..., Any])


def locked(method: F) -> F:
    """Tests call it while requests are being answered."""

    @functools.wraps(method)
    def with_lock(calendar: "StoredCalendar", *args: Any, **given: Any) -> Any:
        with calendar.lock:
            return method(calendar, *args, **given)

    return cast(F, with_lock)


@dataclass
class StoredCalendar:
    """A calendar with its events. A test changes it by `add`, `change`, `cancel` and `respond`.

    on_change: called after each change. owner: the e-mail address of the account that has it.
    conference_delay: seconds, by the clock, that a new conference is pending; 0: not at all.
    """

    id: str
    summary: str
    time_zone: str
    owner: str
    clock: Clock
    on_change: Callable[["StoredCalendar"], None]
    invitations: list[Invitation]
    lock: threading.RLock
    is_primary: bool = False
    allowed_conferences: tuple[str, ...] = (MEET,)
    conference_delay: float = 0.05
    conference_fails: bool = False
    description: str = ""
    events: dict[str, StoredEvent] = field(default_factory=dict)
    vanished: dict[str, VanishedInstance] = field(default_factory=dict)
    changes: int = 0

    # --- For tests: what the owner does in the calendar -------------------------------------------
    @locked
    def add(self, summary: str, start: date | datetime, end: date | datetime, **fields: Any) -> str:
        """Add an event and return its id. `time_zone`: its own, by default the calendar's.

        fields: of the resource, such as recurrence, attendees or eventType; also those that only
        the server sets, such as organizer.
        """
        zone = fields.pop("time_zone", self.time_zone)
        moments = {"start": moment_of(start, zone), "end": moment_of(end, zone)}
        shown = {name: moment.as_json(zone) for name, moment in moments.items()}
        forced = {name: fields.pop(name) for name in read_only_fields() & fields.keys()}
        event = self.insert({"summary": summary, **shown, **fields}, creator=self.owner)
        event.fields |= forced
        return event.id

    @locked
    def change(self, event_id: str, **fields: Any) -> None:
        """Change these fields of an event, or of one occurrence; start and end as for `add`."""
        found = self.find(event_id)
        zone = fields.pop("time_zone", found.fields["start"].zone)
        for name in ("start", "end"):
            if name in fields:
                fields[name] = moment_of(fields[name], zone).as_json(zone)
        self.patch(found, fields)

    @locked
    def cancel(self, event_id: str) -> None:
        """Delete an event, or one occurrence."""
        self.delete(self.find(event_id))

    @locked
    def purge(self, event_id: str) -> None:
        """Delete an event and empty the bin. The id stays taken."""
        found = self.find(event_id)
        if found.fields["status"] != "cancelled":
            self.delete(found)
        self.events[event_id].is_purged = True

    @locked
    def respond(self, event_id: str, email: str, status: str, comment: str = "") -> None:
        """A guest answers: declined, tentative, accepted, or needsAction again."""
        event = self.stored(self.find(event_id))
        [attendee] = [one for one in event.fields["attendees"] if one["email"] == email]
        attendee["responseStatus"] = status
        if comment:
            attendee["comment"] = comment
        self._touch(event)

    @locked
    def complete_conferences(self) -> None:
        """Finish the conferences that are due; of the others, their delay decides."""
        for event in list(self.events.values()):
            if event.meet_at and event.meet_at <= self.clock.now():
                event.meet_at = None
                complete_conference(event.fields, fails=self.conference_fails)
                self._touch(event)

    def instance_id(self, event_id: str, start: date | datetime) -> str:
        """Return the id of the occurrence of a series that originally starts then."""
        return f"{event_id}_{moment_of(start, self.time_zone).id}"

    @locked
    def titles(self) -> list[str]:
        """Return the titles of all events that are not cancelled, series once, sorted."""
        return sorted(
            event.fields.get("summary", "")
            for event in self.events.values()
            if not event.is_cancelled
        )

    @locked
    def event(self, event_id: str) -> Fields:
        """Return the resource as the owner gets it."""
        return self.shown(self.find(event_id))

    # --- Reading ----------------------------------------------------------------------------------
    def find(self, event_id: str) -> StoredEvent | Instance:
        """Return an event, also a cancelled one, or an occurrence. Raises ApiError notFound."""
        if stored := self.events.get(event_id):
            return stored
        master = self.events.get(event_id.rpartition("_")[0])
        if master and master.has_recurrence and not master.is_cancelled:
            for instance in self.instances(master):
                if instance.id == event_id:
                    return instance
                if instance.start.id > event_id.rpartition("_")[2]:
                    break
        raise ApiError("notFound")

    def instances(self, master: StoredEvent, until: datetime | None = None) -> Iterator[Instance]:
        """Yield the occurrences without an exception, until then or the end of the expansion."""
        end = self.clock.now() + timedelta(days=EXPANDED_DAYS)
        end = min(end, until or end)
        for start in series_starts(master.fields["recurrence"], master.fields["start"]):
            if start.instant(self.time_zone) > end:
                return
            instance = Instance(master, start)
            if instance.id not in self.events:
                yield instance

    def exceptions(self, master: StoredEvent) -> list[StoredEvent]:
        return [event for event in self.events.values() if event.master_id == master.id]

    def span(self, fields: Fields) -> tuple[datetime, datetime]:
        """Return start and end of an event in UTC."""
        return fields["start"].instant(self.time_zone), fields["end"].instant(self.time_zone)

    def etag(self, found: StoredEvent | Instance) -> str:
        changed = found.changed if isinstance(found, StoredEvent) else found.master.changed
        digest = hashlib.sha256(f"{self.id} {found.fields['id']} {changed}".encode())
        return f'"{int.from_bytes(digest.digest()[:6]) + 10**15}"'

    def shown(self, found: StoredEvent | Instance | VanishedInstance, zone: str = "") -> Fields:
        """Return the resource for somebody who sees everything, times in this zone."""
        fields = copy.deepcopy(found.fields)
        for name in MOMENTS:
            if name in fields:
                fields[name] = fields[name].as_json(zone or self.time_zone)
        fields = {name: value for name, value in fields.items() if value != UNSAID.get(name)}
        fields["kind"] = "calendar#event"
        if not isinstance(found, VanishedInstance):
            fields["etag"] = self.etag(found)
        if "attendees" in fields:
            organizer = fields["organizer"]["email"]
            for attendee in fields["attendees"]:
                attendee |= {"organizer": True} if attendee["email"] == organizer else {}
                attendee |= {"self": True} if attendee["email"] == self.id else {}
        if fields["status"] == "cancelled" and fields.get("recurringEventId"):
            fields = {name: value for name, value in fields.items() if name in CANCELLED_INSTANCE}
        return fields

    def is_busy(self, fields: Fields) -> bool:
        """Whether free/busy queries count the event."""
        own = [one for one in fields.get("attendees", ()) if one["email"] == self.id]
        return (
            fields["status"] != "cancelled"
            and fields.get("transparency", "opaque") == "opaque"
            and fields["eventType"] not in NO_BUSY_TYPES
            and not any(one["responseStatus"] == "declined" for one in own)
        )

    # --- Writing ----------------------------------------------------------------------------------
    def insert(
        self,
        body: Fields,
        *,
        creator: str,
        conference_version: int = 0,
        mails_to: str = "none",
        is_import: bool = False,
    ) -> StoredEvent:
        """Add an event. `mails_to`: the value of sendUpdates. Raises ApiError."""
        event_id = body.get("id") or secrets.token_hex(13)
        if not EVENT_ID.fullmatch(event_id):
            raise ApiError("invalid", "Invalid resource id value.")
        if event_id in self.events:
            raise ApiError("duplicate")
        if body.get("eventType") == "fromGmail":
            raise ApiError("invalid", "Events of type fromGmail cannot be created.")
        now = self._timestamp()
        organizer = {"email": self.id, "self": True}
        if not self.is_primary:
            organizer["displayName"] = self.summary
        event = StoredEvent(
            {
                "id": event_id,
                "iCalUID": f"{event_id}@google.com",
                "status": "confirmed",
                "htmlLink": f"https://www.google.com/calendar/event?eid={event_id}",
                "created": now,
                "creator": {"email": creator} | ({"self": True} if creator == self.id else {}),
                "organizer": (is_import and body.get("organizer")) or organizer,
                "sequence": 0,
                "reminders": {"useDefault": True},
                "eventType": "default",
                **writable(body),
            }
        )
        self._read_times(event.fields, body)
        read_attendees(event.fields)
        self._read_conference(event, body, {}, conference_version)
        self.events[event_id] = event
        self._touch(event)
        self._invite("insert", event.fields, guest_addresses(event.fields), mails_to)
        return event

    def update(
        self,
        found: StoredEvent | Instance,
        body: Fields,
        *,
        conference_version: int = 0,
        mails_to: str = "none",
    ) -> StoredEvent:
        """Replace what the body may set; what it does not name is cleared. Raises ApiError."""
        return self._write(found, body, conference_version, mails_to)

    def patch(
        self,
        found: StoredEvent | Instance,
        body: Fields,
        *,
        conference_version: int = 0,
        mails_to: str = "none",
    ) -> StoredEvent:
        """Change what the body names: objects field by field, lists whole; null clears."""
        shown = {
            name: found.fields[name].as_json(found.fields[name].zone)
            for name in ("start", "end")
            if name in found.fields
        }
        merged = merge_fields(found.fields | shown, body)
        for name in ("start", "end"):  # a date takes the place of a time, and the other way round
            if body.get(name) and ("date" in body[name]) != ("date" in shown[name]):
                merged[name] = {key: body[name][key] for key in body[name]}
        return self._write(found, merged, conference_version, mails_to)

    def delete(self, found: StoredEvent | Instance, *, mails_to: str = "none") -> None:
        """Cancel an event, or one occurrence. Raises ApiError deleted."""
        if found.fields["status"] == "cancelled":
            raise ApiError("deleted")
        before = self._instance_fields(found)
        event = self.stored(found)
        event.fields["status"] = "cancelled"
        event.meet_at = None
        for exception in self.exceptions(event):
            exception.fields["status"] = "cancelled"
            self._touch(exception, is_told=False)
        self._touch(event)
        self._remember_vanished(before, {})
        self._invite("delete", event.fields, guest_addresses(event.fields), mails_to)

    def stored(self, found: StoredEvent | Instance) -> StoredEvent:
        """Return the stored event; an occurrence becomes an exception first."""
        if isinstance(found, StoredEvent):
            return found
        self.events[found.id] = StoredEvent(copy.deepcopy(found.fields))
        return self.events[found.id]

    def _write(
        self, found: StoredEvent | Instance, body: Fields, conference_version: int, mails_to: str
    ) -> StoredEvent:
        if isinstance(found, StoredEvent) and found.is_purged:
            raise ApiError("forbidden")
        for name in ("id", "iCalUID", "eventType"):
            if body.get(name, found.fields[name]) != found.fields[name]:
                raise ApiError("invalid", f"Invalid value for: {name} cannot be changed.")
        if body.get("sequence", found.fields["sequence"]) < found.fields["sequence"]:
            raise ApiError("invalid", "Invalid sequence value.")
        if body.get("status") == "cancelled" and found.fields["status"] != "cancelled":
            self.delete(found, mails_to=mails_to)
            return self.stored(found)
        old = copy.deepcopy(found.fields)
        kept = read_only_fields() | {"id", "iCalUID", "eventType", "sequence"}
        fields = {name: value for name, value in old.items() if name in kept}
        fields |= {"status": "confirmed", "reminders": {"useDefault": True}, **writable(body)}
        self._read_times(fields, body)
        read_attendees(fields)
        draft = StoredEvent(fields, meet_at=getattr(found, "meet_at", None))
        self._read_conference(draft, body, old, conference_version)
        if draft.fields == old:
            return self.stored(found)
        if any(fields.get(name) != old.get(name) for name in RESCHEDULES):
            fields["sequence"] = max(fields["sequence"], old["sequence"] + 1)
        before = self._instance_fields(found)
        event = self.stored(found)
        event.fields, event.meet_at = draft.fields, draft.meet_at
        self._drop_exceptions(event)
        self._touch(event)
        self._remember_vanished(before, self._instance_fields(event))
        guests, old_guests = guest_addresses(event.fields), guest_addresses(old)
        self._invite("update", event.fields, guests, mails_to)
        self._invite("delete", event.fields, old_guests - guests, mails_to)
        return event

    def _drop_exceptions(self, master: StoredEvent) -> None:
        """Cancel the exceptions of times that the series no longer has."""
        exceptions = self.exceptions(master)
        if not exceptions or not master.has_recurrence:
            return
        last = max(event.fields["originalStartTime"].id for event in exceptions)
        starts = set()
        for start in series_starts(master.fields["recurrence"], master.fields["start"]):
            if start.id > last:
                break
            starts.add(start.id)
        for event in exceptions:
            if event.fields["originalStartTime"].id not in starts and not event.is_cancelled:
                event.fields["status"] = "cancelled"
                self._touch(event, is_told=False)

    def _read_times(self, fields: Fields, body: Fields) -> None:
        for name in ("start", "end"):
            if not body.get(name):
                raise ApiError("required", f"Missing {name} time.")
            fields[name] = read_moment(body[name], self.time_zone, name)
        start, end = fields["start"], fields["end"]
        if start.is_date != end.is_date:
            raise ApiError("invalid", "Start and end times must either both be date or dateTime.")
        if start.at > end.at or (start.is_date and start.at == end.at):
            raise ApiError("timeRangeEmpty")
        if recurrence := fields.get("recurrence"):
            if not start.is_date and not body["start"].get("timeZone"):
                raise ApiError("required", "Missing time zone definition for start time.")
            check_recurrence(recurrence, start)

    def _read_conference(self, event: StoredEvent, body: Fields, old: Fields, version: int) -> None:
        """Set the conference of the new fields, by the body and the fields before it."""
        for name in CONFERENCE:
            event.fields.pop(name, None)
        kept = {name: old[name] for name in CONFERENCE if name in old}
        if version < 1:
            event.fields |= kept
            return
        asked = body.get("conferenceData") or {}
        known = old.get("conferenceData", {})
        request = asked.get("createRequest")
        if request and not asked.get("entryPoints"):
            if request.get("requestId") == known.get("createRequest", {}).get("requestId"):
                event.fields |= kept
                return
            kind = request.get("conferenceSolutionKey", {}).get("type", MEET)
            if not request.get("requestId") or kind not in self.allowed_conferences:
                raise ApiError("invalid", "Invalid conference type value.")
            event.fields["conferenceData"] = {
                "createRequest": {
                    "requestId": request["requestId"],
                    "conferenceSolutionKey": {"type": kind},
                    "status": {"statusCode": "pending"},
                }
            }
            event.meet_at = self.clock.now() + timedelta(seconds=self.conference_delay)
            if not self.conference_delay:
                event.meet_at = None
                complete_conference(event.fields, fails=self.conference_fails)
        elif asked:
            if not (asked.get("conferenceSolution") and asked.get("entryPoints")):
                raise ApiError("invalid", "Invalid conference data.")
            event.fields |= kept if asked == known else {"conferenceData": asked}
        else:
            event.meet_at = None

    def _instance_fields(self, found: StoredEvent | Instance) -> dict[str, Fields]:
        """Return the occurrences of a series by their ids, before or after a change."""
        if isinstance(found, StoredEvent) and found.has_recurrence and not found.is_cancelled:
            return {instance.id: instance.fields for instance in self.instances(found)}
        return {}

    def _remember_vanished(self, before: Mapping[str, Fields], after: Mapping[str, Any]) -> None:
        for instance_id in before.keys() - after.keys() - self.events.keys():
            fields = before[instance_id] | {"status": "cancelled"}
            self.vanished[instance_id] = VanishedInstance(fields, self.changes)
        for instance_id in after.keys() & self.vanished.keys():
            del self.vanished[instance_id]

    def _touch(self, event: StoredEvent, *, is_told: bool = True) -> None:
        self.changes += 1
        event.changed = self.changes
        event.fields["updated"] = self._timestamp()
        if is_told:
            self.on_change(self)

    def _timestamp(self) -> str:
        return self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _invite(self, operation: str, fields: Fields, guests: set[str], mails_to: str) -> None:
        if guests and mails_to in ("all", "externalOnly"):
            recipients = tuple(sorted(guests))
            self.invitations.append(
                Invitation(operation, fields["id"], fields["iCalUID"], recipients)
            )
