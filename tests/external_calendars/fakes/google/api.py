"""The methods of the Calendar API v3, by the names of the discovery document."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.external_calendars.fakes.google import discovery, oauth
from tests.external_calendars.fakes.google.calendars import TIMES_ONLY, StoredCalendar
from tests.external_calendars.fakes.google.channels import Channels
from tests.external_calendars.fakes.google.discovery import Method
from tests.external_calendars.fakes.google.errors import ApiError, error_response
from tests.external_calendars.fakes.google.events import (
    Fields,
    Instance,
    StoredEvent,
    VanishedInstance,
)
from tests.external_calendars.fakes.google.listing import Listings, page_of, shown_in_list
from tests.external_calendars.fakes.server import Clock, Request, Response, Violation

SCOPE = "https://www.googleapis.com/auth/calendar"
# From little to much.
ROLES = ("freeBusyReader", "reader", "writerWithoutPrivateAccess", "writer", "owner")
# Scopes that a method names, and that allow it on the calendars of the account itself only, ...
OWNED_ONLY = {f"{SCOPE}.events.owned", f"{SCOPE}.events.owned.readonly"}
# ... show times only, ...
TIMES_ONLY_SCOPES = {f"{SCOPE}.events.freebusy"}
# ... or are about calendars that an app has made, and public ones, of which the fake has none.
USELESS_SCOPES = {f"{SCOPE}.app.created", f"{SCOPE}.events.public.readonly"}
MOST_ENTRIES = 250
MOST_FREEBUSY_CALENDARS = 50


@dataclass
class CalendarEntry:
    """A calendar in the list of an account. role: "": removed from the list."""

    calendar: StoredCalendar
    role: str
    changed: int


@dataclass
class Account(oauth.Account):
    """`calendar`: the primary one. entries: by the ids of the calendars."""

    calendar: StoredCalendar
    entries: dict[str, CalendarEntry] = field(default_factory=dict)


class Call(NamedTuple):
    """A request whose form, access token and scopes are right."""

    method: Method
    request: Request
    query: dict[str, Any]
    body: Fields
    account: Account
    grant: oauth.Grant
    scopes: frozenset[str]  # of the method, as far as the grant has them


@dataclass
class CalendarApi:
    clock: Clock
    oauth: oauth.OAuth
    channels: Channels
    accounts: dict[str, Account] = field(default_factory=dict)
    calendars: dict[str, StoredCalendar] = field(default_factory=dict)
    listings: Listings = field(default_factory=Listings)
    list_changes: int = 0  # of the lists of calendars
    list_tokens: dict[str, int] = field(default_factory=dict)

    def respond(self, request: Request) -> Response:
        try:
            return self._respond(request)
        except ApiError as error:
            return error_response(error.reason, error.message, error.location)

    def _respond(self, request: Request) -> Response:
        method = discovery.find_method(request)
        query = discovery.read_query(method, request)
        body = discovery.read_body(method, request)
        if not request.bearer:
            raise Violation("there is no Authorization with a Bearer token.")
        grant = self.oauth.find_grant(request.bearer)
        if grant is None:
            raise ApiError("authError")
        scopes = (method.scopes & grant.scopes) - USELESS_SCOPES
        if not scopes:
            raise ApiError("insufficientPermissions")
        for calendar in self.calendars.values():
            calendar.complete_conferences()
        call = Call(method, request, query, body, self.accounts[grant.account.email], grant, scopes)
        return self._methods()[method.id](call)

    def _methods(self) -> dict[str, Callable[[Call], Response]]:
        return {
            "calendar.calendarList.get": self.get_entry,
            "calendar.calendarList.list": self.list_entries,
            "calendar.calendars.get": self.get_calendar,
            "calendar.channels.stop": self.stop_channel,
            "calendar.events.delete": self.delete_event,
            "calendar.events.get": self.get_event,
            "calendar.events.import": self.import_event,
            "calendar.events.insert": self.insert_event,
            "calendar.events.instances": self.list_instances,
            "calendar.events.list": self.list_events,
            "calendar.events.patch": self.patch_event,
            "calendar.events.update": self.update_event,
            "calendar.events.watch": self.watch_events,
            "calendar.freebusy.query": self.query_freebusy,
        }

    # --- Calendars --------------------------------------------------------------------------------
    def list_entries(self, call: Call) -> Response:
        query = call.query
        least = ROLES.index(query.get("minAccessRole", ROLES[0]))
        since = -1
        if token := query.get("syncToken"):
            for name in ("minAccessRole", "showOwnOrganizationOnly"):
                if name in query:
                    raise Violation(f"{name} cannot be used with syncToken.")
            if token not in self.list_tokens:
                raise ApiError("fullSyncRequired")
            since = self.list_tokens[token]
        entries = [
            self._shown_entry(call.account, entry)
            for entry in call.account.entries.values()
            if entry.changed > since
            and (entry.role or since >= 0 or query.get("showDeleted"))
            and ROLES.index(entry.role or ROLES[0]) >= least
        ]
        items, rest = page_of(entries, query, min(MOST_ENTRIES, self.listings.most_events), 100)
        answer = {"kind": "calendar#calendarList", "etag": '"p1"', "items": items}
        if rest:
            return Response(200, answer | {"nextPageToken": rest})
        next_token = secrets.token_urlsafe(12) + "="
        self.list_tokens[next_token] = self.list_changes
        return Response(200, answer | {"nextSyncToken": next_token})

    def get_entry(self, call: Call) -> Response:
        return Response(200, self._shown_entry(call.account, self._entry(call)))

    def get_calendar(self, call: Call) -> Response:
        calendar = self._entry(call).calendar
        answer = {
            "kind": "calendar#calendar",
            "etag": '"c1"',
            "id": calendar.id,
            "summary": calendar.summary,
            "timeZone": calendar.time_zone,
            "conferenceProperties": _conferences(calendar),
        }
        return Response(200, answer | _description(calendar))

    def _shown_entry(self, account: Account, entry: CalendarEntry) -> Fields:
        calendar = entry.calendar
        shown: Fields = {
            "kind": "calendar#calendarListEntry",
            "etag": f'"{entry.changed}"',
            "id": calendar.id,
            "summary": calendar.summary,
            **_description(calendar),
            "timeZone": calendar.time_zone,
            "accessRole": entry.role,
            "selected": True,
            "defaultReminders": [],
            "conferenceProperties": _conferences(calendar),
        }
        if not entry.role:
            return {
                "kind": shown["kind"],
                "etag": shown["etag"],
                "id": calendar.id,
                "deleted": True,
            }
        if calendar is account.calendar:
            shown["primary"] = True
        elif not calendar.is_primary:
            shown["dataOwner"] = calendar.owner
        return shown

    def _entry(self, call: Call, least: str = ROLES[0]) -> CalendarEntry:
        """Return the calendar of the path. Raises ApiError where the role there is too little."""
        calendar_id = call.method.path["calendarId"]
        if calendar_id == "primary":
            calendar_id = call.account.calendar.id
        entry = call.account.entries.get(calendar_id)
        if entry is None or not entry.role:
            raise ApiError("notFound")
        if call.scopes <= OWNED_ONLY and entry.role != "owner":
            raise ApiError("insufficientPermissions")
        if ROLES.index(entry.role) < ROLES.index(least):
            raise ApiError("requiredAccessLevel")
        return entry

    # --- Reading events ---------------------------------------------------------------------------
    def get_event(self, call: Call) -> Response:
        entry = self._entry(call)
        found = entry.calendar.find(call.method.path["eventId"])
        if isinstance(found, StoredEvent) and found.is_purged:
            raise ApiError("notFound")
        etag = entry.calendar.etag(found)
        if call.request.headers.get("if-none-match") == etag:
            return Response(304, None, {"ETag": etag})
        return self._event_response(call, entry, found)

    def list_events(self, call: Call) -> Response:
        entry = self._entry(call)
        items, token = self.listings.page(entry.calendar, call.query)
        shown = [
            self._visible(call, entry, shown_in_list(entry.calendar, item, call.query))
            for item in items
        ]
        return Response(200, self._list_answer(call, entry, shown) | token)

    def list_instances(self, call: Call) -> Response:
        entry = self._entry(call)
        calendar, query = entry.calendar, call.query
        found = self.listings.instances(calendar, call.method.path["eventId"], query)
        shown = [self._visible(call, entry, shown_in_list(calendar, one, query)) for one in found]
        items, rest = page_of(shown, query, self.listings.most_events, 250)
        answer = self._list_answer(call, entry, items)
        return Response(200, answer | ({"nextPageToken": rest} if rest else {}))

    def _list_answer(self, call: Call, entry: CalendarEntry, items: list[Fields]) -> Fields:
        calendar = entry.calendar
        return {
            "kind": "calendar#events",
            "etag": f'"p{calendar.changes}"',
            "summary": calendar.summary,
            **_description(calendar),
            "updated": self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "timeZone": call.query.get("timeZone", calendar.time_zone),
            "accessRole": entry.role,
            "defaultReminders": [],
            "items": items,
        }

    def _visible(self, call: Call, entry: CalendarEntry, fields: Fields) -> Fields:
        """Return what the caller may see of an event."""
        hides_private = entry.role in ("reader", "writerWithoutPrivateAccess")
        is_private = fields.get("visibility") in ("private", "confidential")
        if (
            entry.role == "freeBusyReader"
            or call.scopes <= TIMES_ONLY_SCOPES
            or (hides_private and is_private)
        ):
            kept = {name: value for name, value in fields.items() if name in TIMES_ONLY}
            return kept | {"visibility": "private"}
        return _without_many_attendees(fields, call.query)

    def _event_response(
        self, call: Call, entry: CalendarEntry, found: StoredEvent | Instance | VanishedInstance
    ) -> Response:
        shown = entry.calendar.shown(found, call.query.get("timeZone", ""))
        shown = self._visible(call, entry, shown)
        return Response(200, shown, {"ETag": shown["etag"]})

    # --- Writing events ---------------------------------------------------------------------------
    def insert_event(self, call: Call) -> Response:
        if "id" in call.body and "iCalUID" in call.body:
            raise Violation("an event is created with an id or an iCalUID, not with both.")
        entry = self._entry(call, "writerWithoutPrivateAccess")
        event = entry.calendar.insert(
            call.body, creator=call.account.email, **self._write_options(call)
        )
        return self._event_response(call, entry, event)

    def import_event(self, call: Call) -> Response:
        """It never invites. The same iCalUID again changes the event."""
        entry = self._entry(call, "writerWithoutPrivateAccess")
        version = call.query.get("conferenceDataVersion", 0)
        known = [
            event
            for event in entry.calendar.events.values()
            if event.fields["iCalUID"] == call.body["iCalUID"] and not event.master_id
        ]
        if known:
            body = {"status": "confirmed", **call.body}
            event = entry.calendar.update(known[0], body, conference_version=version)
        else:
            event = entry.calendar.insert(
                call.body,
                creator=call.account.email,
                conference_version=version,
                is_import=True,
            )
        return self._event_response(call, entry, event)

    def update_event(self, call: Call) -> Response:
        entry, found = self._writable_event(call)
        event = entry.calendar.update(found, call.body, **self._write_options(call))
        return self._event_response(call, entry, event)

    def patch_event(self, call: Call) -> Response:
        entry, found = self._writable_event(call)
        event = entry.calendar.patch(found, call.body, **self._write_options(call))
        return self._event_response(call, entry, event)

    def delete_event(self, call: Call) -> Response:
        entry, found = self._writable_event(call)
        entry.calendar.delete(found, mails_to=_mails_to(call))
        return Response(204)

    def _writable_event(self, call: Call) -> tuple[CalendarEntry, StoredEvent | Instance]:
        entry = self._entry(call, "writerWithoutPrivateAccess")
        found = entry.calendar.find(call.method.path["eventId"])
        expected = call.request.headers.get("if-match", "*")
        if expected != "*" and expected != entry.calendar.etag(found):
            raise ApiError("conditionNotMet")
        return entry, found

    def _write_options(self, call: Call) -> dict[str, Any]:
        return {
            "conference_version": call.query.get("conferenceDataVersion", 0),
            "mails_to": _mails_to(call),
        }

    # --- Channels and free/busy -------------------------------------------------------------------
    def watch_events(self, call: Call) -> Response:
        entry = self._entry(call)
        answer = self.channels.watch(
            entry.calendar.id, call.account.email, call.grant.client.id, call.body
        )
        return Response(200, answer)

    def stop_channel(self, call: Call) -> Response:
        self.channels.stop(call.account.email, call.grant.client.id, call.body)
        return Response(204)

    def query_freebusy(self, call: Call) -> Response:
        body = call.body
        for name in ("timeMin", "timeMax"):
            if not body.get(name):
                raise ApiError("required", f"Missing {name}.")
        start, end = (_instant(body[name]) for name in ("timeMin", "timeMax"))
        if start >= end:
            raise ApiError("timeRangeEmpty")
        items = [item["id"] for item in body.get("items", ())]
        if len(items) > min(body.get("calendarExpansionMax", 50), MOST_FREEBUSY_CALENDARS):
            raise ApiError("badRequest", "Too many calendars requested.")
        answer = {
            "kind": "calendar#freeBusy",
            "timeMin": _utc_text(start),
            "timeMax": _utc_text(end),
            "calendars": {item: self._busy(call.account, item, start, end) for item in items},
        }
        return Response(200, answer)

    def _busy(self, account: Account, item: str, start: datetime, end: datetime) -> Fields:
        calendar_id = account.calendar.id if item == "primary" else item
        entry = account.entries.get(calendar_id)
        if entry is None or not entry.role:
            return {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
        query = {"singleEvents": True, "timeMin": start.isoformat(), "timeMax": end.isoformat()}
        calendar = entry.calendar
        spans = sorted(
            calendar.span(found.fields)
            for found in self.listings.found(calendar, query)
            if calendar.is_busy(found.fields)
        )
        merged: list[tuple[datetime, datetime]] = []
        for begin, finish in spans:
            begin, finish = max(begin, start), min(finish, end)
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(finish, merged[-1][1]))
            elif finish - begin > timedelta():
                merged.append((begin, finish))
        return {"busy": [{"start": _utc_text(one), "end": _utc_text(two)} for one, two in merged]}


def _mails_to(call: Call) -> str:
    if "sendUpdates" in call.query:
        return call.query["sendUpdates"]
    return "all" if call.query.get("sendNotifications") else "none"


def _without_many_attendees(fields: Fields, query: dict[str, Any]) -> Fields:
    """Leave the attendees out where there are more than maxAttendees, except for oneself."""
    attendees = fields.get("attendees", [])
    if len(attendees) <= query.get("maxAttendees", len(attendees)):
        return fields
    own = [attendee for attendee in attendees if attendee.get("self")]
    return fields | {"attendees": own, "attendeesOmitted": True}


def _conferences(calendar: StoredCalendar) -> Fields:
    return {"allowedConferenceSolutionTypes": list(calendar.allowed_conferences)}


def _description(calendar: StoredCalendar) -> dict[str, str]:
    return {"description": calendar.description} if calendar.description else {}


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ApiError("badRequest")
    return at.astimezone(UTC)


def _utc_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
