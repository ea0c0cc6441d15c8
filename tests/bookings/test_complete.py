"""The service completes a live booking one hour after its end (section 5, Graphs)."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from apps_config.models import App
from bookings import tasks
from bookings.models import Booking
from bookings.services import (
    Transition,
    complete_ended,
    expire_bookings,
    transition_log,
    transitions,
)
from common.db.sql import database_now
from notifications.models import Delivery
from tests.bookings.booking_drafts import MONDAY, NINE, act, busy_times, span, steps, whole
from tests.world import Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DUE = at(f"{MONDAY} 11:00")  # an hour after ten
SECOND = timedelta(seconds=1)


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource()


@pytest.fixture
def booking(tenant: Tenant, ada: Any) -> Any:
    return tenant.book(resource_id=ada["id"], **NINE).data


def states() -> list[str]:
    return list(Booking.objects.order_by("event__start").values_list("state", flat=True))


# --- When -----------------------------------------------------------------------------------------
def test_booking_completes_one_hour_after_its_end(
    tenant: Tenant, ada: Any, booking: Any, clock: Any
) -> None:
    clock.move_to(DUE)

    done = complete_ended(now=DUE)

    found = whole(tenant, booking)
    assert (done, found["state"], found["completed"]) == (1, "completed", True)
    assert found["updated_at"] == "2026-11-23T11:00:00+0000"
    assert found["logs"][1] == {
        "from_state": "confirmed",
        "to_state": "completed",
        "action": "complete",
        "actor": "",
        "source": "timer",
        "message": "",
        "created_at": "2026-11-23T11:00:00+0000",
    }
    assert busy_times(tenant, ada["id"]) == ["00:00-11:00"]  # the past, not the event


def test_booking_does_not_complete_earlier(booking: Any) -> None:
    assert (complete_ended(now=DUE - SECOND), states()) == (0, ["confirmed"])


def test_booking_completes_once(tenant: Tenant, booking: Any) -> None:
    done = [complete_ended(now=DUE) for _ in range(2)]

    assert done == [1, 0]
    assert steps(tenant, booking)[1:] == [("confirmed", "complete", "completed")]


def test_booking_completes_long_after_its_end(booking: Any) -> None:
    assert complete_ended(now=DUE + timedelta(days=400)) == 1


# --- What -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "actions", "final"),
    [
        ({}, [], "completed"),
        ({"action": "create"}, [], "initialized"),
        ({"action": "create"}, ["confirm"], "completed"),
        ({}, ["cancel"], "cancelled"),
        ({}, ["cancel_by_customer"], "cancelled_by_customer"),
        ({"graph": "confirm_decline"}, [], "tentative"),
        ({"graph": "confirm_decline"}, ["decline"], "declined"),
        ({"graph": "confirm_decline"}, ["confirm"], "completed"),
        ({"graph": "confirm_decline"}, ["confirm", "cancel"], "cancelled"),
    ],
)
def test_only_live_bookings_complete(
    tenant: Tenant, ada: Any, given: dict[str, Any], actions: list[str], final: str
) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE, **given).data
    for action in actions:
        act(tenant, booking, action)

    done = complete_ended(now=DUE)

    assert (done, states()) == (int(final == "completed"), [final])


def test_booking_completed_by_hand_is_skipped(tenant: Tenant, booking: Any) -> None:
    act(tenant, booking, "complete")

    assert complete_ended(now=DUE) == 0
    assert steps(tenant, booking)[1:] == [("confirmed", "complete", "completed")]


def test_moved_booking_completes_after_its_new_time(tenant: Tenant, booking: Any) -> None:
    tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:00", "12:00"))

    done = [complete_ended(now=DUE + timedelta(hours=n)) for n in (0, 1, 2)]

    assert done == [0, 0, 1]


def test_booking_moved_before_its_lock_is_skipped(
    tenant: Tenant, booking: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_bookings = transitions.lock_bookings

    def lock_late(app: App, ids: list[uuid.UUID], **options: bool) -> list[Booking]:
        tenant.post(f"/bookings/{booking['id']}/reschedule", span("14:00", "15:00"))
        monkeypatch.setattr(transitions, "lock_bookings", lock_bookings)
        return lock_bookings(app, ids, **options)

    monkeypatch.setattr(transitions, "lock_bookings", lock_late)
    clock.move_to(DUE)

    done = complete_ended(now=DUE)

    assert (done, states()) == (0, ["confirmed"])


def test_moved_and_confirmed_draft_completes(tenant: Tenant, ada: Any) -> None:
    draft = tenant.book(resource_id=ada["id"], action="create", **NINE).data
    tenant.post(f"/bookings/{draft['id']}/reschedule", span("11:00", "12:00"))
    act(tenant, draft, "confirm")

    done = [complete_ended(now=DUE + timedelta(hours=n)) for n in (0, 2)]

    assert done == [0, 1]


def test_double_and_mutual_bookings_complete(tenant: Tenant) -> None:
    resources = [tenant.make_resource(name)["id"] for name in "AB"]
    project = tenant.make_project(*resources, availability={"mode": "mutual"})["id"]
    tenant.book(project_id=project, **NINE)
    tenant.book(resource_id=resources[1], settings={"allow_double_bookings": True}, **NINE)

    done = complete_ended(now=DUE)

    assert (done, [busy_times(tenant, resource) for resource in resources]) == (2, [[], []])


def test_bookings_of_every_app_complete(tenant: Tenant, make_tenant: Any, booking: Any) -> None:
    other = make_tenant()
    other.book(resource_id=other.make_resource()["id"], **NINE)

    assert complete_ended(now=DUE) == 2


def test_deleted_bookings_do_not_complete(tenant: Tenant, booking: Any) -> None:
    act(tenant, booking, "complete")
    tenant.delete(f"/bookings/{booking['id']}")

    assert complete_ended(now=DUE) == 0


def test_failing_booking_does_not_block_others(
    tenant: Tenant, make_tenant: Any, booking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_tenant()
    other.book(resource_id=other.make_resource()["id"], **NINE)

    def listen(steps: Sequence[Transition]) -> None:
        if str(steps[0].booking.id) == booking["id"]:
            raise ValueError

    monkeypatch.setattr(transition_log, "on_transition", [listen, *transition_log.on_transition])

    assert complete_ended(now=DUE) == 1
    assert sorted(states()) == ["completed", "confirmed"]


def test_series_bookings_time_out_with_one_mail_each(tenant: Tenant, ada: Any) -> None:
    series = {"recurrence": "FREQ=DAILY;COUNT=3", "graph": "instant_payment"}
    tenant.book(resource_id=ada["id"], **NINE, **series)

    done = expire_bookings(now=DUE + timedelta(days=1))

    mails = Delivery.objects.filter(type="email", kind="unpaid")
    assert [done, mails.values("booking").distinct().count()] == [3, 3]


def test_failing_batch_does_not_block_others(
    tenant: Tenant, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listen(steps: Sequence[Transition]) -> None:
        if steps[0].booking.meta:
            raise ValueError

    for hour in (1, 2, 3):
        given = {"resource_id": ada["id"], "meta": {"broken": True} if hour < 3 else {}}
        tenant.book(**span(f"0{hour}:00", f"0{hour}:30"), **given)
        tenant.book(**span(f"0{hour}:30", f"0{hour}:45"), **given, graph="instant_payment")
    monkeypatch.setattr(transitions, "BATCH", 2)
    monkeypatch.setattr(transition_log, "on_transition", [listen, *transition_log.on_transition])

    done = [complete_ended(now=DUE), expire_bookings(now=DUE)]

    assert done == [1, 1]
    assert states() == [*["confirmed", "tentative"] * 2, "completed", "unpaid"]


# --- The task -------------------------------------------------------------------------------------
def test_task_processes_all_batches(
    tenant: Tenant, ada: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transitions, "BATCH", 2)
    monkeypatch.setattr(tasks, "database_now", timezone.now)
    for hour in (1, 2, 3, 4, 5):
        tenant.book(resource_id=ada["id"], **span(f"0{hour}:00", f"0{hour}:30"))
    clock.move_to(at(f"{MONDAY} 06:00"))

    tasks.complete_ended_bookings()

    assert states() == ["completed"] * 4 + ["confirmed"]


@pytest.mark.parametrize(("bookings", "asked"), [(1, 0), (2, 1), (5, 1)])
def test_full_batch_requests_one_more_task(
    tenant: Tenant, ada: Any, monkeypatch: pytest.MonkeyPatch, bookings: int, asked: int
) -> None:
    requests: list[dict[str, Any]] = []

    def refuse(**options: Any) -> None:
        requests.append(options)
        raise OperationalError

    monkeypatch.setattr(transitions, "BATCH", 2)
    monkeypatch.setattr(tasks, "database_now", lambda: DUE)
    monkeypatch.setattr(tasks.complete_ended_bookings, "apply_async", refuse)
    for hour in range(1, bookings + 1):
        tenant.book(resource_id=ada["id"], **span(f"0{hour}:00", f"0{hour}:30"))

    tasks.complete_ended_bookings()

    assert requests == [{"expires": 30, "retry": False}] * asked
    assert states() == ["completed"] * bookings


@pytest.mark.postgresql
def test_task_uses_the_clock_of_the_database(tenant: Tenant, clock: Any) -> None:
    ben = tenant.make_resource("Ben")["id"]
    tomorrow = database_now() + timedelta(days=1)
    end = tomorrow + timedelta(hours=1)
    booked = tenant.book(resource_id=ben, start=tomorrow.isoformat(), end=end.isoformat())
    assert booked.status == 201
    clock.move_to(end + timedelta(days=3650))

    tasks.complete_ended_bookings()

    assert states() == ["confirmed"]


def test_task_without_due_bookings(booking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "database_now", timezone.now)

    tasks.complete_ended_bookings()

    assert states() == ["confirmed"]
