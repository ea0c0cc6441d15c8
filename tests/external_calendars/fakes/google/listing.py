"""Lists of events: parameters, pages, sync tokens."""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.external_calendars.fakes.google.calendars import DELETED, StoredCalendar
from tests.external_calendars.fakes.google.errors import ApiError
from tests.external_calendars.fakes.google.events import (
    Fields,
    Instance,
    StoredEvent,
    VanishedInstance,
)
from tests.external_calendars.fakes.server import Violation

# Not together with syncToken, by the description of that parameter.
NOT_WITH_SYNC_TOKEN = (
    "iCalUID",
    "orderBy",
    "privateExtendedProperty",
    "q",
    "sharedExtendedProperty",
    "timeMin",
    "timeMax",
    "updatedMin",
)
MOST_EVENTS = 2500
SEARCHED = ("summary", "description", "location")

Found = StoredEvent | Instance | VanishedInstance
Query = Mapping[str, Any]


@dataclass
class SyncPoint:
    """What a sync token stands for: the calendar's changes until then, and the list's query."""

    calendar_id: str
    changes: int
    query: str


@dataclass
class NextPage:
    """What a page token stands for: the rest of a list, and its sync point."""

    rest: list[Found]
    point: SyncPoint
    sync_token: str


@dataclass
class Listings:
    """All tokens of lists. most_events: the largest page, also where maxResults asks for more."""

    most_events: int = MOST_EVENTS
    points: dict[str, SyncPoint] = field(default_factory=dict)
    pages: dict[str, NextPage] = field(default_factory=dict)

    def page(self, calendar: StoredCalendar, query: Query) -> tuple[list[Found], dict[str, str]]:
        """Return the events of a page, and its nextPageToken or nextSyncToken."""
        if token := query.get("pageToken"):
            page = self.pages.get(token)
            if page is None or page.point.calendar_id != calendar.id:
                raise ApiError("invalid", "Invalid page token value.", location="pageToken")
            if page.point.query != _fixed(query) or page.sync_token != query.get("syncToken", ""):
                raise Violation("the parameters differ from those of the first page.")
        else:
            page = self._first_page(calendar, query)
        size = min(query.get("maxResults", 250), self.most_events)
        items, rest = page.rest[:size], page.rest[size:]
        if rest:
            token = secrets.token_urlsafe(12)
            self.pages[token] = NextPage(rest, page.point, page.sync_token)
            return items, {"nextPageToken": token}
        token = secrets.token_urlsafe(12) + "="
        self.points[token] = page.point
        return items, {"nextSyncToken": token}

    def _first_page(self, calendar: StoredCalendar, query: Query) -> NextPage:
        token = query.get("syncToken", "")
        point = SyncPoint(calendar.id, calendar.changes, _fixed(query))
        if not token:
            return NextPage(self.found(calendar, query), point, "")
        for name in NOT_WITH_SYNC_TOKEN:
            if name in query:
                raise Violation(f"{name} cannot be used with syncToken.")
        if query.get("showDeleted") is False:
            raise Violation("showDeleted=false cannot be used with syncToken.")
        known = self.points.get(token)
        if known is None or known.calendar_id != calendar.id:
            raise ApiError("fullSyncRequired")
        if known.query != point.query:
            raise Violation(
                "the parameters differ from those of the first synchronization:"
                f" {known.query} and {point.query}."
            )
        return NextPage(list(_changed(calendar, query, known.changes)), point, token)

    def found(self, calendar: StoredCalendar, query: Query) -> list[Found]:
        """Return all that a list without a sync token finds."""
        window = tuple(_instant(query, name) for name in ("timeMin", "timeMax"))
        if all(window) and window[0] >= window[1]:  # type: ignore[operator]
            raise ApiError("timeRangeEmpty")
        updated_min = _instant(query, "updatedMin")
        if query.get("orderBy") == "startTime" and not query.get("singleEvents"):
            raise ApiError("badRequest", "The requested ordering is not available for this query.")
        found: list[Found] = []
        for event in sorted(calendar.events.values(), key=lambda event: event.changed):
            candidates: list[Found] = [event]
            if query.get("singleEvents") and event.has_recurrence:
                candidates = (
                    list(calendar.instances(event, window[1])) if not event.is_cancelled else []
                )
            found += [
                one
                for one in candidates
                if _is_listed(calendar, one, query, updated_min)
                and _is_within(calendar, one, window)
                and _matches(one.fields, query)
            ]
        if query.get("orderBy") == "startTime":
            found.sort(key=lambda one: calendar.span(one.fields)[0])
        if query.get("orderBy") == "updated":
            found.sort(key=lambda one: one.fields["updated"])
        return found

    def instances(self, calendar: StoredCalendar, master_id: str, query: Query) -> list[Found]:
        """Return the occurrences of a series, with its exceptions, by their original starts."""
        master = calendar.find(master_id)
        if not isinstance(master, StoredEvent) or not master.has_recurrence:
            return []
        window = tuple(_instant(query, name) for name in ("timeMin", "timeMax"))
        occurrences: list[Instance | StoredEvent] = [
            *calendar.instances(master),
            *calendar.exceptions(master),
        ]
        wanted = query.get("originalStart")
        return sorted(
            (
                one
                for one in occurrences
                if (one.fields["status"] != "cancelled" or query.get("showDeleted"))
                and _overlaps(calendar.span(one.fields), window)
                and wanted in (None, one.fields["originalStartTime"].as_json("UTC").get("dateTime"))
            ),
            key=lambda one: one.fields["originalStartTime"].id,
        )


def _fixed(query: Query) -> str:
    """Return the parameters that stay the same from list to list of a synchronization."""
    changing = {"pageToken", "syncToken", *NOT_WITH_SYNC_TOKEN}
    return json.dumps({name: query[name] for name in sorted(query.keys() - changing)})


def _changed(calendar: StoredCalendar, query: Query, since: int) -> Iterator[Found]:
    for event in sorted(calendar.events.values(), key=lambda event: event.changed):
        if event.changed <= since or not _matches(event.fields, query):
            continue
        if query.get("singleEvents") and event.has_recurrence:
            yield from calendar.instances(event) if not event.is_cancelled else ()
        else:
            yield event
    if query.get("singleEvents"):
        for vanished in calendar.vanished.values():
            if vanished.changed > since and _matches(vanished.fields, query):
                yield vanished


def _is_listed(
    calendar: StoredCalendar, one: Found, query: Query, updated_min: datetime | None
) -> bool:
    fields = one.fields
    if isinstance(one, StoredEvent) and one.is_purged:
        return False
    if updated_min and datetime.fromisoformat(fields["updated"]) < updated_min:
        return False
    if fields["status"] != "cancelled" or query.get("showDeleted") or updated_min:
        return True
    # Cancelled occurrences of a series that is there, where series are listed as such.
    master = calendar.events.get(fields.get("recurringEventId", ""))
    return bool(master and not master.is_cancelled and not query.get("singleEvents"))


def _is_within(calendar: StoredCalendar, one: Found, window: tuple[datetime | None, ...]) -> bool:
    """Whether the event, or an occurrence of the series, overlaps the window."""
    candidates: Iterable[Fields] = [one.fields]
    if isinstance(one, StoredEvent) and one.has_recurrence and any(window):
        candidates = (instance.fields for instance in calendar.instances(one, window[1]))
    return any(_overlaps(calendar.span(fields), window) for fields in candidates)


def _overlaps(span: tuple[datetime, datetime], window: tuple[datetime | None, ...]) -> bool:
    start, end = window
    return (start is None or span[1] > start) and (end is None or span[0] < end)


def _matches(fields: Fields, query: Query) -> bool:
    if "eventTypes" in query and fields["eventType"] not in query["eventTypes"]:
        return False
    if "iCalUID" in query and fields["iCalUID"] != query["iCalUID"]:
        return False
    for kind in ("private", "shared"):
        properties = fields.get("extendedProperties", {}).get(kind, {})
        for constraint in query.get(f"{kind}ExtendedProperty", ()):
            name, _, value = constraint.partition("=")
            if properties.get(name) != value:
                return False
    words = query.get("q", "").lower()
    text = " ".join(fields.get(name, "") for name in SEARCHED).lower()
    return words in text


def _instant(query: Query, name: str) -> datetime | None:
    if name not in query:
        return None
    at = datetime.fromisoformat(query[name])
    if at.tzinfo is None:
        raise ApiError("badRequest")
    return at.astimezone(UTC)


def shown_in_list(calendar: StoredCalendar, one: Found, query: Query) -> Fields:
    """Return the resource; of a deleted event no details, unless showDeleted asks for them."""
    fields = calendar.shown(one, query.get("timeZone", ""))
    is_occurrence = "recurringEventId" in fields
    if fields["status"] == "cancelled" and not is_occurrence and not query.get("showDeleted"):
        return {name: value for name, value in fields.items() if name in DELETED}
    return fields


def page_of(items: list[Fields], query: Query, most: int, usual: int) -> tuple[list[Fields], str]:
    """Return a page of a list that does not change much, and the token of the next; "": none."""
    token = query.get("pageToken", "0")
    if not token.isdigit():
        raise ApiError("invalid", "Invalid page token value.", location="pageToken")
    begin = int(token)
    end = begin + min(query.get("maxResults", usual), most)
    return items[begin:end], str(end) if end < len(items) else ""
