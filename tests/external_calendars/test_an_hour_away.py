"""A server that is away for an hour, in each of its ways: what is said of it, what goes on beside
it, and what stands where when it is back. Real servers, and a clock of the test's."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from external_calendars import claims
from external_calendars import sync as sync_module
from external_calendars.claims import claim
from external_calendars.models import Connection
from external_calendars.providers.base import TROUBLES
from external_calendars.sync import sync
from notifications import pump, queue, results
from notifications.models import Delivery
from notifications.pump import run_pump
from tests.external_calendars.front import Answer
from tests.external_calendars.icalendars import one
from tests.external_calendars.servers import CalendarServer
from tests.external_calendars.test_writing import _at_home, act, book, move, span_of, times
from tests.external_calendars.test_writing_servers import name_of, names_in, text_of
from tests.external_calendars.written import connect, copies, shown
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
    "401": (always(401), "unauthorized", {TROUBLES["unauthorized"]}),
    "412": (always(412), "server_error", {"The server answered with 412."}),
    "429": (always(429, Retry_After="600"), "rate_limited", {TROUBLES["rate_limited"]}),
    "500": (always(500), "server_error", {"The server answered with 500."}),
    "garbage": (garbage, "bad_answer", {TROUBLES["bad_answer"], "The server answered with 200."}),
    "200 MB": (flood, "too_large", {"The answer is too large."}),
    "redirect": (
        always(302, Location="http://10.0.0.1/"),
        "bad_answer",
        {"The server answered with 302."},
    ),
    "hangs up": (hang_up, "unreachable", {"The connection was closed before an answer came."}),
}


@pytest.fixture
def still(clock: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock, which the database's own follows here."""
    for module in (claims, sync_module, queue, pump, results):
        monkeypatch.setattr(module, "database_now", timezone.now)
    monkeypatch.setattr(queue, "_take_turn", lambda kind: timezone.now())
    return clock


def work(still: Any, minutes: int) -> Iterator[int]:
    """What workers do in each of so many minutes, after what the test does in it."""
    for minute in range(minutes):
        yield minute
        for connection in claim(10):
            sync(connection)
        due = Delivery.objects.open().filter(next_at__lte=timezone.now())
        for kind in due.order_by("type").values_list("type", flat=True).distinct():
            run_pump(kind)
        still.shift(60)


class Person:
    """A resource with one calendar elsewhere."""

    def __init__(self, tenant: Tenant, name: str, server: CalendarServer) -> None:
        self.tenant, self.home = tenant, server.make_calendar()
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
        return [one["start"] for one in answer.data], answer.json.get("warnings", [])

    def record(self) -> Any:
        return self.tenant.get(f"/calendars/{self.calendar.id}").data

    def has(self, name: str, day: int) -> None:
        """Made there by another client."""
        start, end = span_of(times(day, DAYTIME))
        lines = [f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{end:%Y%m%dT%H%M%SZ}"]
        self.home.put(f"{name}.ics", one(*lines, f"SUMMARY:{name}", uid=name))


@pytest.mark.parametrize("way", WAYS)
def test_an_hour_away(
    way: str, tenant: Tenant, radicale: CalendarServer, xandikos: CalendarServer, still: Any
) -> None:
    answer, code, said = WAYS[way]
    ada, ben = Person(tenant, "Ada", radicale), Person(tenant, "Ben", xandikos)
    ada.has("lunch", 5)
    stays, moves, ends = (ada.book(day) for day in (1, 2, 3))
    for _ in work(still, 2):
        pass
    assert names_in(ada.home) == sorted([*map(name_of, (stays, moves, ends)), "lunch.ics"])
    known = text_of(ada.home, stays)
    in_step = ada.record()["synced_at"]

    radicale.front.answer = answer
    begun = timezone.now()
    theirs = []
    with radicale.front.counted() as asked:
        for minute in work(still, 60):
            if minute == 3:
                ada.has("dentist", 6)
                move(tenant, moves, **times(12, DAYTIME))
                act(tenant, ends, "cancel")
                made = ada.book(4)
            if minute % 10 == 5:
                theirs.append(ben.book(10 + minute))
            # Answered from what is known, with a word about it where that is too old.
            counted = len(radicale.front.calls)
            offered, warnings = ada.free(5)
            is_old = timezone.now() - datetime.fromisoformat(in_step) > timedelta(hours=1)
            assert (offered, len(warnings)) == ([], is_old)
            assert len(radicale.front.calls) == counted

    # It is said what is wrong, since when; nothing was taken for done, nor given up; few calls.
    problem = ada.record()["problem"]
    assert (problem["code"], problem["text"]) == (code, TROUBLES[code])
    since = datetime.fromisoformat(problem["since"])
    assert begun <= since <= begun + timedelta(minutes=6)
    assert ada.record()["provider_sync"] is True
    assert ada.record()["synced_at"] == in_step
    waiting = Delivery.objects.open().filter(type="calendar")
    of = {str(row.booking_id): (row.state, row.tries) for row in waiting}
    assert of == {one["id"]: ("scheduled", 4) for one in (moves, ends, made)}
    assert {row.reason for row in waiting} == said
    assert len(asked) <= 30
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
    radicale.front.answer = lambda call: None
    for _ in work(still, 61):
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
