"""Mailboxes of the fake of Microsoft Graph: their calendars, events and series."""

import base64
import functools
import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from html.parser import HTMLParser
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from tests.external_calendars.fakes.microsoft.recurrence import recurrence_dates

Properties = dict[str, Any]

CONSUMERS = "9188040d-6c67-4c5b-b112-36a304b66dad"  # the tenant of all personal accounts
NO_TIME = "0001-01-01T00:00:00Z"
# In an iCalUId the eight digits after this are the day of an occurrence, zeros for other events.
UID_BEGIN = "040000008200E00074C5B7101A82E008"


class GraphError(Exception):
    """An error that the real API answers too."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.headers = status, code, message, headers


@dataclass
class Folder:
    """A calendar of a mailbox."""

    id: str
    name: str
    can_edit: bool = True
    is_default: bool = False
    owner: tuple[str, str] = ("", "")  # name and address


@dataclass(eq=False)
class Item:
    """A single event, the master of a series, or an exception of one.

    properties: as the API writes them; of an exception only those that differ. change: number of
    the mailbox's last change of it. exceptions, cancelled: by the local day of the pattern.
    """

    id: str
    folder_id: str
    properties: Properties
    uid: str
    created: datetime
    modified: datetime
    change: int = 0
    is_deleted: bool = False
    written: Properties = field(default_factory=dict)  # the body of the POST
    exceptions: dict[date, "Item"] = field(default_factory=dict)
    cancelled: set[date] = field(default_factory=set)
    reads: int = 0
    join_url: str = ""

    @property
    def is_series(self) -> bool:
        return self.properties.get("recurrence") is not None

    @property
    def change_key(self) -> str:
        return base64.b64encode(f"{self.uid[-8:]}{self.change:08x}".encode()).decode()


class Instance(NamedTuple):
    """What a calendar view shows: an event, an occurrence or an exception; times in UTC.

    day: of an occurrence or exception, the local day of the pattern.
    """

    start: datetime
    end: datetime
    item: Item
    day: date | None = None

    @property
    def exception(self) -> Item | None:
        return self.item.exceptions.get(self.day) if self.day else None

    @property
    def id(self) -> str:
        return occurrence_id(self.item.id, self.day) if self.day else self.item.id

    @property
    def type(self) -> str:
        if self.day is None:
            return "seriesMaster" if self.item.is_series else "singleInstance"
        return "exception" if self.exception else "occurrence"

    @property
    def properties(self) -> Properties:
        if self.day is None:
            return self.item.properties
        zone = self.item.properties["start"]["timeZone"]
        own = self.exception.properties if self.exception else {}
        times = {
            name: {"dateTime": wire_time(at.astimezone(zone_of(zone))), "timeZone": zone}
            for name, at in (("start", self.start), ("end", self.end))
        }
        return self.item.properties | {"recurrence": None} | times | own


@dataclass
class Mailbox:
    """An account. address: its userPrincipalName; mail: None for some personal accounts.

    time_zone: the Windows name of the zone in which answers are without `outlook.timezone`.
    """

    address: str
    name: str
    id: str
    tenant_id: str
    mail: str | None
    time_zone: str = "W. Europe Standard Time"
    folders: dict[str, Folder] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    change: int = 0
    created: int = 0

    @property
    def is_personal(self) -> bool:
        return self.tenant_id == CONSUMERS

    @property
    def meeting_provider(self) -> str:
        return "unknown" if self.is_personal else "teamsForBusiness"

    def add_calendar(self, name: str, *, can_edit: bool = True, owner: str = "") -> Folder:
        """Add a calendar; one of another owner is shared with this mailbox."""
        folder_id = _identifier("AQMkAGI", self.id, len(self.folders)) + "="
        holder = (owner or self.name, owner or self.mail or self.address)
        folder = Folder(folder_id, name, can_edit, not self.folders, holder)
        self.folders[folder_id] = folder
        return folder

    def remove_calendar(self, folder: Folder) -> None:
        del self.folders[folder.id]
        self.items = {key: item for key, item in self.items.items() if item.folder_id != folder.id}

    @property
    def default_calendar(self) -> Folder:
        return next(folder for folder in self.folders.values() if folder.is_default)

    def new_item(self, folder: Folder, properties: Properties, at: datetime) -> Item:
        """Store a new event. Each second one has an id that differs from the last one's in case
        only: ids are case-sensitive."""
        number = self.created
        self.created += 1
        stem = _identifier("AAkALgAAAAAAHYQDEapmEc2byACqAC-EWg0A", self.id, number // 2)
        tail = stem[-8:].swapcase() if number % 2 else stem[-8:]
        uid = hashlib.sha256(f"{self.id} {number}".encode()).hexdigest()[:40].upper()
        item = Item(f"{stem[:-8]}{tail}AAA=", folder.id, properties, uid, at, at)
        self.items[item.id] = item
        self.touch(item, at)
        return item

    def touch(self, item: Item, at: datetime) -> None:
        self.change += 1
        item.change = self.change
        item.modified = at

    def find(self, event_id: str) -> Instance:
        """Return what an event's id names; raise GraphError for none."""
        master_id, day = parse_id(event_id)
        item = self.items.get(master_id)
        if item is None or item.is_deleted or item.folder_id not in self.folders:
            raise not_found()
        if day is None:
            return Instance(*times_of(item.properties), item)
        for instance in series_instances(item, day):
            if instance.day == day:
                return instance
        raise not_found()

    def instances(self, folder_id: str, begin: datetime, end: datetime) -> list[Instance]:
        """Return what overlaps the window, expanded, in the order of the starts."""
        found = [
            instance
            for item in self.items.values()
            if item.folder_id == folder_id and not item.is_deleted
            for instance in instances_between(item, begin, end)
        ]
        return sorted(found, key=lambda instance: (instance.start, instance.id))


def not_found() -> GraphError:
    message = "The specified object was not found in the store., The process failed to get the "
    return GraphError(404, "ErrorItemNotFound", f"{message}correct properties.")


def _identifier(begin: str, mailbox_id: str, number: int) -> str:
    digest = hashlib.sha256(f"{begin} {mailbox_id} {number}".encode()).digest()
    return begin + base64.urlsafe_b64encode(digest[:24]).decode()


def occurrence_id(master_id: str, day: date) -> str:
    return f"{master_id.removesuffix('AAA=')}{day:%Y%m%d}O="


def parse_id(event_id: str) -> tuple[str, date | None]:
    """Return the id of the item, and the day of an occurrence."""
    if match := re.fullmatch(r"(.+)(\d{8})O=", event_id):
        return f"{match[1]}AAA=", datetime.strptime(match[2], "%Y%m%d").date()
    return event_id, None


# --- Times ----------------------------------------------------------------------------------------
@functools.cache
def zone_of(name: str) -> ZoneInfo:
    """Return the zone of a Windows or IANA name; Graph takes both."""
    place = WINDOWS_TO_OLSON.get(name, name)
    if place not in available_timezones():
        raise GraphError(
            400,
            "TimeZoneNotSupportedException",
            f"A valid TimeZone value must be specified. The following TimeZone value is not "
            f"supported: {name}.",
        )
    return ZoneInfo(place)


def instant_of(value: Properties) -> datetime:
    """Return the instant (aware UTC) of a dateTimeTimeZone."""
    wall = datetime.fromisoformat(value["dateTime"])
    return wall.replace(tzinfo=zone_of(value["timeZone"])).astimezone(UTC)


def wire_time(at: datetime) -> str:
    """Example: "2026-11-27T09:00:00.0000000"."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.0000000"


def times_of(properties: Properties) -> tuple[datetime, datetime]:
    return instant_of(properties["start"]), instant_of(properties["end"])


def instances_between(item: Item, begin: datetime, end: datetime) -> Iterator[Instance]:
    if item.is_series:
        # An exception may have come into the window from a later day.
        last = max([end.date() + timedelta(days=2), *item.exceptions])
        found: Iterator[Instance] = series_instances(item, last)
    else:
        found = iter([Instance(*times_of(item.properties), item)])
    for instance in found:
        if instance.start < end and instance.end > begin:
            yield instance


def series_instances(master: Item, last: date) -> Iterator[Instance]:
    """Yield occurrences and exceptions of the pattern's days up to `last`, at the local time of the
    series whatever its offset is that day."""
    start, end = master.properties["start"], master.properties["end"]
    begin_wall = datetime.fromisoformat(start["dateTime"])
    length = datetime.fromisoformat(end["dateTime"]) - begin_wall
    for day in recurrence_dates(master.properties["recurrence"], last):
        if day in master.cancelled:
            continue
        wall = datetime.combine(day, begin_wall.time())
        own = master.exceptions[day].properties if day in master.exceptions else {}
        times = {
            "start": {"dateTime": wall.isoformat(), "timeZone": start["timeZone"]},
            "end": {"dateTime": (wall + length).isoformat(), "timeZone": start["timeZone"]},
        }
        yield Instance(*times_of(times | own), master, day)


# --- Answers --------------------------------------------------------------------------------------
def event_answer(
    mailbox: Mailbox, instance: Instance, *, zone: str, body_type: str, extended: tuple[str, ...]
) -> Properties:
    """Return all properties of an event.

    zone: of start and end. extended: ids of the extended properties that the request expands.
    """
    item, stored = instance.exception or instance.item, instance.properties
    organizer = {"emailAddress": {"name": mailbox.name, "address": mailbox.mail or mailbox.address}}
    day = f"{instance.day:%Y%m%d}" if instance.day else "0" * 8
    answer: Properties = {
        "@odata.etag": f'W/"{item.change_key}"',
        "id": instance.id,
        "createdDateTime": utc_time(item.created),
        "lastModifiedDateTime": utc_time(item.modified),
        "changeKey": item.change_key,
        "categories": [],
        "transactionId": None,
        "originalStartTimeZone": stored["start"]["timeZone"],
        "originalEndTimeZone": stored["end"]["timeZone"],
        "iCalUId": f"{UID_BEGIN}{day}{instance.item.uid}",
        "reminderMinutesBeforeStart": 15,
        "isReminderOn": True,
        "hasAttachments": False,
        "subject": "",
        "importance": "normal",
        "sensitivity": "normal",
        "isAllDay": False,
        "isCancelled": False,
        "isOrganizer": True,
        "responseRequested": True,
        "seriesMasterId": instance.item.id if instance.day else None,
        "showAs": "busy",
        "type": instance.type,
        "webLink": f"https://outlook.office365.com/owa/?itemid={instance.id}&exvsurl=1",
        "onlineMeetingUrl": None,
        "isOnlineMeeting": False,
        "onlineMeetingProvider": "unknown",
        "allowNewTimeProposals": True,
        "isDraft": False,
        "hideAttendees": False,
        "recurrence": None,
        "onlineMeeting": None,
        "responseStatus": {"response": "organizer", "time": NO_TIME},
        "location": {"displayName": "", "locationType": "default"},
        "locations": [],
        "attendees": [],
        "organizer": organizer,
    }
    answer |= {name: value for name, value in stored.items() if value is not None}
    answer.pop("singleValueExtendedProperties", None)
    body = stored.get("body") or {"contentType": "html", "content": ""}
    answer["body"] = body_answer(body, body_type)
    answer["bodyPreview"] = plain_text(body)[:255]
    answer |= {name: time_answer(stored, name, zone) for name in ("start", "end")}
    if instance.day:
        answer["originalStart"] = utc_time(original_start(instance))
    if stored.get("recurrence"):
        answer["recurrence"] = recurrence_answer(stored)
    values = {
        value["id"]: value["value"] for value in stored.get("singleValueExtendedProperties") or []
    }
    if shown := [{"id": name, "value": values[name]} for name in extended if name in values]:
        answer["singleValueExtendedProperties"] = shown
    return answer


def occurrence_answer(instance: Instance, *, zone: str) -> Properties:
    """Return an occurrence as delta shows it, with the properties that are its own.

    https://github.com/microsoftgraph/microsoft-graph-docs-contrib/issues/34
    """
    item, stored = instance.exception or instance.item, instance.properties
    return {
        "@odata.type": "#microsoft.graph.event",
        "@odata.etag": f'W/"{item.change_key}"',
        "id": instance.id,
        "seriesMasterId": instance.item.id,
        "type": instance.type,
        "start": time_answer(stored, "start", zone),
        "end": time_answer(stored, "end", zone),
    }


def time_answer(stored: Properties, name: str, zone: str) -> Properties:
    """Return start or end in this zone. Those of all-day events keep their dates: they must be
    midnight in the answer too."""
    value = stored[name]
    if stored.get("isAllDay"):
        day = datetime.fromisoformat(value["dateTime"]).date()
        return {"dateTime": wire_time(datetime.combine(day, time())), "timeZone": zone}
    at = instant_of(value).astimezone(zone_of(zone))
    return {"dateTime": wire_time(at), "timeZone": zone}


def original_start(instance: Instance) -> datetime:
    start = instance.item.properties["start"]
    clock = datetime.fromisoformat(start["dateTime"]).time()
    wall = datetime.combine(instance.day or date.min, clock)
    return instant_of({"dateTime": wall.isoformat(), "timeZone": start["timeZone"]})


def recurrence_answer(stored: Properties) -> Properties:
    """Return the recurrence with all properties, as Graph does: zeros for those of other types."""
    recurrence = stored["recurrence"]
    defaults = {"month": 0, "dayOfMonth": 0, "firstDayOfWeek": "sunday", "index": "first"}
    zone = stored["start"]["timeZone"]
    limits = {"recurrenceTimeZone": zone, "numberOfOccurrences": 0, "endDate": "0001-01-01"}
    return {
        "pattern": defaults | recurrence["pattern"],
        "range": limits | recurrence["range"],
    }


def utc_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


def body_answer(body: Properties, body_type: str) -> Properties:
    """Return the body in the type that the request prefers, HTML as a whole document."""
    content = body.get("content") or ""
    if body_type == "text":
        return {"contentType": "text", "content": plain_text(body)}
    if body.get("contentType") == "text":
        content = html.escape(content).replace("\n", "<br>\n")
    if content and "<html" not in content:
        content = f"<html><head></head><body>{content}</body></html>"
    return {"contentType": "html", "content": content}


def plain_text(body: Properties) -> str:
    content = body.get("content") or ""
    if body.get("contentType") == "text":
        return content
    reader = _TextOfHtml()
    reader.feed(content)
    return "".join(reader.parts).strip()


class _TextOfHtml(HTMLParser):
    """A link's address stands after its words, in angle brackets."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.link = ""

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("br", "p", "div"):
            self.parts.append("\n")
        if tag == "a":
            self.link = dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self.link:
            self.parts.append(f"<{self.link}>")


def calendar_answer(mailbox: Mailbox, folder: Folder) -> Properties:
    name, address = folder.owner
    return {
        "id": folder.id,
        "name": folder.name,
        "color": "auto",
        "hexColor": "",
        "isDefaultCalendar": folder.is_default,
        "changeKey": base64.b64encode(folder.id[-8:].encode()).decode(),
        "canShare": folder.can_edit,
        "canViewPrivateItems": folder.can_edit,
        "canEdit": folder.can_edit,
        "allowedOnlineMeetingProviders": [] if mailbox.is_personal else ["teamsForBusiness"],
        "defaultOnlineMeetingProvider": mailbox.meeting_provider,
        "isTallyingResponses": folder.is_default,
        "isRemovable": not folder.is_default,
        "owner": {"name": name, "address": address},
    }
