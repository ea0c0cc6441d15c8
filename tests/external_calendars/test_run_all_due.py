"""Several calendars at once, several workers at once: on a real database, in real threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from availability.models import Calendar, Event
from external_calendars import tasks
from external_calendars.models import Connection
from external_calendars.providers.base import ProviderError
from external_calendars.sync import run_all_due
from external_calendars.sync.leases import SYNC_WAKEUP
from external_calendars.sync.run_all_due import sync_due_calendars
from notifications.outbox import poller
from tests.external_calendars.accounts import BACK, allow_redirects, come_back
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.icalendars import one
from tests.external_calendars.memory import Memory, connect, memory
from tests.external_calendars.test_mirror import _at_home, book
from tests.world import Tenant

__all__ = ["_at_home", "memory"]

# SQLite's database of the tests is in memory: threads that share it do not wait for each other.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


@pytest.fixture
def busy(memory: Memory) -> Memory:
    """Thirty events, handed out by ten."""
    for number in range(30):
        memory.put(f"/{number}", one("DTSTART:20301201T100000Z", "DURATION:PT1H", uid=f"{number}"))
    memory.batch = 10
    return memory


def test_run_syncs_all_due_calendars(tenant: Tenant, busy: Memory) -> None:
    theirs = [connect(tenant.make_resource(name)["id"]) for name in ("Ada", "Bob", "Cid")]
    Connection.objects.filter(pk=theirs[2].pk).update(next_at=None)

    assert sync_due_calendars() == 2

    synced = Calendar.objects.exclude(synced_at=None).values_list("id", flat=True)
    assert set(synced) == {theirs[0].pk, theirs[1].pk}
    assert Event.objects.count() == 60
    assert sync_due_calendars() == 0


def test_slow_server_does_not_delay_others(tenant: Tenant, busy: Memory) -> None:
    """The first waits until the second is synced."""
    ada, bob = (connect(tenant.make_resource(name)["id"]) for name in ("Ada", "Bob"))
    waiting = threading.Event()
    fetch = busy.fetch

    def slow(access: Any, hrefs: Any, *, deadline: float) -> Any:
        if threading.current_thread() is first[0]:
            assert waiting.wait(20)
        yield from fetch(access, hrefs, deadline=deadline)
        if threading.current_thread() is not first[0]:
            waiting.set()

    first: list[threading.Thread] = []
    look = busy.list_changes

    def noted(*args: Any, **given: Any) -> Any:
        first.append(threading.current_thread())
        return look(*args, **given)

    busy.list_changes, busy.fetch = noted, slow  # type: ignore[method-assign]

    assert sync_due_calendars() == 2
    assert Calendar.objects.exclude(synced_at=None).count() == 2
    assert {ada.pk, bob.pk} == set(Event.objects.values_list("calendar", flat=True))


def test_two_workers_sync_one_calendar_once(tenant: Tenant, busy: Memory) -> None:
    connect(tenant.make_resource()["id"])
    barrier = threading.Barrier(2, timeout=20)

    def work() -> int:
        try:
            barrier.wait()
            return sync_due_calendars()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(work) for _ in range(2)]
        assert sorted(one.result() for one in found) == [0, 1]

    assert busy.asked() == ["look", "fetch 10", "fetch 10", "fetch 10"]
    assert Event.objects.count() == 30


def test_run_out_of_time_continues_in_the_next_run(
    tenant: Tenant, busy: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect(tenant.make_resource()["id"])
    monkeypatch.setattr(run_all_due, "MAX_SECONDS", 0.0)
    assert sync_due_calendars() == 0
    stop = threading.Event()
    busy.before_batch = stop.set
    monkeypatch.setattr(run_all_due, "MAX_SECONDS", 20.0)

    assert sync_due_calendars(stopping=stop.is_set) == 1

    assert Event.objects.count() == 10
    connection.refresh_from_db()
    assert (connection.done, connection.total, connection.lease_token) == (10, 30, None)
    assert sync_due_calendars() == 1
    assert Event.objects.count() == 30


def test_task_and_command_run_the_sync(
    tenant: Tenant, busy: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(tasks, "publish_wakeup", sent.append)
    connection = connect(tenant.make_resource()["id"])

    tasks.sync_calendars()
    tasks.sync_calendars()

    assert sent == [SYNC_WAKEUP]
    assert poller.Poll("calendar", tasks.sync_neglected_calendars) in list(poller.polls)
    busy.put("/31", one("DTSTART:20301201T100000Z", "DURATION:PT1H", uid="31"))
    tasks.sync_neglected_calendars()
    assert Event.objects.count() == 30
    Connection.objects.filter(pk=connection.pk).update(next_at="2026-01-01T00:00:00Z")
    tasks.sync_neglected_calendars()
    assert Event.objects.count() == 31


def test_failing_calendar_does_not_stop_others(tenant: Tenant, busy: Memory) -> None:
    good, bad = (connect(tenant.make_resource(name)["id"]) for name in ("Ada", "Bob"))
    Connection.objects.filter(pk=bad.pk).update(address="damaged")

    assert sync_due_calendars() == 2

    bad.refresh_from_db()
    assert (bad.problem, bad.failures) == ("secret_unreadable", 1)
    assert Event.objects.filter(calendar=good.pk).count() == 30
    busy.trouble = ProviderError("unreachable")
    assert sync_due_calendars() == 0


# --- Writes go first ------------------------------------------------------------------------------
@pytest.fixture
def many_accounts(tenant: Tenant, google: FakeGoogle) -> list[Any]:
    """Resources with connected calendars of fifty accounts, which are all due."""
    allow_redirects(tenant)
    people = []
    for number in range(50):
        email = f"person{number}@example.com"
        google.add_account(email)
        person = tenant.make_resource(f"Person {number}", email=email)
        body = {"provider": "google", "resource_id": person["id"], "redirect_url": BACK}
        url = tenant.post("/calendars/connect", body).data["url"]
        assert come_back(tenant, google.consent(url, email)).keys() == {"calendar_id"}
        people.append(person)
    google.gateway.forget()
    return people


def requests_in_order(google: FakeGoogle) -> list[str]:
    """`POST` of a write, `GET` of a sync; of a calendar, a second one follows the new channel."""
    found = google.gateway.requests_to("/events$")
    return [request.method for request in found]


def test_write_starts_before_queued_syncs(
    tenant: Tenant, google: FakeGoogle, many_accounts: list[Any]
) -> None:
    book(tenant, many_accounts[-1])

    sync_due_calendars()

    found = requests_in_order(google)
    assert (found.index("POST"), found.count("POST"), found.count("GET")) == (0, 1, 100)


def test_write_starts_before_the_rest_of_queued_syncs(
    tenant: Tenant,
    google: FakeGoogle,
    many_accounts: list[Any],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A booking that is made while the first syncs run."""
    settings.CALENDAR_THREADS = 2
    claim = run_all_due.claim_connections
    claims = []

    def claim_and_book(limit: int) -> Any:
        claims.append(limit)
        if len(claims) == 2:
            book(tenant, many_accounts[-1])
        return claim(limit)

    monkeypatch.setattr(run_all_due, "claim_connections", claim_and_book)

    sync_due_calendars()

    found = requests_in_order(google)
    assert found.count("GET") == 100
    # The syncs of the first two claims may come before it.
    assert found.index("POST") <= 4
