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
from typing import Any

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
from bookings.services import public_hold_limits
from tests.bookings.booking_drafts import MARTY, NINE
from tests.world import Answer, Tenant

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


def meet_between_read_and_count(monkeypatch: pytest.MonkeyPatch, kind: str, clients: int) -> None:
    """All have read the counts of `kind` before the first one raises them."""
    meeting = Barrier(clients)

    def read_and_count(
        app: App, subjects: Sequence[tuple[str, str]], now: datetime, *, times: int = 1
    ) -> None:
        if kind in dict(subjects):
            check_subjects(app, subjects, now)
            meeting.wait(SECONDS)
        with suppress(LimitReached):
            count_subjects(app, subjects, now, times=times)

    monkeypatch.setattr(public_booking_checks, "count_subjects", read_and_count)


def meet_after_the_check_of_open_bookings(monkeypatch: pytest.MonkeyPatch, clients: int) -> None:
    """All have checked before the first one commits."""
    meeting, check = Barrier(clients), public_booking_checks.check_open_bookings

    def check_and_meet(*args: Any, **kwargs: Any) -> None:
        check(*args, **kwargs)
        meeting.wait(SECONDS)

    monkeypatch.setattr(public_booking_checks, "check_open_bookings", check_and_meet)


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
def test_concurrent_requests_stay_within_the_limit(tenant: Tenant, limit: str) -> None:
    statuses = race_of_one_address(tenant, limit)

    assert (statuses[201] + statuses[202], statuses[429]) == (1, 1)


@pytest.fixture
def no_tally_of_deliveries() -> Iterator[None]:
    """Two connections may count in the same row, which would make them wait for each other."""
    change = "ALTER TABLE notifications_delivery {} TRIGGER tally_deliveries"
    with connection.cursor() as cursor:
        cursor.execute(change.format("DISABLE"))
    yield
    with connection.cursor() as cursor:
        cursor.execute(change.format("ENABLE"))


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch, no_tally_of_deliveries: None) -> None:
    monkeypatch.setattr(public_booking_checks, "wait_for_turn", lambda name: None)


@pytest.mark.usefixtures("no_waiting")
def test_control_without_lock_one_address_passes_its_limit_of_a_day(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_between_read_and_count(monkeypatch, PER_EMAIL, clients=2)

    assert race_of_one_address(tenant, PER_EMAIL) == {201: 1, 202: 1}


@pytest.mark.usefixtures("no_waiting")
def test_control_without_lock_one_address_passes_its_limit_of_open_bookings(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_after_the_check_of_open_bookings(monkeypatch, clients=2)

    assert race_of_one_address(tenant, OPEN_PER_EMAIL) == {201: 1, 202: 1}


# --- Holds of a minute ----------------------------------------------------------------------------
@pytest.fixture
def two_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, HOLDS, LIMITS[HOLDS]._replace(default=2))  # type: ignore[arg-type]


def race_for_holds(tenant: Tenant) -> Counter[int]:
    """Four addresses hold a time of a project each: they have no other lock in common."""

    def hold(number: int) -> Callable[[], Answer]:
        caller = tenant.widget()
        caller.client.defaults["REMOTE_ADDR"] = f"192.0.2.{number}"
        resource = tenant.make_resource(f"Resource {number}")["id"]
        project = tenant.make_project(resource, name=f"Project {number}")["id"]
        return lambda: caller.post("/bookings/reserve", {"project_id": project, **NINE})

    return race([hold(number) for number in range(4)])


@pytest.mark.usefixtures("two_holds")
def test_concurrent_holds_stay_within_their_limit(tenant: Tenant) -> None:
    assert race_for_holds(tenant) == {201: 2, 429: 2}


@pytest.mark.usefixtures("two_holds")
def test_control_with_an_early_read_holds_pass_their_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_between_read_and_count(monkeypatch, HOLDS, clients=4)
    # The check of the share would let one through after the other.
    monkeypatch.setattr(public_hold_limits, "wait_for_turn", lambda name: None)

    assert race_for_holds(tenant) == {201: 4}
