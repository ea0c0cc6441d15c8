"""The last question in a race: real client processes, real web processes, a calendar elsewhere.

The question is asked before any lock is taken, so its answer may be old by the time that it counts.
Each race has its control: the same without what protects, in which it does go wrong.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bookings.conftest import FAULTY, ON_POSTGRESQL, ON_SQLITE
from tests.bookings.race_tenant import DAY, DROP_GUARD, LiveTenant, count_outcomes, count_overlaps
from tests.bookings.race_tenant import span as hours
from tests.external_calendars.front import Answer
from tests.external_calendars.icalendars import one
from tests.external_calendars.servers import PASSWORD, CalendarServer, Collection
from tests.services import Service
from tests.sinks import Call

pytestmark = pytest.mark.both_databases

CLIENTS = 12
FREE = b'<multistatus xmlns="DAV:"/>'
SYNC = """
from django.core.management import call_command
call_command("sync_calendars", calendar="{calendar}")
"""


def is_freebusy_query(call: Call) -> bool:
    return b"calendar-query" in call.body


@pytest.fixture(scope="module")
def asking_tenant(start_service: Callable[..., Service]) -> LiveTenant:
    """In a service that reaches the loopback, and obeys the header `Fault`."""
    return LiveTenant(
        start_service(
            wsgi=FAULTY, threads=16, WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8", WEBHOOK_HTTPS_ONLY=0
        )
    )


class Asked:
    """A resource whose calendar lies elsewhere, in a project that has it asked, or not."""

    def __init__(self, tenant: LiveTenant, home: Collection, *, is_asked: bool = True) -> None:
        self.tenant, self.home = tenant, home
        made = tenant.make_resource()
        self.resource, self.own_calendar = made["id"], made["calendars"][0]["id"]
        self.project = tenant.make_project(
            [self.resource], "roundrobin_random", settings={"check_external": is_asked}
        )
        body = {"resource_id": self.resource, "provider": "caldav", "address": home.url}
        body |= {"username": home.user, "password": PASSWORD}
        self.calendar = tenant.call("POST", "/calendars", body).data["id"]
        tenant.service.run(SYNC.format(calendar=self.calendar))

    def race(self, *starts: float) -> Counter[str]:
        """A client for each start."""
        books = [self.tenant.booking(project_id=self.project, **hours(start)) for start in starts]
        return count_outcomes(self.tenant.race_each(books))

    @property
    def held(self) -> int:
        return len(self.tenant.held([self.resource]))

    @property
    def overlaps(self) -> int:
        return count_overlaps(self.tenant.held([self.resource]))


@pytest.fixture
def home(radicale: CalendarServer) -> Collection:
    return radicale.make_calendar()


@pytest.fixture
def all_at_once(home: Collection) -> Iterator[threading.Barrier]:
    """No question is answered before all have come: then every answer is "free"."""
    barrier = threading.Barrier(CLIENTS, timeout=2.5)

    def answer(call: Call) -> Answer | None:
        if not is_freebusy_query(call):
            return None
        barrier.wait()
        return Answer(207, FREE)

    home.server.front.answer = answer
    yield barrier
    home.server.front.forget()


# --- All were told that it is free ----------------------------------------------------------------
def test_concurrent_bookings_after_a_free_response_book_once(
    asking_tenant: LiveTenant, home: Collection, all_at_once: threading.Barrier
) -> None:
    asked = Asked(asking_tenant, home)

    outcomes = asked.race(*[10] * CLIENTS)

    assert outcomes == {"201": 1, "409 slot_taken": CLIENTS - 1}
    assert (asked.held, asked.overlaps) == (1, 0)
    assert not all_at_once.broken


def test_control_without_locks_and_guard_several_are_booked(
    asking_tenant: LiveTenant, home: Collection, all_at_once: threading.Barrier, tmp_path: Path
) -> None:
    for statement in DROP_GUARD[asking_tenant.is_sqlite]:
        asking_tenant.rows(statement)
    try:
        asked = Asked(asking_tenant.with_faults(unlocked=True, meet=str(tmp_path)), home)
        asked.race(*[10] * CLIENTS)
        assert asked.overlaps > 0
    finally:
        # What overlaps by now can be guarded no more.
        asking_tenant.rows("UPDATE availability_event SET exclusive = FALSE")
        is_sqlite = asking_tenant.is_sqlite
        for statement in ON_SQLITE if is_sqlite else ON_POSTGRESQL:
            asking_tenant.rows(statement)


# --- Its owner is quicker -------------------------------------------------------------------------
def put_congress(home: Collection) -> None:
    day = f"{DAY:%Y%m%d}"
    home.put("congress.ics", one(f"DTSTART:{day}T000000Z", "DURATION:P2D", uid="congress"))


def congress_after_five_queries(home: Collection) -> Callable[[Call], Answer | None]:
    """The owner's congress stands there from the sixth question on, and not before."""
    turn, count = threading.Lock(), iter(range(1, 1000))

    def answer(call: Call) -> Answer | None:
        if not is_freebusy_query(call):
            return None
        with turn:
            number = next(count)
            if number == 6:
                put_congress(home)
            return Answer(207, FREE) if number <= 5 else None

    return answer


def test_booking_after_the_owner_became_busy_is_refused(
    asking_tenant: LiveTenant, home: Collection
) -> None:
    """An hour for each, so that nothing but the congress is in anybody's way."""
    asked = Asked(asking_tenant, home)
    home.server.front.answer = congress_after_five_queries(home)

    with home.server.front.counted() as requests:
        outcomes = asked.race(*range(CLIENTS))

    assert outcomes == {"201": 5, "409 slot_taken": CLIENTS - 5}
    assert (asked.held, asked.overlaps) == (5, 0)
    assert len([line for line in requests if line.startswith("REPORT")]) == CLIENTS


def test_control_without_check_all_are_booked(asking_tenant: LiveTenant, home: Collection) -> None:
    asked = Asked(asking_tenant, home, is_asked=False)
    put_congress(home)

    assert asked.race(*range(CLIENTS)) == {"201": CLIENTS}
    assert asked.held == CLIENTS


@pytest.mark.parametrize("is_entered", [True, False])
def test_local_event_created_during_the_check(
    asking_tenant: LiveTenant, home: Collection, is_entered: bool
) -> None:
    """Told "free", when its time was taken here before the answer came; and the control, in which
    it was not."""
    asked = Asked(asking_tenant, home)
    busy = {"calendar_id": asked.own_calendar, "what": "Congress", **hours(10)}

    def answer(call: Call) -> Answer | None:
        if not is_freebusy_query(call):
            return None
        if is_entered:
            assert asking_tenant.call("POST", "/events", busy).status == 201
        return Answer(207, FREE)

    home.server.front.answer = answer

    outcomes = asked.race(10)

    assert outcomes == ({"409 slot_taken": 1} if is_entered else {"201": 1})
    assert asked.held == (0 if is_entered else 1)
