"""Connected calendars, asked just before a booking: what they say; none of them holds it up."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from availability.models import Calendar, Event
from availability.search import live_freebusy
from availability.search.queries import TimeSpan
from external_calendars import live_provider_freebusy
from external_calendars.credentials import store_credentials
from external_calendars.event_formats import ical
from external_calendars.live_provider_freebusy import fetch_calendar_busy
from external_calendars.models import Connection, WrittenEvent
from external_calendars.providers.base import CalendarAccess, ProviderError, RemoteObject
from external_calendars.sync.leases import SYNC_WAKEUP
from notifications.outbox.wakeup import wake_up_thread
from tests.external_calendars.front import Answer as FrontAnswer
from tests.external_calendars.servers import PASSWORD, CalendarServer
from tests.world import BERLIN, Tenant, app_of, at

pytestmark = pytest.mark.usefixtures("clock")

MONDAY = "2026-11-23"
NINE = TimeSpan(int(at(f"{MONDAY} 09:00").timestamp()), int(at(f"{MONDAY} 10:00").timestamp()))
EVENT = """BEGIN:VEVENT
UID:{uid}
DTSTAMP:20261101T000000Z
{lines}
SUMMARY:Secret
END:VEVENT
"""


def calendar_text(*lines: str, uid: str = "one") -> str:
    event = EVENT.format(uid=uid, lines="\n".join(lines))
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//\n{event}END:VCALENDAR\n"
    return text.replace("\n", "\r\n")


def entry(start: str, end: str, *more: str, uid: str = "one", day: str = "20261123") -> str:
    """An event on that Monday, in UTC: `entry("0900", "1000")`."""
    return calendar_text(f"DTSTART:{day}T{start}00Z", f"DTEND:{day}T{end}00Z", *more, uid=uid)


def span(start: str, end: str) -> TimeSpan:
    return TimeSpan(*(int(at(f"{MONDAY} {text}").timestamp()) for text in (start, end)))


def times(start: str, end: str) -> dict[str, str]:
    return {"start": f"{MONDAY}T{start}:00Z", "end": f"{MONDAY}T{end}:00Z"}


def shown(start: str, end: str) -> dict[str, str]:
    return {"start": f"{MONDAY}T{start}:00+00:00", "end": f"{MONDAY}T{end}:00+00:00"}


class FakeProvider:
    """Answers by the calendar's address; `asked` holds the addresses with their passwords, the
    window and the deadline."""

    name, label, can_write = "fake", "Fake", True
    event_format = ical

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[], Sequence[str]]] = {}
        self.asked: list[tuple[str, str, datetime, datetime]] = []
        self.deadlines: list[float] = []

    def objects_between(
        self, access: CalendarAccess, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[RemoteObject]:
        self.asked.append((access.address, access.password, start, end))
        self.deadlines.append(deadline)
        return [
            RemoteObject(f"/{n}", "", text) for n, text in enumerate(self.answers[access.address]())
        ]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    fake = FakeProvider()
    providers: Mapping[str, Any] = {"fake": fake}
    monkeypatch.setattr(live_provider_freebusy, "PROVIDERS", providers)
    monkeypatch.setattr(live_provider_freebusy, "_silent_until", {})
    return fake


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set at the end: what hangs may go."""
    event = threading.Event()
    yield event
    event.set()


def connect(resource: Any, address: str = "https://a.example.com/", **given: Any) -> Calendar:
    calendar = Calendar.objects.create(
        app=app_of(resource["id"]),
        resource_id=UUID(resource["id"]),
        name="Work",
        provider=given.pop("provider", "fake"),
        deleted_at=given.pop("deleted_at", None),
    )
    access = CalendarAccess(address, given.pop("user", "ada"), given.pop("password", "secret"))
    next_at = given.pop("next_at", timezone.now() + timedelta(minutes=4))
    connection = Connection(calendar=calendar, next_at=next_at, **given)
    store_credentials(connection, access)
    connection.save()
    return calendar


def set_events(
    provider: FakeProvider, *texts: str, address: str = "https://a.example.com/"
) -> None:
    provider.answers[address] = lambda: texts


def ask(*resources: Any, when: TimeSpan = NINE, **given: Any) -> dict[str, list[TimeSpan]]:
    found = fetch_calendar_busy([UUID(resource["id"]) for resource in resources], when, **given)
    return {str(resource_id): spans for resource_id, spans in found.items()}


# --- What they say --------------------------------------------------------------------------------
def test_busy_events_at_the_provider(tenant: Tenant, provider: FakeProvider) -> None:
    ada = tenant.make_resource("Ada")
    connect(ada)
    set_events(provider, entry("0800", "0930"), entry("1100", "1200", uid="two"))

    assert ask(ada) == {ada["id"]: [span("08:00", "09:30")]}
    window = at(f"{MONDAY} 09:00"), at(f"{MONDAY} 10:00")
    assert provider.asked == [("https://a.example.com/", "secret", *window)]
    assert 2.5 < provider.deadlines[0] <= live_provider_freebusy.SECONDS


@pytest.mark.parametrize(
    "text",
    [
        entry("0900", "1000", "TRANSP:TRANSPARENT"),
        entry("0900", "1000", "STATUS:CANCELLED"),
        entry("1000", "1100"),
        entry("0800", "0900"),
        entry("0900", "1000", "ATTENDEE;PARTSTAT=DECLINED:mailto:ada@example.com"),
    ],
    ids=["transparent", "cancelled", "after", "before", "declined"],
)
def test_events_that_do_not_block(tenant: Tenant, provider: FakeProvider, text: str) -> None:
    ada = tenant.make_resource("Ada", email="ada@example.com")
    connect(ada)
    set_events(provider, text)

    assert ask(ada) == {}


def test_recurring_and_floating_events(tenant: Tenant, provider: FakeProvider) -> None:
    """Floating times are read on the resource's clock."""
    ada = tenant.make_resource("Ada", BERLIN)
    connect(ada)
    set_events(
        provider,
        calendar_text(
            "DTSTART:20261116T100000", "DTEND:20261116T103000", "RRULE:FREQ=WEEKLY;COUNT=3"
        ),
    )

    assert ask(ada) == {ada["id"]: [span("09:00", "09:30")]}


def test_all_day_events_can_be_ignored(tenant: Tenant, provider: FakeProvider) -> None:
    ada = tenant.make_resource("Ada")
    connect(ada)
    set_events(provider, calendar_text("DTSTART;VALUE=DATE:20261123", "DTEND;VALUE=DATE:20261124"))

    midnight = NINE.start - 9 * 3600
    assert ask(ada) == {ada["id"]: [TimeSpan(midnight, midnight + 86_400)]}
    assert ask(ada, ignore_all_day=True) == {}


def test_mirrored_events_are_ignored(tenant: Tenant, provider: FakeProvider) -> None:
    """Of a cancelled booking too, which is not deleted there yet; the same UID elsewhere counts."""
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    mine, other = connect(ada), connect(bob, "https://b.example.com/")
    event = tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T09:00:00Z", f"{MONDAY}T10:00Z")
    WrittenEvent.objects.create(event_id=UUID(event["id"]), calendar=mine, uid="one")
    set_events(provider, entry("0900", "1000"))
    set_events(provider, entry("0900", "1000"), address="https://b.example.com/")

    assert ask(ada, bob) == {bob["id"]: [NINE]}
    assert next_of(mine) > timezone.now()
    assert next_of(other) == timezone.now()


# --- Who is asked ---------------------------------------------------------------------------------
def test_all_calendars_of_each_resource_are_queried(tenant: Tenant, provider: FakeProvider) -> None:
    ada, bob, cleo = (tenant.make_resource(name) for name in ("Ada", "Bob", "Cleo"))
    for number, resource in enumerate((ada, ada, bob, cleo)):
        connect(resource, f"https://{number}.example.com/")
    set_events(provider, entry("0900", "0915"), address="https://0.example.com/")
    set_events(provider, entry("0930", "0945"), address="https://1.example.com/")
    set_events(provider, address="https://2.example.com/")

    found = ask(ada, bob)

    assert {key: sorted(spans) for key, spans in found.items()} == {
        ada["id"]: [span("09:00", "09:15"), span("09:30", "09:45")]
    }
    assert sorted(question[0] for question in provider.asked) == [
        f"https://{number}.example.com/" for number in range(3)
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"problem": "unauthorized", "next_at": None},
        {"deleted_at": at("2026-11-20 09:00")},
        {"provider": "gone"},
    ],
    ids=["waits for a person", "disconnected", "unknown provider"],
)
def test_calendars_that_are_not_queried(
    tenant: Tenant, provider: FakeProvider, given: dict[str, Any]
) -> None:
    ada = tenant.make_resource("Ada")
    connect(ada, **given)

    assert (ask(ada), provider.asked) == ({}, [])


def test_feeds_are_not_queried(
    tenant: Tenant, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = tenant.make_resource("Ada")
    connect(ada)
    monkeypatch.setattr(provider, "can_write", False)

    assert (ask(ada), provider.asked) == ({}, [])


def test_calendar_with_unreadable_password_is_skipped(
    tenant: Tenant, provider: FakeProvider
) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    broken = connect(ada)
    connect(bob, "https://b.example.com/")
    Connection.objects.filter(calendar=broken).update(password="nonsense")
    set_events(provider, entry("0900", "1000"), address="https://b.example.com/")

    assert ask(ada, bob) == {bob["id"]: [NINE]}


def test_query_count_is_constant(
    tenant: Tenant, provider: FakeProvider, django_assert_num_queries: Any
) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    connect(ada, "https://0.example.com/")
    for number in range(1, 10):
        connect(bob, f"https://{number}.example.com/")
    for number in range(10):
        set_events(provider, entry("0900", "1000"), address=f"https://{number}.example.com/")

    for resource in (ada, bob):
        with django_assert_num_queries(4):
            ask(resource)


# --- Those that do not answer ---------------------------------------------------------------------
def raises(error: Exception) -> Callable[[], Sequence[str]]:
    def answer() -> Sequence[str]:
        raise error

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        raises(ProviderError("unreachable")),
        raises(ProviderError("server_error", status=500)),
        raises(ValueError("a bug")),
        lambda: ["no calendar at all"],
    ],
    ids=["away", "500", "a bug", "garbage"],
)
def test_failing_calendar_is_skipped_and_paused(
    tenant: Tenant, provider: FakeProvider, answer: Callable[[], Sequence[str]]
) -> None:
    """The others count, and it is not asked again at once."""
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    connect(ada)
    connect(bob, "https://b.example.com/")
    provider.answers["https://a.example.com/"] = answer
    set_events(provider, entry("0900", "1000"), address="https://b.example.com/")

    found = [ask(ada, bob), ask(ada, bob)]

    assert found == [{bob["id"]: [NINE]}] * 2
    asked = [question[0] for question in provider.asked]
    assert (asked.count("https://a.example.com/"), asked.count("https://b.example.com/")) == (1, 2)


def test_failing_calendar_is_retried_after_the_pause(
    tenant: Tenant, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = tenant.make_resource("Ada")
    connect(ada)
    provider.answers["https://a.example.com/"] = raises(ProviderError("unreachable"))
    monkeypatch.setattr(live_provider_freebusy, "PAUSE", 0.0)
    ask(ada)
    set_events(provider, entry("0900", "1000"))

    assert ask(ada) == {ada["id"]: [NINE]}


def test_hanging_calendar_is_skipped(
    tenant: Tenant,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    release: threading.Event,
) -> None:
    """What it says in the end is heard by nobody."""
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    connect(ada)
    connect(bob, "https://b.example.com/")
    monkeypatch.setattr(live_provider_freebusy, "SECONDS", 0.2)

    def hang() -> Sequence[str]:
        assert release.wait(60)
        return [entry("0900", "1000")]

    provider.answers["https://a.example.com/"] = hang
    set_events(provider, entry("0900", "1000"), address="https://b.example.com/")

    assert ask(ada, bob) == {bob["id"]: [NINE]}
    assert not release.is_set()


def test_concurrent_queries_are_limited(
    tenant: Tenant, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = tenant.make_resource("Ada")
    monkeypatch.setattr(live_provider_freebusy, "MAX_CONCURRENT", 2)
    under_way, most = [0], [0]
    turn = threading.Lock()

    def answer() -> Sequence[str]:
        with turn:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.01)
        with turn:
            under_way[0] -= 1
        return [entry("0900", "1000")]

    for number in range(6):
        connect(ada, f"https://{number}.example.com/")
        provider.answers[f"https://{number}.example.com/"] = answer

    assert ask(ada) == {ada["id"]: [NINE] * 6}
    assert most[0] <= 2


# --- What was not known ---------------------------------------------------------------------------
def next_of(calendar: Calendar) -> datetime | None:
    return Connection.objects.get(calendar=calendar).next_at


def test_calendar_with_unknown_events_is_synced_now(
    tenant: Tenant,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    woken: list[Any] = []
    monkeypatch.setattr(wake_up_thread, "enqueue", woken.extend)
    ada = tenant.make_resource("Ada")
    calendar = connect(ada)
    set_events(provider, entry("0900", "1000"))

    with django_capture_on_commit_callbacks(execute=True):
        ask(ada)

    assert next_of(calendar) == timezone.now()
    assert woken == [SYNC_WAKEUP]


def test_calendar_without_changes_keeps_its_next_sync(
    tenant: Tenant, provider: FakeProvider
) -> None:
    ada = tenant.make_resource("Ada")
    calendar = connect(ada)
    turn = next_of(calendar)
    Event.objects.create(
        app_id=calendar.app_id,
        calendar=calendar,
        resource_id=calendar.resource_id,
        start=at(f"{MONDAY} 09:00"),
        end=at(f"{MONDAY} 10:00"),
        what="Known",
        provider_id="one",
    )
    set_events(provider, entry("0900", "1000"))

    assert ask(ada) == {ada["id"]: [NINE]}
    assert next_of(calendar) == turn


def test_running_sync_keeps_its_lease(tenant: Tenant, provider: FakeProvider) -> None:
    ada = tenant.make_resource("Ada")
    calendar = connect(ada, lease_token=UUID(int=1))
    lease = next_of(calendar)
    set_events(provider, entry("0900", "1000"))

    ask(ada)

    assert next_of(calendar) == lease


# --- All the way ----------------------------------------------------------------------------------
def test_freebusy_source_is_registered() -> None:
    assert list(live_freebusy.freebusy_sources) == [fetch_calendar_busy]


def test_booking_is_refused_and_late_response_ignored(
    tenant: Tenant,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    release: threading.Event,
) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    connect(ada)
    connect(bob, "https://b.example.com/")
    project = tenant.make_project(
        ada["id"],
        bob["id"],
        settings={"check_external": True},
        availability={"mode": "roundrobin_prioritized"},
    )
    monkeypatch.setattr(live_provider_freebusy, "SECONDS", 0.5)
    set_events(provider, entry("0900", "0930"))
    provider.answers["https://b.example.com/"] = lambda: [str(release.wait(60))]
    nine = times("09:00", "10:00")

    alone = tenant.book(project_id=project["id"], resource_id=ada["id"], **nine)
    other = tenant.post(
        "/bookings?include=resource",
        {
            "project_id": project["id"],
            "what": "x",
            "customer": {"name": "M", "email": "m@example.com"},
            **nine,
        },
    )

    assert (alone.status, alone.json["code"], alone.json["conflicts"]) == (
        409,
        "slot_taken",
        [shown("09:00", "09:30")],
    )
    assert (other.status, other.data["resource"]["name"]) == (201, "Bob")


def test_busy_times_of_a_real_server(tenant: Tenant, server: CalendarServer) -> None:
    """Of all that stands there, once and repeated, what takes the time; and what is gone is gone.
    It is one request each time."""
    ada = tenant.make_resource("Ada", BERLIN)
    collection = server.make_calendar()
    connect(ada, collection.url, provider="caldav", user=collection.user, password=PASSWORD)
    project = tenant.make_project(ada["id"], settings={"check_external": True})["id"]
    collection.put("a.ics", entry("0930", "1030", uid="a"))
    collection.put("b.ics", entry("0900", "1000", uid="b", day="20261124"))
    weekly = calendar_text(
        "DTSTART;TZID=Europe/Berlin:20261102T120000",
        "DTEND;TZID=Europe/Berlin:20261102T123000",
        "RRULE:FREQ=WEEKLY",
        uid="c",
    )
    collection.put("c.ics", weekly)
    server.front.forget()

    busy = [ask(ada, when=when) for when in (NINE, span("11:00", "12:00"), span("12:00", "13:00"))]
    refused = tenant.book(project_id=project, **times("09:00", "10:00"))
    collection.delete("a.ics")
    made = tenant.book(project_id=project, **times("09:00", "10:00"))

    assert busy == [
        {ada["id"]: [span("09:30", "10:30")]},
        {ada["id"]: [span("11:00", "11:30")]},
        {},
    ]
    assert (refused.status, refused.json["code"], refused.json["conflicts"]) == (
        409,
        "slot_taken",
        [shown("09:30", "10:00")],
    )
    assert made.status == 201
    assert [call.method for call in server.front.calls] == ["REPORT"] * 5


def test_failing_real_server_does_not_stop_a_booking(
    tenant: Tenant, radicale: CalendarServer
) -> None:
    ada = tenant.make_resource("Ada")
    collection = radicale.make_calendar()
    connect(ada, collection.url, provider="caldav", user=collection.user, password=PASSWORD)
    project = tenant.make_project(ada["id"], settings={"check_external": True})["id"]
    collection.put("a.ics", entry("0900", "1000", uid="a"))
    radicale.front.answer = lambda call: FrontAnswer(500)

    answer = tenant.book(project_id=project, **times("09:00", "10:00"))

    assert answer.status == 201
