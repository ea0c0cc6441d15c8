"""No group is oversold: real client processes against real web processes.

The lock of their owner's booking keeps seats apart, and a trigger; so each race comes with its
control, without the lock or without both.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bookings.race_clients import Request, call
from tests.bookings.race_tenant import LiveTenant, count_outcomes, span

pytestmark = pytest.mark.both_databases

SEATS = 5
WRITES_SEAT = 'INSERT INTO "bookings_booking"'
_LIVE = """SELECT count(*) FROM bookings_booking
    WHERE owner_booking_id = ? AND state IN ('confirmed', 'tentative', 'paid')"""


def make_group(tenant: LiveTenant) -> Any:
    (resource,) = tenant.make_resources(1)
    return tenant.book(
        graph="group_owner", resource_id=resource, settings={"max_seats": SEATS}, **span(10)
    )


def seat_in(tenant: LiveTenant, group: Any, graph: str = "group_customer") -> Request:
    return tenant.booking(graph=graph, related={"owner_booking_id": group["id"]})


def live_seats(tenant: LiveTenant, group: Any) -> int:
    return tenant.rows(_LIVE, tenant.id(group["id"]))[0][0]


@pytest.mark.parametrize("graph", ["group_customer", "group_customer_payment"])
def test_fifty_clients_for_five_seats(live_tenant: LiveTenant, graph: str) -> None:
    group = make_group(live_tenant)

    answers = live_tenant.race_each([seat_in(live_tenant, group, graph)] * 50)

    assert count_outcomes(answers) == Counter({"201": SEATS, "409 group_full": 45})
    assert live_seats(live_tenant, group) == SEATS


def test_database_refuses_seats_that_were_counted_without_lock(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    """Several have counted the seats before the first one takes one."""
    unlocked = faulty_tenant.with_faults(unlocked=True, meet=str(tmp_path), at=WRITES_SEAT)
    group = make_group(faulty_tenant)

    answers = faulty_tenant.race_each([seat_in(unlocked, group)] * 12)

    assert count_outcomes(answers) == Counter({"201": SEATS, "409 group_full": 7})
    assert live_seats(faulty_tenant, group) == SEATS


def test_control_without_lock_and_guard_a_group_is_oversold(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    unlocked = faulty_tenant.with_faults(unlocked=True, meet=str(tmp_path), at=WRITES_SEAT)
    group = make_group(faulty_tenant)
    with without_seat_guard(faulty_tenant):
        faulty_tenant.race_each([seat_in(unlocked, group)] * 12)

    assert live_seats(faulty_tenant, group) > SEATS


PLACES = {"stalls": 8, "balcony": 4}
_TAKEN = """SELECT place, SUM(COALESCE(quantity, 1)) FROM bookings_booking
    WHERE owner_booking_id = ? AND state = 'confirmed' GROUP BY place ORDER BY place"""


def test_eight_clients_for_three_bikes(live_tenant: LiveTenant) -> None:
    """Each asks for one, two and three; exactly three are taken, with a unit each."""
    bikes = live_tenant.make_resource(capacity=3)["id"]
    ride = {"resource_id": bikes, **span(10)}
    requests = [live_tenant.booking(quantity=number, **ride) for number in (2, 1, 3)]

    answers = live_tenant.race([[*requests, *requests]] * 8)

    made = [answer for found in answers for answer in found if answer.status == 201]
    assert set(count_outcomes(answers)) <= {"201", "409 slot_taken"}
    assert 1 <= len(made) <= 3
    query = "SELECT unit FROM availability_event WHERE resource_id = ? AND busy ORDER BY unit"
    assert [unit for (unit,) in live_tenant.rows(query, live_tenant.id(bikes))] == [0, 1, 2]


def test_database_refuses_units_that_were_checked_without_lock(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    """All have found all bikes free, and given themselves the same units."""
    unlocked = faulty_tenant.with_faults(
        unlocked=True, meet=str(tmp_path), at='INSERT INTO "availability_event"'
    )
    bikes = faulty_tenant.make_resource(capacity=3)["id"]
    ride = unlocked.booking(resource_id=bikes, quantity=2, **span(10))

    answers = faulty_tenant.race_each([ride] * 8)

    assert count_outcomes(answers) == Counter({"201": 1, "409 slot_taken": 7})
    query = "SELECT unit FROM availability_event WHERE resource_id = ? AND busy ORDER BY unit"
    assert faulty_tenant.rows(query, faulty_tenant.id(bikes)) == [(0,), (1,)]


def test_eight_clients_for_twelve_seats_in_two_places(live_tenant: LiveTenant) -> None:
    """Bookings and holds of several seats at once: each place is filled exactly."""
    (hall,) = live_tenant.make_resources(1)
    settings = {"places": PLACES}
    group = live_tenant.book(graph="group_owner", resource_id=hall, settings=settings, **span(10))
    related = {"related": {"owner_booking_id": group["id"]}}
    script = [
        live_tenant.booking(graph="group_customer", place=place, quantity=number, **related)
        for number in (3, 2, 1)
        for place in PLACES
    ]
    answers = live_tenant.race([[*script, *script]] * 8)

    assert set(count_outcomes(answers)) == {"201", "409 group_full"}
    taken = live_tenant.rows(_TAKEN, live_tenant.id(group["id"]))
    assert {place: int(seats) for place, seats in taken} == PLACES


@contextmanager
def without_seat_guard(tenant: LiveTenant) -> Iterator[None]:
    """While nothing but the service's lock keeps seats apart; the group is full afterwards."""
    if tenant.is_sqlite:
        kept = tenant.rows("SELECT sql FROM sqlite_master WHERE name = 'group_full_on_insert'")
        tenant.rows("DROP TRIGGER group_full_on_insert")
    else:
        tenant.rows("ALTER TABLE bookings_booking DISABLE TRIGGER group_full_on_insert")
    try:
        yield
    finally:
        if tenant.is_sqlite:
            tenant.rows(kept[0][0])
        else:
            tenant.rows("ALTER TABLE bookings_booking ENABLE TRIGGER group_full_on_insert")


def test_concurrently_cancelled_group_has_no_seats(live_tenant: LiveTenant) -> None:
    group = make_group(live_tenant)
    cancel = live_tenant.act(group["id"], "cancel")

    *seats, cancelled = live_tenant.race_each([*[seat_in(live_tenant, group)] * 9, cancel])

    assert cancelled.outcome == "200"
    assert set(count_outcomes(seats)) <= {"201", "409 action_not_allowed", "409 group_full"}
    assert live_seats(live_tenant, group) == 0


def race_to_cancel(tenant: LiveTenant, folder: Path, **faults: Any) -> tuple[str, str, int]:
    """A seat is about to be written when the group is cancelled: both outcomes, live seats."""
    group = make_group(tenant)
    cancel = tenant.with_faults(**faults).act(group["id"], "cancel")
    with ThreadPoolExecutor(1) as pool:
        with tenant.paused_request(
            seat_in(tenant, group), at=WRITES_SEAT, folder=folder, **faults
        ) as seat:
            cancelled = pool.submit(call, tenant.service.url, cancel)
            if faults:
                cancelled.result()
        return seat.result().outcome, cancelled.result().outcome, live_seats(tenant, group)


def test_group_cancellation_waits_for_a_concurrent_seat(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    assert race_to_cancel(faulty_tenant, tmp_path) == ("201", "200", 0)


def test_control_without_lock_seat_survives_cancellation(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    assert race_to_cancel(faulty_tenant, tmp_path, unlocked=True) == ("201", "200", 1)


def test_concurrent_seat_cancellation_and_group_move(live_tenant: LiveTenant) -> None:
    """Whoever comes first: a cancelled seat is never told to have moved."""
    for _ in range(3):
        group = make_group(live_tenant)
        seats = [call(live_tenant.service.url, seat_in(live_tenant, group)).data for _ in range(3)]
        cancels = [live_tenant.act(seat["id"], "cancel_by_customer") for seat in seats]

        answers = live_tenant.race_each([live_tenant.move(group["id"], span(14)), *cancels])

        assert count_outcomes(answers) == Counter({"200": 4})
        assert {live_tenant.steps_of(seat["id"])[-1] for seat in seats} == {
            ("confirmed", "cancel_by_customer", "cancelled_by_customer")
        }


MOVES_EVENT = 'UPDATE "availability_event"'


def race_to_end_a_seat(
    tenant: LiveTenant, folder: Path, **faults: Any
) -> tuple[list[str], list[str], bool]:
    """A seat is cancelled when its group is about to get its new time: both outcomes, the seat's
    actions, and whether it shows the new time.
    """
    group = make_group(tenant)
    seat = call(tenant.service.url, seat_in(tenant, group)).data
    cancel = tenant.with_faults(**faults).act(seat["id"], "cancel_by_customer")
    move = tenant.move(group["id"], span(14))
    with ThreadPoolExecutor(1) as pool:
        with tenant.paused_request(move, at=MOVES_EVENT, folder=folder, **faults) as moved:
            cancelled = pool.submit(call, tenant.service.url, cancel)
            if faults:
                cancelled.result()
        outcomes = [moved.result().outcome, cancelled.result().outcome]
    shown = tenant.call("GET", f"/bookings/{seat['id']}").data["event"]["start"]
    actions = [action for _, action, _ in tenant.steps_of(seat["id"])]
    return outcomes, actions, shown == span(14)["start"]


def test_seat_ends_after_the_group_move(faulty_tenant: LiveTenant, tmp_path: Path) -> None:
    found = race_to_end_a_seat(faulty_tenant, tmp_path)

    assert found == (["200", "200"], ["create", "reschedule", "cancel_by_customer"], True)


@pytest.mark.postgresql  # SQLite has one writer at a time
def test_control_without_lock_ended_seat_moves(faulty_tenant: LiveTenant, tmp_path: Path) -> None:
    found = race_to_end_a_seat(faulty_tenant, tmp_path, unlocked=True)

    assert found == (["200", "200"], ["create", "cancel_by_customer"], True)


def test_seat_cancelled_while_the_move_waits_is_not_moved(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    group = make_group(faulty_tenant)
    seat = call(faulty_tenant.service.url, seat_in(faulty_tenant, group)).data
    cancel = faulty_tenant.act(seat["id"], "cancel_by_customer")
    move = faulty_tenant.move(group["id"], span(14))

    with ThreadPoolExecutor(1) as pool:
        writes = 'UPDATE "bookings_booking"'
        with faulty_tenant.paused_request(cancel, at=writes, folder=tmp_path) as cancelled:
            moved = pool.submit(call, faulty_tenant.service.url, move)
            if not faulty_tenant.is_sqlite:
                faulty_tenant.wait_for_a_waiter()
        outcomes = [cancelled.result().outcome, moved.result().outcome]

    assert outcomes == ["200", "200"]
    assert faulty_tenant.steps_of(seat["id"]) == [
        ("initialized", "create", "confirmed"),
        ("confirmed", "cancel_by_customer", "cancelled_by_customer"),
    ]
