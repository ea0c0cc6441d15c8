"""Actions on one booking at the same time: as if one had come after the other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bookings.race_clients import call
from tests.bookings.race_tenant import LiveTenant, count_outcomes, span

pytestmark = pytest.mark.both_databases

Steps = tuple[tuple[str, str, str], ...]
CREATED = ("initialized", "create", "tentative")
CONFIRMED = ("tentative", "confirm", "confirmed")
DECLINED = ("tentative", "decline", "declined")
CANCELLED = ("tentative", "cancel", "cancelled")
CANCELLED_LATER = ("confirmed", "cancel", "cancelled")
COMPLETED = ("confirmed", "complete", "completed")

# The actions of a race, and every history that one after the other could have written.
SERIAL_HISTORIES = [
    (["confirm", "cancel"], {(CREATED, CONFIRMED, CANCELLED_LATER), (CREATED, CANCELLED)}),
    (["confirm", "decline"], {(CREATED, CONFIRMED), (CREATED, DECLINED)}),
    (["confirm", "confirm", "confirm"], {(CREATED, CONFIRMED)}),
    (["decline", "cancel", "decline", "cancel"], {(CREATED, DECLINED), (CREATED, CANCELLED)}),
    (
        ["confirm", "complete", "cancel"],
        {
            (CREATED, CONFIRMED, COMPLETED),
            (CREATED, CONFIRMED, CANCELLED_LATER),
            (CREATED, CANCELLED),
        },
    ),
]


def race_actions(tenant: LiveTenant, actions: list[str], rounds: int = 5) -> set[Steps]:
    """The histories of bookings each of which got all the actions at once."""
    (resource,) = tenant.make_resources(1)
    bookings = [
        tenant.book(graph="confirm_decline", resource_id=resource, **span(n))["id"]
        for n in range(rounds)
    ]

    answers = tenant.race_each([tenant.act(booking, do) for booking in bookings for do in actions])

    assert count_outcomes(answers).keys() <= {"200", "409 action_not_allowed"}
    histories = [tuple(tenant.steps_of(booking)) for booking in bookings]
    # Every 200 is a line of the history, every line after the first one a 200.
    assert sum(len(steps) - 1 for steps in histories) == count_outcomes(answers)["200"]
    states = [tenant.state_of(booking) for booking in bookings]
    assert states == [steps[-1][2] for steps in histories]
    assert len(tenant.held([resource])) == states.count("confirmed")
    return set(histories)


@pytest.mark.every_case
@pytest.mark.parametrize(("actions", "serial"), SERIAL_HISTORIES, ids=lambda value: "")
def test_concurrent_actions_are_serialised(
    lock_only: LiveTenant, actions: list[str], serial: set[Steps]
) -> None:
    assert race_actions(lock_only, actions) <= serial


def test_control_without_lock_action_is_applied_twice(
    unguarded_tenant: LiveTenant, tmp_path: Path
) -> None:
    (resource,) = unguarded_tenant.make_resources(1)
    booking = unguarded_tenant.book(graph="confirm_decline", resource_id=resource, **span(10))["id"]
    confirm = unguarded_tenant.with_faults(unlocked=True).act(booking, "confirm")
    writes = 'UPDATE "availability_event"'

    with unguarded_tenant.paused_request(
        confirm, at=writes, folder=tmp_path, unlocked=True
    ) as first:
        second = call(unguarded_tenant.service.url, confirm)

    assert (first.result().outcome, second.outcome) == ("200", "200")
    assert unguarded_tenant.steps_of(booking) == [CREATED, CONFIRMED, CONFIRMED]


# --- Payments -------------------------------------------------------------------------------------
PAID = ("tentative", "pay", "paid")
UNPAID = ("tentative", "timeout", "unpaid")
TIME_OUT = """
from datetime import timedelta
from django.utils import timezone
from bookings.services import expire_bookings
expire_bookings(now=timezone.now() + timedelta(hours=1))
"""


def test_concurrent_payment_and_timeout_apply_one(lock_only: LiveTenant) -> None:
    (resource,) = lock_only.make_resources(1)
    bookings = [
        lock_only.book(graph="instant_payment", resource_id=resource, **span(n))["id"]
        for n in range(5)
    ]

    answers = lock_only.race_each(
        [lock_only.act(booking, do) for booking in bookings for do in ("pay", "timeout")]
    )

    assert count_outcomes(answers) == {"200": 5, "409 action_not_allowed": 5}
    histories = [tuple(lock_only.steps_of(booking)) for booking in bookings]
    assert set(histories) <= {(CREATED, PAID), (CREATED, UNPAID)}
    assert len(lock_only.held([resource])) == histories.count((CREATED, PAID))


def test_timeout_waits_for_a_payment_in_progress(faulty_tenant: LiveTenant, tmp_path: Path) -> None:
    (resource,) = faulty_tenant.make_resources(1)
    booking = faulty_tenant.book(graph="instant_payment", resource_id=resource, **span(10))["id"]
    pay = faulty_tenant.act(booking, "pay")

    with ThreadPoolExecutor(1) as pool:
        writes = 'UPDATE "bookings_booking"'
        with faulty_tenant.paused_request(pay, at=writes, folder=tmp_path) as paid:
            timer = pool.submit(faulty_tenant.service.run, TIME_OUT)
            if not faulty_tenant.is_sqlite:  # which has one writer at a time
                timer.result()
        timer.result()

    assert paid.result().outcome == "200"
    assert faulty_tenant.steps_of(booking) == [CREATED, PAID]
    assert len(faulty_tenant.held([resource])) == 1
