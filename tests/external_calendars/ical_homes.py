"""Calendars on real CalDAV servers, and a feed, as their owners and guests use them."""

import itertools
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
from xandikos.store import STORE_TYPE_SCHEDULE_INBOX
from xandikos.store.git import TreeGitStore

from external_calendars.models import Connection
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.homes import CalendarHome, NewEvent, Shown
from tests.external_calendars.icalendars import calendar
from tests.external_calendars.icalendars import event as ical_event
from tests.external_calendars.mirrored import change, shown
from tests.external_calendars.servers import (
    CYRUS_DOMAIN,
    CalendarServer,
    Collection,
    Cyrus,
    Xandikos,
)
from tests.sinks import Call
from tests.world import Tenant

WINDOWS_ZONE = "W. Europe Standard Time"
# As Outlook writes it: the name is none of the IANA's.
ZONE_RULES = """\
BEGIN:VTIMEZONE\r
TZID:W. Europe Standard Time\r
BEGIN:STANDARD\r
DTSTART:16010101T030000\r
TZOFFSETFROM:+0200\r
TZOFFSETTO:+0100\r
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r
END:STANDARD\r
BEGIN:DAYLIGHT\r
DTSTART:16010101T020000\r
TZOFFSETFROM:+0100\r
TZOFFSETTO:+0200\r
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r
END:DAYLIGHT\r
END:VTIMEZONE"""
ADDRESSES = """<propertyupdate xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><set><prop>
<C:calendar-user-address-set>{hrefs}</C:calendar-user-address-set></prop></set></propertyupdate>"""
HAS_TOKEN = re.compile(rb"sync-token>[^<]")
TOKEN_ENDED = b'<error xmlns="DAV:"><valid-sync-token/></error>'


def connect_address(tenant: Tenant, resource: Any, **given: Any) -> Connection:
    answer = tenant.post("/calendars", {"resource_id": resource["id"], **given})
    assert answer.status == 201, answer.json
    return Connection.objects.get(calendar=answer.data["id"])


# --- Texts ----------------------------------------------------------------------------------------
def time_line(name: str, value: datetime | date) -> str:
    """Local times have the zone's Windows name."""
    if not isinstance(value, datetime):
        return f"{name};VALUE=DATE:{value:%Y%m%d}"
    if isinstance(value.tzinfo, ZoneInfo):
        return f"{name};TZID={WINDOWS_ZONE}:{value:%Y%m%dT%H%M%S}"
    return f"{name}:{value:%Y%m%dT%H%M%SZ}"


def text_of(event: NewEvent, uid: str) -> str:
    lines = [
        "DTSTAMP:20260101T000000Z",
        time_line("DTSTART", event.start),
        time_line("DTEND", event.end),
        f"SUMMARY:{event.title}",
    ]
    if not event.busy:
        lines.append("TRANSP:TRANSPARENT")
    if event.private:
        lines.append("CLASS:PRIVATE")
    if event.weekly:
        lines.append(f"RRULE:FREQ=WEEKLY;COUNT={event.weekly}")
    zones = [ZONE_RULES] if isinstance(zone_of(event.start), ZoneInfo) else []
    return calendar(*zones, ical_event(*lines, uid=uid))


def zone_of(value: datetime | date) -> tzinfo | None:
    return value.tzinfo if isinstance(value, datetime) else None


def without_occurrence(text: str, start: datetime) -> str:
    return text.replace("END:VEVENT", f"{time_line('EXDATE', start)}\r\nEND:VEVENT", 1)


def with_moved_occurrence(text: str, start: datetime, new_start: datetime) -> str:
    """The text with an exception, which begins at `new_start` and lasts an hour."""
    series = icalendar.Calendar.from_ical(text).events[0]
    exception = [
        "BEGIN:VEVENT",
        f"UID:{series['UID']}",
        "DTSTAMP:20260101T000000Z",
        time_line("RECURRENCE-ID", start),
        time_line("DTSTART", new_start),
        time_line("DTEND", new_start + timedelta(hours=1)),
        f"SUMMARY:{series['SUMMARY']}",
        "END:VEVENT",
    ]
    return text.replace("END:VCALENDAR", "\r\n".join([*exception, "END:VCALENDAR"]))


def with_answer(text: str, email: str, answer: str) -> str:
    """The text in which an attendee has answered."""
    [event] = icalendar.Calendar.from_ical(text).events
    attendees = event["ATTENDEE"]
    for each in attendees if isinstance(attendees, list) else [attendees]:
        if str(each).removeprefix("mailto:") == email:
            each.params["PARTSTAT"] = answer.upper()
    return change(text, attendee=attendees)


def with_guest(text: str, email: str) -> str:
    [event] = icalendar.Calendar.from_ical(text).events
    attendees = event["ATTENDEE"]
    known = attendees if isinstance(attendees, list) else [attendees]
    return change(text, attendee=[*known, icalendar.vCalAddress(f"mailto:{email}")])


# --- CalDAV ---------------------------------------------------------------------------------------
class DavHome(CalendarHome):
    """Ids are the names of the objects. Nobody but the owner is known to the server."""

    def __init__(self, server: CalendarServer) -> None:
        self.server, self.collection = server, server.make_calendar()
        self.front = server.front
        self.numbers = itertools.count()
        self.front.forget()

    def connect(self, tenant: Tenant, resource: Any) -> Connection:
        """By the name of the server."""
        access = self.collection.access._replace(address=self.server.url)._asdict()
        access.pop("token")
        return connect_address(tenant, resource, provider="caldav", **access)

    def add_event(self, event: NewEvent) -> str:
        name = f"own-{next(self.numbers)}.ics"
        self.collection.put(name, text_of(event, name))
        return name

    def fill(self, events: Iterable[NewEvent]) -> None:
        names = ((f"own-{next(self.numbers)}.ics", event) for event in events)
        self.collection.fill({name: text_of(event, name) for name, event in names})
        self.collection.names()

    def _edit(self, name: str, edit: Callable[[str], str]) -> None:
        text = self.collection.get(name)
        assert text is not None
        self.collection.put(name, edit(text), self.collection.etag(name))

    def move(self, event_id: str, start: datetime | date, end: datetime | date) -> None:
        self._edit(event_id, lambda text: change(text, dtstart=start, dtend=end))

    def remove(self, event_id: str) -> None:
        self.collection.delete(event_id)

    def cancel_occurrence(self, event_id: str, start: datetime) -> None:
        self._edit(event_id, lambda text: without_occurrence(text, start))

    def move_occurrence(self, event_id: str, start: datetime, new_start: datetime) -> None:
        self._edit(event_id, lambda text: with_moved_occurrence(text, start, new_start))

    def add_guest(self, event_id: str, email: str) -> None:
        self._edit(event_id, lambda text: with_guest(text, email))

    def events(self) -> list[Shown]:
        texts = [self.collection.get(name) or "" for name in self.ids()]
        return sorted(
            (Shown(each.what, each.start, each.end, each.guests) for each in map(shown, texts)),
            key=lambda each: str(each.start),
        )

    def ids(self) -> list[str]:
        return self.collection.names()

    def answer(self, event_id: str, email: str, answer: str) -> None:
        """The guest has answered by mail, and the owner's program has stored it."""
        self._edit(event_id, lambda text: with_answer(text, email, answer))

    def mails_to(self, email: str) -> int:
        return 0

    def count_requests(self) -> int:
        return len(self.front.calls)

    def fail(self) -> None:
        def hang_up(call: Call) -> Answer:
            raise ConnectionAbortedError

        self.front.answer = hang_up

    def recover(self) -> None:
        self.front.answer = lambda call: None

    def lose_answer(self) -> None:
        def write_and_hang_up(call: Call) -> Answer | None:
            if call.method != "PUT":
                return None
            self.recover()
            kept = {name: call.headers[name] for name in ("if-none-match", "content-type")}
            name = call.path.removeprefix(self.collection.path)
            written = self.collection.request("PUT", name, data=call.body, headers=kept)
            written.raise_for_status()
            raise ConnectionAbortedError

        self.front.answer = write_and_hang_up

    def throttle(self, *, times: int) -> None:
        left = iter(range(times))
        refusal = Answer(429, headers={"Retry-After": "7"})
        self.front.answer = lambda call: None if next(left, None) is None else refusal

    def forget_marks(self) -> None:
        """The server no longer knows the sync token (RFC 6578, 3.2)."""

        def refuse_token(call: Call) -> Answer | None:
            if call.method == "REPORT" and HAS_TOKEN.search(call.body):
                self.recover()
                return Answer(403, TOKEN_ENDED, {"Content-Type": "application/xml"})
            return None

        self.front.answer = refuse_token


class RadicaleHome(DavHome):
    name = "radicale"
    cannot = ("invite",)


class XandikosHome(DavHome):
    """The guest is another user of the server, who gets invitations in an inbox."""

    name = "xandikos"

    def __init__(self, server: Xandikos) -> None:
        super().__init__(server)
        user = self.collection.user
        name_user(server, user, f"{user}@dav.example.com")
        invited = server.make_user()
        self.inbox = server.folder / "store" / invited / "inbox"
        TreeGitStore.create(str(self.inbox)).set_type(STORE_TYPE_SCHEDULE_INBOX)
        self.guest = {"name": "Zoe", "email": f"{invited}@guests.example"}
        name_user(server, invited, self.guest["email"])
        self.front.forget()

    def mails_to(self, email: str) -> int:
        assert email == self.guest["email"]
        return len(list(self.inbox.glob("*.ics")))


def name_user(server: CalendarServer, user: str, *addresses: str) -> None:
    """Tell Xandikos the addresses of a user."""
    hrefs = "".join(f"<href>mailto:{address}</href>" for address in addresses)
    principal = Collection(server, user, f"/{user}/")
    body = ADDRESSES.format(hrefs=hrefs).encode()
    answer = principal.request("PROPPATCH", data=body, headers={"Content-Type": "application/xml"})
    answer.raise_for_status()


class CyrusHome(DavHome):
    """The guest is another user of the server, and answers in a calendar there."""

    name = "cyrus"

    def __init__(self, server: Cyrus) -> None:
        super().__init__(server)
        self.guests = server.make_calendar(name="Default")
        user = self.guests.user
        self.guest = {"name": "Zoe", "email": f"{user}@{CYRUS_DOMAIN}"}
        self.inbox = Collection(server, user, f"{server.home(user)}Inbox/")
        self.front.forget()

    def answer(self, event_id: str, email: str, answer: str) -> None:
        assert email == self.guest["email"]
        uid = shown(self.collection.get(event_id) or "").uid
        texts = {name: self.guests.get(name) or "" for name in self.guests.names()}
        [name] = [name for name, text in texts.items() if shown(text).uid == uid]
        # After a move, Cyrus 3.6 writes TRANSP twice into an object that the guest has changed, and
        # refuses to take it back.
        text = change(with_answer(texts[name], email, answer), transp="OPAQUE")
        self.guests.put(name, text, self.guests.etag(name))

    def mails_to(self, email: str) -> int:
        assert email == self.guest["email"]
        return len(self.inbox.names())


# --- Feeds ----------------------------------------------------------------------------------------
class FeedHome(CalendarHome):
    """A web server with a feed. Ids are UIDs."""

    name = "ics"
    cannot = ("write", "answers", "invite", "marks")

    def __init__(self, front: Front) -> None:
        self.front, self.texts = front, dict[str, str]()
        self.numbers = itertools.count()
        self.recover()

    def connect(self, tenant: Tenant, resource: Any) -> Connection:
        address = f"{self.front.url}/feed.ics"
        return connect_address(tenant, resource, provider="ics", address=address)

    def _answer(self, call: Call) -> Answer:
        events = [
            f"BEGIN:VEVENT{text.partition('BEGIN:VEVENT')[2].partition('END:VCALENDAR')[0].rstrip()}"
            for text in self.texts.values()
        ]
        etag = f'"{hash(tuple(events))}"'
        if call.headers.get("if-none-match") == etag:
            return Answer(304, headers={"ETag": etag})
        headers = {"ETag": etag, "Content-Type": "text/calendar; charset=utf-8"}
        return Answer(200, calendar(ZONE_RULES, *events).encode(), headers)

    def add_event(self, event: NewEvent) -> str:
        uid = f"own-{next(self.numbers)}"
        self.texts[uid] = text_of(event, uid)
        return uid

    def move(self, event_id: str, start: datetime | date, end: datetime | date) -> None:
        self.texts[event_id] = change(self.texts[event_id], dtstart=start, dtend=end)

    def remove(self, event_id: str) -> None:
        del self.texts[event_id]

    def cancel_occurrence(self, event_id: str, start: datetime) -> None:
        self.texts[event_id] = without_occurrence(self.texts[event_id], start)

    def move_occurrence(self, event_id: str, start: datetime, new_start: datetime) -> None:
        self.texts[event_id] = with_moved_occurrence(self.texts[event_id], start, new_start)

    def add_guest(self, event_id: str, email: str) -> None:
        self.must_not_be_asked()

    def events(self) -> list[Shown]:
        self.must_not_be_asked()

    def ids(self) -> list[str]:
        return [*self.texts]

    def answer(self, event_id: str, email: str, answer: str) -> None:
        self.must_not_be_asked()

    def mails_to(self, email: str) -> int:
        return 0

    def count_requests(self) -> int:
        return len(self.front.calls)

    def fail(self) -> None:
        def hang_up(call: Call) -> Answer:
            raise ConnectionAbortedError

        self.front.answer = hang_up

    def recover(self) -> None:
        self.front.answer = self._answer

    def lose_answer(self) -> None:
        self.must_not_be_asked()

    def throttle(self, *, times: int) -> None:
        left = iter(range(times))
        refusal = Answer(429, headers={"Retry-After": "7"})
        self.front.answer = lambda call: self._answer(call) if next(left, None) is None else refusal

    def forget_marks(self) -> None:
        self.must_not_be_asked()
