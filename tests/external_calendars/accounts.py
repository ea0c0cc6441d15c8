"""An account at a provider with OAuth, as its owner and as the service use it."""

from abc import abstractmethod
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

from availability.models import Calendar
from external_calendars.models import Connection
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.google.calendars import StoredCalendar
from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.microsoft.events import occurrence_id
from tests.external_calendars.fakes.server import Gateway, Request
from tests.external_calendars.homes import EMAIL, CalendarHome, NewEvent, Shown
from tests.world import Tenant

BACK = "https://app.example.com/settings"


class AccountHome(CalendarHome):
    """The main calendar of the account of EMAIL at a provider with OAuth."""

    gateway: Gateway

    @abstractmethod
    def consent(self, url: str, *, allow: bool = True) -> str:
        """Agree on the consent page, or not; return where it leads to."""

    @abstractmethod
    def add_calendar(self, name: str) -> None:
        """Add a further calendar to the account."""

    @abstractmethod
    def invited(self) -> list[str]:
        """Return the ids of the events to which guests were mailed a first invitation."""

    @abstractmethod
    def links(self) -> list[str]:
        """Return the links of the video calls of all events."""

    @abstractmethod
    def delay_links(self) -> None:
        """Make links of video calls long after the answer, by `make_links`."""

    @abstractmethod
    def make_links(self) -> None: ...

    @abstractmethod
    def end_video_calls(self) -> None:
        """Make no links any more: Google for this calendar, Microsoft for personal accounts."""

    @abstractmethod
    def writes(self) -> list[Request]:
        """Return the requests that wrote events."""

    @abstractmethod
    def expire_tokens(self) -> None: ...

    @abstractmethod
    def revoke(self) -> None: ...

    @abstractmethod
    def allow_again(self) -> None:
        """Take `revoke` back, as an organization does that had locked the account."""

    # --- The same for all, by the gateway ---------------------------------------------------------
    def connect(self, tenant: Tenant, resource: Any) -> Connection:
        return connect_account(tenant, self, resource)

    def count_requests(self) -> int:
        return len(self.gateway.requests)

    def fail(self) -> None:
        self.gateway.hang_up(".", times=10**6)

    def recover(self) -> None:
        self.gateway.stop_faults()

    def lose_answer(self) -> None:
        """Also that of the request that looks for the event."""
        self.gateway.lose_answer("/events", method="POST", times=2)


class GoogleHome(AccountHome):
    name = "google"

    def __init__(self, google: FakeGoogle) -> None:
        self.google, self.gateway = google, google.gateway
        self.calendar: StoredCalendar = google.add_account(EMAIL).calendar

    def consent(self, url: str, *, allow: bool = True) -> str:
        return self.google.consent(url, EMAIL, allow=allow)

    def add_event(self, event: NewEvent) -> str:
        given: dict[str, Any] = {}
        if not event.busy:
            given["transparency"] = "transparent"
        if event.weekly:
            given["recurrence"] = [f"RRULE:FREQ=WEEKLY;COUNT={event.weekly}"]
        if event.private:
            given["visibility"] = "private"
        return self.calendar.add(event.title, event.start, event.end, **given)

    def move(self, event_id: str, start: datetime | date, end: datetime | date) -> None:
        self.calendar.change(event_id, start=start, end=end)

    def remove(self, event_id: str) -> None:
        self.calendar.cancel(event_id)

    def cancel_occurrence(self, event_id: str, start: datetime) -> None:
        self.calendar.cancel(self.calendar.instance_id(event_id, start))

    def move_occurrence(self, event_id: str, start: datetime, new_start: datetime) -> None:
        instance = self.calendar.instance_id(event_id, start)
        self.calendar.change(instance, start=new_start, end=new_start + timedelta(hours=1))

    def add_calendar(self, name: str) -> None:
        self.google.add_calendar(name, EMAIL)

    def add_guest(self, event_id: str, email: str) -> None:
        guests = self.calendar.event(event_id)["attendees"]
        self.calendar.change(event_id, attendees=[*guests, {"email": email}])

    def answer(self, event_id: str, email: str, answer: str) -> None:
        self.calendar.respond(event_id, email, answer)

    def events(self) -> list[Shown]:
        return sorted(self._shown(event_id) for event_id in self.ids())

    def _shown(self, event_id: str) -> Shown:
        event = self.calendar.event(event_id)
        start, end = (_moment(event[name]) for name in ("start", "end"))
        guests = sorted(guest["email"] for guest in event.get("attendees", ()))
        return Shown(event.get("summary", ""), start, end, guests)

    def ids(self) -> list[str]:
        stored = self.calendar.events.items()
        return [event_id for event_id, event in stored if not event.is_cancelled]

    def mails_to(self, email: str) -> int:
        return len(self.google.mails_to(email))

    def invited(self) -> list[str]:
        return [mail.event_id for mail in self.google.invitations if mail.operation == "insert"]

    def links(self) -> list[str]:
        return [self.calendar.event(event_id)["hangoutLink"] for event_id in self.ids()]

    def delay_links(self) -> None:
        self.calendar.conference_delay = 3600

    def make_links(self) -> None:
        self.gateway.clock.advance(hours=1)
        self.calendar.complete_conferences()
        self.gateway.clock.advance(hours=-1)

    def end_video_calls(self) -> None:
        self.calendar.allowed_conferences = ()

    def writes(self) -> list[Request]:
        found = self.gateway.requests_to("/events")
        return [request for request in found if request.method in ("POST", "PUT", "PATCH")]

    def throttle(self, *, times: int) -> None:
        self.google.throttle(times=times)

    def expire_tokens(self) -> None:
        self.google.oauth.expire_access_tokens()

    def revoke(self) -> None:
        self.google.oauth.revoke(EMAIL)

    def allow_again(self) -> None:
        for grant in self.google.oauth.grants:
            grant.is_revoked = False

    def forget_marks(self) -> None:
        self.google.expire_sync_tokens()


def _moment(value: dict[str, str]) -> datetime | date:
    if "date" in value:
        return date.fromisoformat(value["date"])
    return datetime.fromisoformat(value["dateTime"])


class MicrosoftHome(AccountHome):
    name = "microsoft"

    def __init__(self, graph: FakeGraph) -> None:
        self.graph, self.gateway = graph, graph.gateway
        self.mailbox = graph.add_account(EMAIL)

    def consent(self, url: str, *, allow: bool = True) -> str:
        return self.graph.consent(url, EMAIL, allow=allow)

    def add_event(self, event: NewEvent) -> str:
        body = {
            "subject": event.title,
            "start": _graph_time(event.start),
            "end": _graph_time(event.end),
            "isAllDay": not isinstance(event.start, datetime),
            "showAs": "busy" if event.busy else "free",
            "sensitivity": "private" if event.private else "normal",
        }
        if event.weekly:
            day = event.start.strftime("%A").lower()
            body["recurrence"] = {
                "pattern": {"type": "weekly", "interval": 1, "daysOfWeek": [day]},
                "range": {
                    "type": "numbered",
                    "startDate": event.start.strftime("%Y-%m-%d"),
                    "numberOfOccurrences": event.weekly,
                },
            }
        return self.graph.create(EMAIL, body).id

    def move(self, event_id: str, start: datetime | date, end: datetime | date) -> None:
        self.graph.change(event_id, {"start": _graph_time(start), "end": _graph_time(end)})

    def remove(self, event_id: str) -> None:
        self.graph.remove(event_id)

    def cancel_occurrence(self, event_id: str, start: datetime) -> None:
        self.graph.remove(occurrence_id(event_id, start.date()))

    def move_occurrence(self, event_id: str, start: datetime, new_start: datetime) -> None:
        self.move(occurrence_id(event_id, start.date()), new_start, new_start + timedelta(hours=1))

    def add_calendar(self, name: str) -> None:
        self.mailbox.add_calendar(name)

    def add_guest(self, event_id: str, email: str) -> None:
        guests = self.mailbox.find(event_id).properties["attendees"]
        guest = {"type": "required", "emailAddress": {"address": email, "name": email}}
        self.graph.change(event_id, {"attendees": [*guests, guest]})

    def answer(self, event_id: str, email: str, answer: str) -> None:
        # Graph has whole seconds: the answer must not look older than what happened in this one.
        self.gateway.clock.advance(seconds=1)
        words = {"tentative": "tentativelyAccepted"}
        self.graph.answer_invitation(event_id, email, words.get(answer, answer))

    def events(self) -> list[Shown]:
        return sorted(self._shown(event) for event in self.graph.events(EMAIL))

    def _shown(self, event: dict[str, Any]) -> Shown:
        start, end = (datetime.fromisoformat(event[name]["dateTime"][:19]) for name in _ENDS)
        times: list[Any] = [start.replace(tzinfo=UTC), end.replace(tzinfo=UTC)]
        if event["isAllDay"]:
            times = [start.date(), end.date()]
        guests = sorted(guest["emailAddress"]["address"] for guest in event["attendees"])
        return Shown(event["subject"], times[0], times[1], guests)

    def ids(self) -> list[str]:
        return [event["id"] for event in self.graph.events(EMAIL)]

    def mails_to(self, email: str) -> int:
        return len(self.graph.mails_to(email))

    def invited(self) -> list[str]:
        return [mail.event_id for mail in self.graph.invitations if mail.kind == "request"]

    def links(self) -> list[str]:
        return [event["onlineMeeting"]["joinUrl"] for event in self.graph.events(EMAIL)]

    def delay_links(self) -> None:
        self.graph.writer.reads_until_join_url = 10**6

    def make_links(self) -> None:
        self.graph.writer.reads_until_join_url = 1

    def end_video_calls(self) -> None:
        self.mailbox = self.graph.add_account(EMAIL, is_personal=True)

    def writes(self) -> list[Request]:
        found = self.gateway.requests_to("/events")
        return [request for request in found if request.method in ("POST", "PATCH")]

    def throttle(self, *, times: int) -> None:
        self.graph.throttle(times=times)

    def expire_tokens(self) -> None:
        self.graph.login.expire_access_tokens()

    def revoke(self) -> None:
        self.graph.revoke(EMAIL)

    def allow_again(self) -> None:
        for grant in self.graph.login.grants:
            grant.ended = None

    def forget_marks(self) -> None:
        self.graph.delta.end_tokens()


_ENDS = ("start", "end")


def _graph_time(value: datetime | date) -> dict[str, str]:
    """Times in the zone of the mailbox if they have one, else in UTC."""
    if not isinstance(value, datetime):
        return {"dateTime": f"{value.isoformat()}T00:00:00", "timeZone": "UTC"}
    is_local = isinstance(value.tzinfo, ZoneInfo)
    zone = "W. Europe Standard Time" if is_local else "UTC"
    return {"dateTime": value.strftime("%Y-%m-%dT%H:%M:%S"), "timeZone": zone}


ACCOUNTS: dict[str, type[Any]] = {"google": GoogleHome, "microsoft": MicrosoftHome}


def allow_redirects(tenant: Tenant) -> None:
    answer = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"redirect_urls": [BACK]}})
    assert answer.status == 200, answer.data


def consent_url(tenant: Tenant, home: AccountHome, resource: Any, **given: Any) -> str:
    """Ask for a calendar of the resource; return the address of the consent page."""
    body = {"provider": home.name, "resource_id": resource["id"], "redirect_url": BACK}
    answer = tenant.post("/calendars/connect", body | given)
    assert answer.status == 201, answer.data
    return answer.data["url"]


def come_back(tenant: Tenant, url: str) -> dict[str, str]:
    """Open the callback; return the query of the address to which it leads."""
    path = url.partition("/v2")[2]
    answer = tenant.client.get(f"/v2{path}")
    assert answer.status_code == 302, answer.content
    assert answer["Location"].partition("?")[0] == BACK
    query = parse_qs(urlsplit(answer["Location"]).query)
    return {name: values[0] for name, values in query.items()}


def connect_account(tenant: Tenant, home: AccountHome, resource: Any) -> Connection:
    """Connect the main calendar of the account with the resource, as a person does."""
    allow_redirects(tenant)
    came = come_back(tenant, home.consent(consent_url(tenant, home, resource)))
    assert came.keys() == {"calendar_id"}, came
    calendar = Calendar.objects.get(id=came["calendar_id"])
    return calendar.connection


def connect_again(tenant: Tenant, home: AccountHome, connection: Connection) -> dict[str, str]:
    """Let the person agree once more; return the query of the address to come back to."""
    body = {"provider": home.name, "calendar_id": str(connection.pk), "redirect_url": BACK}
    return come_back(tenant, home.consent(tenant.post("/calendars/connect", body).data["url"]))
