"""A server that is away for an hour, in each of its ways: what is said of it, what goes on beside
it, and what stands where when it is back. The clock is the test's.

Two of the ways on real servers, the others as a provider in memory reports them. With --deep all of
them on real servers.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

import pytest
from django.utils import timezone

from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import (
    PROVIDER_ERRORS,
    CalendarAccess,
    ChangeSet,
    ProviderError,
)
from external_calendars.sync import leases as sync_leases
from external_calendars.sync import run as sync_module
from external_calendars.sync.leases import claim_connections
from external_calendars.sync.run import sync_calendar
from notifications.models import Delivery
from notifications.outbox import dispatcher, results
from notifications.outbox import leases as delivery_leases
from notifications.outbox.dispatcher import run_dispatcher
from tests.external_calendars.front import Answer
from tests.external_calendars.icalendars import one
from tests.external_calendars.mirrored import Memory, connect, copies, shown
from tests.external_calendars.servers import CalendarServer, Collection
from tests.external_calendars.test_mirror import _at_home, act, book, move, span_of, times
from tests.external_calendars.test_mirror_servers import name_of, names_in, text_of
from tests.sinks import Call
from tests.world import Tenant

__all__ = ["_at_home"]
pytestmark = pytest.mark.django_db(transaction=True)

DAYTIME = 9
SOON = timedelta(minutes=1)
PAGE = b"<html><body>Please sign in to the hotel's network</body></html>"
FLOOD = b"x" * (1 << 20)


def flood(call: Call) -> Answer:
    """200 MB, as long as anybody reads."""
    return Answer(207 if call.method in ("PROPFIND", "REPORT") else 200, (FLOOD,) * 200)


def garbage(call: Call) -> Answer:
    """As from a gateway that says 200 to everything."""
    return Answer(200, PAGE)


def hang_up(call: Call) -> Answer:
    raise ConnectionAbortedError


def always(status: int, **headers: str) -> Any:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda call: Answer(status, headers=names)


# What it answers -> the problem of the calendar, and what the writes that wait say.
WAYS: dict[str, tuple[Any, str, set[str]]] = {
    "401": (always(401), "unauthorized", {PROVIDER_ERRORS["unauthorized"]}),
    "412": (always(412), "server_error", {"The server returned 412."}),
    "429": (always(429, Retry_After="600"), "rate_limited", {PROVIDER_ERRORS["rate_limited"]}),
    "500": (always(500), "server_error", {"The server returned 500."}),
    "garbage": (
        garbage,
        "bad_answer",
        {PROVIDER_ERRORS["bad_answer"], "The server returned 200."},
    ),
    "200 MB": (flood, "too_large", {"The response is too large."}),
    "redirect": (
        always(302, Location="http://10.0.0.1/"),
        "bad_answer",
        {"The server returned 302."},
    ),
    "hangs up": (hang_up, "unreachable", {"The connection was closed before a response arrived."}),
}


@pytest.fixture
def frozen_clock(clock: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock, which the database's own follows here."""
    for module in (sync_leases, sync_module, delivery_leases, dispatcher, results):
        monkeypatch.setattr(module, "database_now", timezone.now)
    monkeypatch.setattr(delivery_leases, "_begin_claim", timezone.now)
    return clock


def run_workers(frozen_clock: Any, minutes: int) -> Iterator[int]:
    """What workers do in each of so many minutes, after what the test does in it."""
    for minute in range(minutes):
        yield minute
        for connection in claim_connections(10):
            sync_calendar(connection)
        due = Delivery.objects.open().filter(next_at__lte=timezone.now())
        for kind in due.order_by("type").values_list("type", flat=True).distinct():
            run_dispatcher(kind)
        frozen_clock.shift(60)


class Home(Protocol):
    """A calendar as another client sees and changes it."""

    access: CalendarAccess

    def put(self, name: str, text: str) -> str: ...
    def get(self, name: str) -> str | None: ...
    def names(self) -> list[str]: ...


class Place(Protocol):
    """Two servers, each with one calendar. The first can be away, in one of WAYS."""

    homes: tuple[Home, Home]

    def fail(self, way: str) -> None: ...
    def reasons(self, way: str) -> set[str]: ...
    def restore(self) -> None: ...
    def count_calls(self) -> int: ...


class RealPlace:
    def __init__(self, first: CalendarServer, second: CalendarServer) -> None:
        self.front = first.front
        self.homes: tuple[Collection, Collection] = (first.make_calendar(), second.make_calendar())
        self.count_calls = lambda: len(self.front.calls)

    def fail(self, way: str) -> None:
        self.front.answer = WAYS[way][0]

    def reasons(self, way: str) -> set[str]:
        return WAYS[way][2]

    def restore(self) -> None:
        self.front.answer = lambda call: None


class MemoryHome:
    def __init__(self, memory: "MemoryPlace", host: str) -> None:
        self.memory, self.folder = memory, f"/{host}/home/"
        self.access = CalendarAccess(f"https://{host}.example.com{self.folder}")

    def put(self, name: str, text: str) -> str:
        return self.memory.set(self.folder + name, text)

    def get(self, name: str) -> str | None:
        return self.memory.objects.get(self.folder + name, ("", None))[1]

    def names(self) -> list[str]:
        paths = (path for path in self.memory.objects if path.startswith(self.folder))
        return sorted(path.removeprefix(self.folder) for path in paths)


class MemoryPlace(Memory):
    """A provider in the place of CalDAV."""

    def __init__(self) -> None:
        super().__init__()
        self.homes = (MemoryHome(self, "first"), MemoryHome(self, "second"))

    def fail(self, way: str) -> None:
        def refuse(call: str) -> None:
            if self.homes[0].folder in call:
                (detail,) = self.reasons(way)
                raise ProviderError(WAYS[way][1], detail=detail)

        self.before = refuse

    def reasons(self, way: str) -> set[str]:
        """Return one of them: all calls are refused in the same way."""
        return {min(WAYS[way][2])}

    def restore(self) -> None:
        self.before = lambda call: None

    def count_calls(self) -> int:
        return sum(self.homes[0].folder in call for call in self.calls)

    def list_changes(
        self, access: CalendarAccess, mark: Mapping[str, Any], stored: Any, *, deadline: float
    ) -> ChangeSet:
        folder = access.address.removeprefix("https://").partition("/")[2]
        found = {path: etag for path, (etag, _) in self.objects.items() if folder in path}
        return self._do("look", f"/{folder}", lambda: ChangeSet(found, [], True, {}))


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "real":
        servers = (request.getfixturevalue(name) for name in ("radicale", "xandikos"))
        return RealPlace(*servers)
    provider = MemoryPlace()
    monkeypatch.setitem(PROVIDERS, "caldav", provider)
    return provider


class Person:
    """A resource with one calendar elsewhere."""

    def __init__(self, tenant: Tenant, name: str, home: Home) -> None:
        self.tenant, self.home = tenant, home
        self.resource = tenant.make_resource(name, email=f"{name.lower()}@example.com")
        self.calendar = connect(self.resource, self.home.access)
        Connection.objects.filter(calendar=self.calendar).update(next_at=timezone.now())

    def book(self, day: int) -> Any:
        return book(self.tenant, self.resource, **times(day, DAYTIME))

    def free(self, day: int) -> Any:
        """(whether the hour of that day is offered, the warnings beside it), as of now."""
        span = times(day, DAYTIME)
        body = {"resources": [self.resource["id"]], "length": "1 hour"}
        body |= {"from": span["start"], "to": span["end"]}
        answer = self.tenant.post("/availability", body)
        assert answer.status == 200, answer.json
        return [record["start"] for record in answer.data], answer.json.get("warnings", [])

    def record(self) -> Any:
        return self.tenant.get(f"/calendars/{self.calendar.id}").data

    def add_event(self, name: str, day: int) -> None:
        """Made there by another client."""
        start, end = span_of(times(day, DAYTIME))
        lines = [f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{end:%Y%m%dT%H%M%SZ}"]
        self.home.put(f"{name}.ics", one(*lines, f"SUMMARY:{name}", uid=name))


# In each run what a gateway answers, and what a server answers that is asked too often.
ALWAYS = (("real", "garbage"), ("memory", "429"))


@pytest.mark.parametrize(
    ("place", "way"),
    [
        *ALWAYS,
        *(
            pytest.param(place, way, marks=pytest.mark.deep)
            for place in ("real", "memory")
            for way in WAYS
            if (place, way) not in ALWAYS
        ),
    ],
    indirect=["place"],
)
def test_provider_outage_of_an_hour(
    way: str, place: Place, tenant: Tenant, frozen_clock: Any
) -> None:
    code = WAYS[way][1]
    ada, ben = (Person(tenant, *one) for one in zip(("Ada", "Ben"), place.homes, strict=True))
    ada.add_event("lunch", 5)
    stays, moves, ends = (ada.book(day) for day in (1, 2, 3))
    for _ in run_workers(frozen_clock, 2):
        pass
    assert names_in(ada.home) == sorted([*map(name_of, (stays, moves, ends)), "lunch.ics"])
    known = text_of(ada.home, stays)
    synced = ada.record()["synced_at"]

    place.fail(way)
    begun = timezone.now()
    theirs = []
    calls = place.count_calls()
    for minute in run_workers(frozen_clock, 60):
        if minute == 3:
            ada.add_event("dentist", 6)
            move(tenant, moves, **times(12, DAYTIME))
            act(tenant, ends, "cancel")
            made = ada.book(4)
        if minute % 10 == 5:
            theirs.append(ben.book(10 + minute))
        # Answered from what is known, with a word about it where that is too old.
        counted = place.count_calls()
        offered, warnings = ada.free(5)
        is_old = timezone.now() - datetime.fromisoformat(synced) > timedelta(hours=1)
        assert (offered, len(warnings)) == ([], is_old)
        assert place.count_calls() == counted

    # It is said what is wrong, since when; nothing was taken for done, nor given up; few calls.
    problem = ada.record()["problem"]
    assert (problem["code"], problem["text"]) == (code, PROVIDER_ERRORS[code])
    since = datetime.fromisoformat(problem["since"])
    assert begun <= since <= begun + timedelta(minutes=6)
    assert ada.record()["provider_sync"] is True
    assert ada.record()["synced_at"] == synced
    waiting = Delivery.objects.open().filter(type="calendar")
    of = {str(row.booking_id): (row.state, row.tries) for row in waiting}
    assert of == {one["id"]: ("scheduled", 4) for one in (moves, ends, made)}
    assert {row.reason for row in waiting} == place.reasons(way)
    assert place.count_calls() - calls <= 30
    # Nobody else has noticed.
    assert (ben.record()["problem"], len(names_in(ben.home))) == (None, 6)
    others = Delivery.objects.exclude(id__in=waiting)
    assert set(others.values_list("state", "type")) <= {
        ("delivered", "calendar"),
        ("delivered", "email"),
        ("scheduled", "email"),
    }
    late = [row for row in others if row.finished_at and row.finished_at > row.due_at + SOON]
    assert late == []

    # Back: within the longest pause of a look, without anybody's doing.
    place.restore()
    for _ in run_workers(frozen_clock, 61):
        if ada.record()["problem"] is None and not waiting.exists():
            break

    assert ada.record()["problem"] is None
    assert names_in(ada.home) == sorted(
        [*map(name_of, (stays, moves, made)), "dentist.ics", "lunch.ics"]
    )
    assert text_of(ada.home, stays) == known
    assert shown(text_of(ada.home, moves))[1:3] == span_of(times(12, DAYTIME))
    assert shown(text_of(ada.home, made))[1:3] == span_of(times(4, DAYTIME))
    assert ada.free(6) == ([], [])
    assert copies(calendar=ada.calendar) == [
        ("written", ""),
        ("written", ""),
        ("removed", ""),
        ("written", ""),
    ]
    assert [tenant.get(f"/bookings/{one['id']}").data["state"] for one in (stays, moves, made)] == [
        "confirmed"
    ] * 3
    # Four tries were met by the trouble, the fifth went through.
    tries = Delivery.objects.filter(type="calendar", tries__gt=1).values_list("state", "tries")
    assert list(tries) == [("delivered", 5)] * 3
