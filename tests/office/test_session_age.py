"""Sessions end when nobody uses them, and after eight hours."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps_config import tasks
from apps_config.models import Account, SecurityEvent
from apps_config.security_events import record_event
from tests.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases, pytest.mark.usefixtures("clock")]
PASSWORD = "harbour-lights-7"
HOUR = 3600


@pytest.fixture
def client() -> Client:
    Account.objects.create_superuser("staff@example.com", PASSWORD)
    return log_in()


def log_in(client: Client | None = None) -> Client:
    client = client or Client()
    client.post("/admin/login/", {"username": "staff@example.com", "password": PASSWORD})
    return client


def may_enter(client: Client) -> bool:
    return client.get("/admin/account/sessions/").status_code == 200


def test_a_session_ends_after_two_hours_without_a_request(client: Client, clock: Any) -> None:
    found = [may_enter(client)]
    for seconds in (2 * HOUR - 1, 2 * HOUR - 1, 2 * HOUR):
        clock.shift(seconds)
        found.append(may_enter(client))

    assert found == [True, True, True, False]


def test_a_session_ends_eight_hours_after_the_log_in(client: Client, clock: Any) -> None:
    found = []
    for _ in range(9):
        found.append(may_enter(client))
        clock.shift(HOUR)

    assert found == [True] * 8 + [False]


def test_log_in_restarts_the_eight_hours(client: Client, clock: Any) -> None:
    for _ in range(7):
        may_enter(client)
        clock.shift(HOUR)
    log_in(client)
    clock.shift(1.5 * HOUR)

    assert may_enter(client) is True


def test_session_is_stored_every_five_minutes(client: Client, clock: Any) -> None:
    may_enter(client)
    stored = []
    for _ in range(11):
        clock.shift(60)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            may_enter(client)
        writes = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
        stored.append(bool(writes))

    assert stored == [False, False, False, False, True] * 2 + [False]


def test_session_row_has_its_expiry(client: Client) -> None:
    may_enter(client)

    assert Session.objects.get().expire_date == NOW + timedelta(hours=2)


def test_pages_work_while_sessions_cannot_be_stored(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(store: SessionStore, must_create: bool = False) -> None:
        raise OperationalError("cannot execute UPDATE in a read-only transaction")

    monkeypatch.setattr(SessionStore, "save", fail)

    assert may_enter(client) is True


def test_ended_sessions_and_old_events_are_purged(
    client: Client, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "database_now", timezone.now)
    record_event(SecurityEvent.LOG_OUT, actor="old")
    clock.shift(400 * 24 * HOUR + 1)
    log_in()
    rows = [Session.objects.count(), UserSession.objects.count()]

    tasks.purge_sessions_and_security_events()

    assert (rows, Session.objects.count(), UserSession.objects.count()) == ([2, 1], 1, 1)
    assert not SecurityEvent.objects.filter(actor="old").exists()


def test_listed_sessions_are_purged(client: Client, clock: Any) -> None:
    clock.shift(3 * HOUR)
    before = UserSession.objects.count()

    tasks.purge_sessions_and_security_events()

    assert (before, UserSession.objects.count()) == (1, 0)
