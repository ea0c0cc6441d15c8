"""Limits of what public callers make hold for requests at the same time, too.

Each race has its control: without the lock, or with a count that is read before it is raised, the
limit is passed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from threading import Barrier

import pytest
from django.db import connection, connections

from apps_config.models import App
from apps_config.public_limits import (
    HOLDS,
    LIMITS,
    OPEN_PER_EMAIL,
    PER_EMAIL,
    LimitReached,
    check_subjects,
    count_subjects,
)
from bookings import public_booking_checks
from tests.bookings.booking_drafts import MARTY, NINE, span
from tests.world import Answer, Caller, Tenant

pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.postgresql,  # SQLite has one writer at a time
    pytest.mark.django_db(transaction=True),
]
SECONDS = 30  # ends a test that fails


def race(requests: Sequence[Callable[[], Answer]]) -> Counter[int]:
    """The statuses of requests at the same time."""

    def send(request: Callable[[], Answer]) -> int:
        try:
            return request().status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(requests)) as pool:
        return Counter(pool.map(send, requests))


def meet_before_the_count(monkeypatch: pytest.MonkeyPatch, wanted: str, clients: int) -> None:
    """Take no lock and read the wanted counts before they are raised. All have written by then."""
    meeting = Barrier(clients)

    def read_and_count(app: App, subjects: Sequence[tuple[str, str]], now: datetime) -> None:
        if wanted in dict(subjects):
            check_subjects(app, subjects, now)
            meeting.wait(SECONDS)
        with suppress(LimitReached):
            count_subjects(app, subjects, now)

    monkeypatch.setattr(public_booking_checks, "count_subjects", read_and_count)
    monkeypatch.setattr(public_booking_checks, "wait_for_turn", lambda name: None)


def caller_from(tenant: Tenant, address: str) -> Caller:
    caller = tenant.widget()
    caller.client.defaults["REMOTE_ADDR"] = address
    return caller


# --- An e-mail address ----------------------------------------------------------------------------
def race_of_one_address(tenant: Tenant, limit: str) -> Counter[int]:
    """A booking, and one that waits for its code, of an address that may have one of them.

    Two bookings, or two codes, would also wait for another lock.
    """
    tenant.set_public_limits(**{limit: 1})
    projects = [
        tenant.make_project(
            tenant.make_resource(name)["id"],
            name=name,
            booking={"what": "Check-up"},
            settings={"verify_email": verifies},
        )["id"]
        for name, verifies in (("Ada", False), ("Bob", True))
    ]

    def book(project: str) -> Callable[[], Answer]:
        body = {"project_id": project, "customer": MARTY, **NINE}
        widget = tenant.widget()
        return lambda: widget.post("/bookings", body)

    return race([book(project) for project in projects])


@pytest.mark.parametrize("limit", [PER_EMAIL, OPEN_PER_EMAIL])
def test_one_address_stays_within_its_limit(tenant: Tenant, limit: str) -> None:
    statuses = race_of_one_address(tenant, limit)

    assert (statuses[201] + statuses[202], statuses[429]) == (1, 1)


@pytest.fixture
def no_tally_of_deliveries() -> Iterator[None]:
    """Two connections may count in the same row, which would make them wait for each other."""
    change = "ALTER TABLE notifications_delivery {} TRIGGER tally_deliveries_insert"
    with connection.cursor() as cursor:
        cursor.execute(change.format("DISABLE"))
    yield
    with connection.cursor() as cursor:
        cursor.execute(change.format("ENABLE"))


@pytest.mark.usefixtures("no_tally_of_deliveries")
@pytest.mark.parametrize("limit", [PER_EMAIL, OPEN_PER_EMAIL])
def test_control_without_lock_one_address_passes_its_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    meet_before_the_count(monkeypatch, PER_EMAIL, clients=2)

    assert race_of_one_address(tenant, limit) == {201: 1, 202: 1}


# --- Holds of a minute ----------------------------------------------------------------------------
@pytest.fixture
def two_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, HOLDS, LIMITS[HOLDS]._replace(default=2))  # type: ignore[arg-type]


def race_for_holds(tenant: Tenant) -> Counter[int]:
    """Four addresses hold a day of a resource each: they have no other lock in common."""
    resources = [tenant.make_resource(name)["id"] for name in ("Ada", "Bob", "Cid", "Dan")]
    project = tenant.make_project(*resources)["id"]

    def hold(number: int, resource: str) -> Callable[[], Answer]:
        caller = caller_from(tenant, f"192.0.2.{number}")
        time = span("09:00", "10:00", f"2026-11-{23 + number}")
        body = {"project_id": project, "resource_id": resource, **time}
        return lambda: caller.post("/bookings/reserve", body)

    return race([hold(number, resource) for number, resource in enumerate(resources)])


@pytest.mark.usefixtures("two_holds")
def test_holds_stay_within_their_limit(tenant: Tenant) -> None:
    assert race_for_holds(tenant) == {201: 2, 429: 2}


@pytest.mark.usefixtures("two_holds")
def test_control_with_an_early_read_holds_pass_their_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_before_the_count(monkeypatch, HOLDS, clients=4)

    assert race_for_holds(tenant) == {201: 4}
